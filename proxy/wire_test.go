package proxy

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// secured returns a model server, behind TLS unless config is nil, whose response states the
// protocol, the caller and the credentials.
func secured(t *testing.T, config *tls.Config, protocols *http.Protocols) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		who := ""
		if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
			who = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"seen":"`+r.Proto+" "+who+" "+r.Header.Get("Authorization")+`"}`)
	}))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	s.Config.Protocols = protocols
	if config != nil {
		s.TLS = config
		s.EnableHTTP2 = protocols != nil && protocols.HTTP2()
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// through sends one request through a proxy in front of a single endpoint.
func through(t *testing.T, e pool.EndpointOptions, header ...string) answered {
	t.Helper()
	e.Name = "a"
	models := []backend.ModelOptions{{Name: "big", Endpoints: []pool.EndpointOptions{e}}, {Name: "small", Endpoints: []pool.EndpointOptions{e}}, {Name: "effort", Endpoints: []pool.EndpointOptions{e}}}
	return start(t, models).chat(ask("hello"), header...)
}

// S34: an endpoint is verified by its own authority and name only.
func TestEndpointsAreTrustedByTheirOwnAuthority(t *testing.T) {
	t.Parallel()
	ca, other := testkit.NewAuthority(t), testkit.NewAuthority(t)
	s := secured(t, &tls.Config{Certificates: []tls.Certificate{ca.Pair("models.internal")}, MinVersion: tls.VersionTLS12}, nil)
	at := s.URL + "/v1"
	tests := []struct {
		name string
		tls  pool.TLSOptions
		want int
	}{
		{"its authority", pool.TLSOptions{CAFile: ca.File}, 200},
		{"the name in its certificate", pool.TLSOptions{CAFile: ca.File, ServerName: "models.internal"}, 200},
		{"another name", pool.TLSOptions{CAFile: ca.File, ServerName: "models.example"}, 502},
		{"another authority", pool.TLSOptions{CAFile: other.File}, 502},
		{"the authorities of the system", pool.TLSOptions{}, 502},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := through(t, pool.EndpointOptions{URL: at, TLS: tt.tls, APIKey: "k"}); got.status != tt.want {
				t.Errorf("status %d with %s, want %d", got.status, got.body, tt.want)
			} else if tt.want != 200 && strings.Contains(got.body, "x509") {
				t.Errorf("the client learns about certificates: %s", got.body)
			}
		})
	}
}

func TestTheProxyShowsItsCertificateToEndpointsThatAskForIt(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	s := secured(t, &tls.Config{
		Certificates: []tls.Certificate{ca.Pair("models.internal")}, ClientCAs: ca.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}, nil)
	cert, key := ca.Issue("signalbox.internal")
	got := through(t, pool.EndpointOptions{URL: s.URL + "/v1", TLS: pool.TLSOptions{CAFile: ca.File, CertFile: cert, KeyFile: key}})
	if got.status != 200 || !strings.Contains(got.body, "HTTP/1.1 signalbox.internal") {
		t.Errorf("status %d with %s", got.status, got.body)
	}
	if got := through(t, pool.EndpointOptions{URL: s.URL + "/v1", TLS: pool.TLSOptions{CAFile: ca.File}}); got.status != 502 {
		t.Errorf("without a certificate: status %d with %s", got.status, got.body)
	}
}

func TestEndpointsAreSpokenToInTheirProtocol(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	both := new(http.Protocols)
	both.SetHTTP1(true)
	both.SetHTTP2(true)
	both.SetUnencryptedHTTP2(true)
	over := secured(t, &tls.Config{Certificates: []tls.Certificate{ca.Pair("models.internal")}, MinVersion: tls.VersionTLS12}, both)
	plain := secured(t, nil, both)
	tests := []struct{ url, protocol, want string }{
		{over.URL, "", "HTTP/1.1"},
		{over.URL, "h2", "HTTP/2.0"},
		{plain.URL, "", "HTTP/1.1"},
		{plain.URL, "h2c", "HTTP/2.0"},
	}
	for _, tt := range tests {
		t.Run(tt.url[:5]+tt.protocol, func(t *testing.T) {
			t.Parallel()
			e := pool.EndpointOptions{URL: tt.url + "/v1", Protocol: tt.protocol}
			if tt.url == over.URL {
				e.TLS.CAFile = ca.File
			}
			if got := through(t, e); got.status != 200 || !strings.Contains(got.body, tt.want) {
				t.Errorf("status %d with %s", got.status, got.body)
			}
		})
	}
}

func TestCredentialsOfTheClientGoOnWhereTheConfigurationSaysSo(t *testing.T) {
	t.Parallel()
	s := secured(t, nil, nil)
	const theirs = "Bearer client-secret"
	for _, tt := range []struct {
		name string
		e    pool.EndpointOptions
		want string
	}{
		{"not by default", pool.EndpointOptions{}, `HTTP/1.1  "`},
		{"an endpoint has its own", pool.EndpointOptions{APIKey: "backend-secret"}, `Bearer backend-secret"`},
		{"forward_auth", pool.EndpointOptions{ForwardAuth: true}, `Bearer client-secret"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.e.URL = s.URL + "/v1"
			if got := through(t, tt.e, "Authorization", theirs); got.status != 200 || !strings.Contains(got.body, tt.want) {
				t.Errorf("status %d with %s, want %s in it", got.status, got.body, tt.want)
			}
		})
	}
}

func TestOptionsOfTheWireAreChecked(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("signalbox.internal")
	_, wrong := ca.Issue("other.internal")
	tests := []struct {
		name string
		e    pool.EndpointOptions
		want string // of the problem; empty for none
	}{
		{"all of it", pool.EndpointOptions{URL: "https://h/v1", Protocol: "h2", TLS: pool.TLSOptions{CAFile: ca.File, CertFile: cert, KeyFile: key, ServerName: "h"}}, ""},
		{"TLS without TLS", pool.EndpointOptions{URL: "http://h/v1", TLS: pool.TLSOptions{CAFile: ca.File}}, "endpoints[0].tls: the url is not https"},
		{"half a pair", pool.EndpointOptions{URL: "https://h/v1", TLS: pool.TLSOptions{CertFile: cert}}, "endpoints[0].tls: cert_file and key_file must be set together"},
		{"two halves", pool.EndpointOptions{URL: "https://h/v1", TLS: pool.TLSOptions{CertFile: cert, KeyFile: wrong}}, "endpoints[0].tls: cert_file: "},
		{"no such file", pool.EndpointOptions{URL: "https://h/v1", TLS: pool.TLSOptions{CAFile: "/nonexistent/ca.pem"}}, "endpoints[0].tls: ca_file: "},
		{"no certificate", pool.EndpointOptions{URL: "https://h/v1", TLS: pool.TLSOptions{CAFile: key}}, "contains no PEM certificate"},
		{"h2 without TLS", pool.EndpointOptions{URL: "http://h/v1", Protocol: "h2"}, "endpoints[0].protocol: h2 is for https URLs and h2c for http"},
		{"h2c over TLS", pool.EndpointOptions{URL: "https://h/v1", Protocol: "h2c"}, "endpoints[0].protocol: h2 is for"},
		{"no protocol", pool.EndpointOptions{URL: "https://h/v1", Protocol: "h3"}, `endpoints[0].protocol: "h3" is not one of http1, h2, h2c`},
		{"two credentials", pool.EndpointOptions{URL: "https://h/v1", APIKey: "k", ForwardAuth: true}, "endpoints[0].forward_auth: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.e.Name = "a"
			err := backend.ModelOptions{Name: "m", Endpoints: []pool.EndpointOptions{tt.e}}.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("problems %v, want %q", err, tt.want)
			}
		})
	}
}
