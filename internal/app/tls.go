package app

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"signalbox/proxy/settings"
)

// certificates is what the main listener shows to clients, and whom it lets in, now. It is safe for
// concurrent use.
type certificates struct{ now atomic.Pointer[tls.Config] }

// load reads the files. What was read before stays when one of them cannot be.
func (c *certificates) load(o *settings.TLS) error {
	pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return fmt.Errorf("server.tls.cert_file: %w", err)
	}
	next := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if o.ClientCAFile != "" {
		pem, err := os.ReadFile(o.ClientCAFile)
		if err != nil {
			return fmt.Errorf("server.tls.client_ca_file: %w", err)
		}
		next.ClientCAs, next.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !next.ClientCAs.AppendCertsFromPEM(pem) {
			return errors.New("server.tls.client_ca_file: " + o.ClientCAFile + " holds no certificate in PEM")
		}
	}
	c.now.Store(next)
	return nil
}

// config is what a listener takes: every connection gets what is there when it begins.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
}
