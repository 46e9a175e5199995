package app

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"signalbox/proxy/settings"
)

// certificates is what the main listener shows to clients, and whom it lets in, now. It is safe for
// concurrent use.
type certificates struct{ now atomic.Pointer[tls.Config] }

// load reads the files. What was read before stays when one of them cannot be.
func (c *certificates) load(o *settings.TLS) error {
	next, err := readPair(o)
	if err == nil {
		c.now.Store(next)
	}
	return err
}

// readPair reads the certificate, its key and the authorities of clients; nil where there is none.
func readPair(o *settings.TLS) (*tls.Config, error) {
	if o.CertFile == "" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	next, err := o.Config()
	if err != nil {
		return nil, fmt.Errorf("server.tls.%w", err)
	}
	return next, nil
}

// config is what a listener takes: every connection gets what is there when it begins.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
}
