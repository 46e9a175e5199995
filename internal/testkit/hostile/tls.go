package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// authority signs the certificates of all servers, so that a client which trusts it sees only the
// intended fault.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

var root = sync.OnceValues(newAuthority) //nolint:gochecknoglobals // made once, since keys take time

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hostile test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return authority{}, fmt.Errorf("make authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	return authority{cert, key}, err //nolint:wrapcheck // goes to tb.Fatal
}

// Roots is the pool that a client must trust to see the TLS faults and no others.
func Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	if a, err := root(); err == nil {
		pool.AddCert(a.cert)
	}
	return pool
}

// RootsPEM is Roots in PEM.
func RootsPEM() []byte {
	a, err := root()
	if err != nil {
		return nil
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Certificate returns a certificate of the test authority for 127.0.0.1, or for name if that is not
// empty.
func Certificate(name string, until time.Time) (tls.Certificate, error) {
	a, err := root()
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "backend.internal.example"}, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// tlsConfig returns the settings of a TLS mode.
func tlsConfig(mode string) (*tls.Config, error) {
	name, until := "", time.Now().Add(time.Hour)
	switch mode {
	case "tls-expired":
		until = time.Now().Add(-time.Minute)
	case "tls-wrong-name":
		name = "backend.internal.example"
	}
	cert, err := Certificate(name, until)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if mode == "tls-mtls-required" {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, Roots()
	}
	return cfg, nil
}
