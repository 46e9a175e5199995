package app

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"

	"signalbox/proxy/settings"
)

// certificates holds the current certificate of the main listener and the client authorities that
// it accepts. It is safe for concurrent use.
type certificates struct{ now atomic.Pointer[tls.Config] }

// load reads the files. If one of them cannot be read, the previous content stays.
func (c *certificates) load(o *settings.TLS) error {
	next, err := readPair(o)
	if err == nil {
		c.now.Store(next)
	}
	return err
}

// readPair reads the certificate, its key and the client authorities; nil if none is configured.
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

// config returns the configuration for a listener: every connection uses the certificates that are
// current when it begins.
func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
}
