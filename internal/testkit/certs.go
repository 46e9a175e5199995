package testkit

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority issues certificates for tests. Its files are in a folder of the test. It belongs to one
// goroutine.
type Authority struct {
	File string // its own certificate, in PEM

	tb     testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// NewAuthority creates an authority that no other program trusts.
func NewAuthority(tb testing.TB) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, dir: tb.TempDir()}
	template := a.template("authority of a test")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = a.newKey()
	a.cert = a.sign(template, template, &a.key.PublicKey)
	a.File = filepath.Join(a.dir, "ca.pem")
	a.write(a.File, "CERTIFICATE", a.cert.Raw)
	return a
}

// Issue writes a certificate with its key for a host or a client of that name, and returns their
// files. A second certificate of the same name replaces the first. Hosts are on loopback.
func (a *Authority) Issue(name string) (certFile, keyFile string) {
	a.tb.Helper()
	template := a.template(name)
	template.DNSNames = []string{name}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	key := a.newKey()
	cert := a.sign(template, a.cert, &key.PublicKey)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	a.write(keyFile, "PRIVATE KEY", der)
	a.write(certFile, "CERTIFICATE", cert.Raw)
	return certFile, keyFile
}

// Pair works like Issue, for programs that take the certificate as a value.
func (a *Authority) Pair(name string) tls.Certificate {
	a.tb.Helper()
	pair, err := tls.LoadX509KeyPair(a.Issue(name))
	if err != nil {
		a.tb.Fatal(err)
	}
	return pair
}

// Pool trusts only this authority.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

func (a *Authority) template(name string) *x509.Certificate {
	a.serial++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

func (a *Authority) newKey() *ecdsa.PrivateKey {
	a.tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.tb.Fatal(err)
	}
	return key
}

func (a *Authority) sign(template, parent *x509.Certificate, public *ecdsa.PublicKey) *x509.Certificate {
	a.tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.tb.Fatal(err)
	}
	return cert
}

// write replaces the file atomically, like a tool that renews certificates.
func (a *Authority) write(file, kind string, der []byte) {
	a.tb.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.tb.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		a.tb.Fatal(err)
	}
}
