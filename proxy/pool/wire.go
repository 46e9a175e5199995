package pool

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"

	"signalbox/internal/option"
	"signalbox/proxy/framing"
)

// The protocols of endpoints.
const (
	protocolHTTP1 = "http1"
	protocolH2    = "h2"
	protocolH2C   = "h2c"
)

// TLSOptions configures TLS to an endpoint. Its files are read at start and at every reload; after
// a change of one of them, reload.
type TLSOptions struct {
	// CAFile is the file with the certificates of the authorities that may issue the server's
	// certificate, in PEM. Default: the system's authorities.
	CAFile string `yaml:"ca_file" path:"true"`
	// CertFile is the file with the client certificate that the proxy presents, and its
	// intermediates, in PEM.
	CertFile string `yaml:"cert_file" path:"true"`
	// KeyFile is the file with the private key of cert_file, in PEM.
	KeyFile string `yaml:"key_file" path:"true"`
	// ServerName is the name that the server's certificate must have. Default: the host of the URL.
	ServerName string `yaml:"server_name"`
}

// Files returns the files that are set.
func (o *TLSOptions) Files() []string {
	var out []string
	for _, f := range []string{o.CAFile, o.CertFile, o.KeyFile} {
		if f != "" {
			out = append(out, f)
		}
	}
	return out
}

// config reads the files.
func (o *TLSOptions) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: o.ServerName}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("ca_file: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file: " + o.CAFile + " contains no PEM certificate")
		}
	}
	if o.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("cert_file: %w", err)
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, nil
}

// checkWire reports inconsistent protocol and TLS options of an endpoint.
func (o *EndpointOptions) checkWire(p *option.Problems, at string) {
	u, err := url.Parse(o.URL)
	secure := err == nil && u.Scheme == "https"
	if (o.TLS.CertFile == "") != (o.TLS.KeyFile == "") {
		p.Addf(at+".tls", "cert_file and key_file must be set together")
	} else if _, err := o.TLS.config(); err != nil {
		p.Addf(at+".tls", "%v", err)
	}
	if err == nil && !secure && o.TLS != (TLSOptions{}) {
		p.Addf(at+".tls", "the url is not https")
	}
	switch {
	case o.Protocol == "", o.Protocol == protocolHTTP1:
	case o.Protocol != protocolH2 && o.Protocol != protocolH2C:
		p.Addf(at+".protocol", "%q is not one of %s, %s, %s", o.Protocol, protocolHTTP1, protocolH2, protocolH2C)
	case err == nil && secure != (o.Protocol == protocolH2):
		p.Addf(at+".protocol", "%s is for https URLs and %s for http", protocolH2, protocolH2C)
	}
}

// wire is the transport of an endpoint that does not use the shared one.
type wire struct {
	framing.Transport

	mark  [sha256.Size]byte // digest of the options that it was made from
	http2 bool              // HTTP/2 is used if the server supports it
}

// equip gives the endpoint its own transport if its options require one. base returns a new
// transport with the shared settings.
func (e *Endpoint) equip(o *EndpointOptions, base func() framing.Transport) error {
	if o.TLS == (TLSOptions{}) && (o.Protocol == "" || o.Protocol == protocolHTTP1) {
		return nil
	}
	config, err := o.TLS.config()
	if err != nil {
		return fmt.Errorf("tls.%w", err)
	}
	t := base()
	t.TLSClientConfig = config
	switch o.Protocol {
	case protocolH2:
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true) // for a server without HTTP/2
		t.Protocols.SetHTTP2(true)
	case protocolH2C:
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		t.DialContext = framing.Dialer(t.DialContext).Plain
	}
	e.own = &wire{t, o.mark(), o.Protocol == protocolH2 || o.Protocol == protocolH2C}
	return nil
}

// Client returns a client for questions to the endpoint that are not requests of callers. It uses
// the same protocol and trust settings, with a timeout for the whole exchange. The caller closes
// its idle connections.
func (o *EndpointOptions) Client(timeout time.Duration) (*http.Client, error) {
	base := func() framing.Transport {
		dialer := &net.Dialer{Timeout: timeout}
		return framing.Transport{Transport: &http.Transport{DialContext: dialer.DialContext}}
	}
	e := &Endpoint{}
	if err := e.equip(o, base); err != nil {
		return nil, err
	}
	return &http.Client{Transport: e.Via(base()), Timeout: timeout}, nil
}

// mark returns a digest that is equal for options that make the same transport, including the
// contents of files.
func (o *EndpointOptions) mark() [sha256.Size]byte {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%q %q %q\n", o.URL, o.Protocol, o.TLS)
	for _, file := range o.TLS.Files() {
		b, _ := os.ReadFile(file) // config has read the file before
		_, _ = fmt.Fprintf(h, "%d ", len(b))
		_, _ = h.Write(b)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// HTTP2 reports whether the endpoint is configured for HTTP/2.
func (e *Endpoint) HTTP2() bool { return e.own != nil && e.own.http2 }

// Via returns the transport for requests to the endpoint: its own, or else the shared one.
func (e *Endpoint) Via(shared http.RoundTripper) http.RoundTripper {
	if e.own != nil {
		return e.own
	}
	return shared
}

// Credential returns the Authorization header for a request to the endpoint; empty for none. in is
// the client's header.
func (e *Endpoint) Credential(in http.Header) string {
	if e.passes {
		return in.Get("Authorization")
	}
	return e.Bearer
}

// ForwardsAuth reports whether the endpoint receives the credentials of clients instead of its own.
func (e *Endpoint) ForwardsAuth() bool { return e.passes }

// ForwardsAuth reports whether some endpoint receives the credentials of clients.
func (g *Group) ForwardsAuth() bool {
	return slices.ContainsFunc(g.Endpoints, func(e *Endpoint) bool { return e.passes })
}

// CloseIdle closes the idle connections of endpoints with their own transport.
func (g *Group) CloseIdle() {
	for _, e := range g.Endpoints {
		if e.own != nil {
			e.own.CloseIdleConnections()
		}
	}
}
