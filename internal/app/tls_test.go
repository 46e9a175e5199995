package app

import (
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
)

// S34: the main listener speaks no TLS that something is known against, and lets in whom its
// authorities vouch for: a file of authorities that is missing or holds none ends the start, and
// after a reload those that were read before hold on.
func TestS34TLSFailsClosed(t *testing.T) {
	t.Parallel()
	ca, clients := testkit.NewAuthority(t), testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	pem, err := os.ReadFile(clients.File)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "clients.pem")
	write := func(content []byte) {
		t.Helper()
		if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if content == nil {
			return
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bad := map[string][]byte{"missing": nil, "empty": {}, "no PEM": []byte("x"), "another kind of PEM": []byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")}
	section := "server: {tls: {cert_file: " + strconv.Quote(cert) + ", key_file: " + strconv.Quote(key) + ", client_ca_file: " + strconv.Quote(file) + "}}\n"
	for name, content := range bad {
		write(pem)
		cfg := configure(t, section)
		write(content)
		cfg.Server.Listen, cfg.Server.AdminListen, cfg.Telemetry.Log = "127.0.0.1:0", "127.0.0.1:0", "error"
		a, err := Build(t.Context(), cfg, Options{Version: "test", Log: io.Discard, Env: os.LookupEnv})
		if err == nil {
			err = a.Serve(t.Context(), nil, nil)
			_ = a.Close(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "client_ca_file") {
			t.Errorf("%s: it starts: %v", name, err)
		}
	}
	write(pem)
	s := serve(t, configure(t, section), config.Settings{})
	at := strings.Replace(s.url, "http://", "https://", 1)
	known := clients.Pair("client")
	dial := func(change func(*tls.Config)) error {
		c := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{known}, MinVersion: tls.VersionTLS12}
		change(c)
		_, _, err := ask(t, dialing(t, c, http1Only), at)
		return err
	}
	only := func(version uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MinVersion, c.MaxVersion = version, version }
	}
	suite := func(id uint16) func(*tls.Config) {
		return func(c *tls.Config) { c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{id} }
	}
	for name, tt := range map[string]struct {
		change func(*tls.Config)
		in     bool
	}{
		"TLS 1.3":                 {only(tls.VersionTLS13), true},
		"TLS 1.2":                 {only(tls.VersionTLS12), true},
		"TLS 1.1":                 {only(tls.VersionTLS11), false},
		"TLS 1.0":                 {only(tls.VersionTLS10), false},
		"AES-GCM":                 {suite(tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256), true},
		"RC4":                     {suite(tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA), false},
		"CBC with SHA-256":        {suite(tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256), false},
		"3DES":                    {suite(tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA), false},
		"no forward secrecy":      {suite(tls.TLS_RSA_WITH_AES_128_GCM_SHA256), false},
		"no certificate":          {func(c *tls.Config) { c.Certificates = nil }, false},
		"another's certificate":   {func(c *tls.Config) { c.Certificates = []tls.Certificate{ca.Pair("client")} }, false},
		"a client that knows him": {func(*tls.Config) {}, true},
	} {
		if err := dial(tt.change); (err == nil) != tt.in {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, content := range bad {
		write(content)
		_ = s.app.Reload(t.Context()) // whether it says so or not
		if err := dial(func(c *tls.Config) { c.Certificates = nil }); err == nil {
			t.Errorf("%s after a reload: everybody is let in", name)
		}
		if err := dial(func(*tls.Config) {}); err != nil {
			t.Errorf("%s after a reload: nobody is let in: %v", name, err)
		}
	}
}

// A certificate that cannot be used is a reload that failed, as any other file is; the one before
// is shown on.
func TestABrokenCertificateIsAFailedReload(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t)
	cert, key := ca.Issue("proxy.internal")
	_, other := ca.Issue("other.internal")
	good, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	alien, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	section := "server: {tls: {cert_file: " + strconv.Quote(cert) + ", key_file: " + strconv.Quote(key) + "}}\n"
	s := serve(t, configure(t, section), config.Settings{})
	at := strings.Replace(s.url, "http://", "https://", 1)
	for name, content := range map[string][]byte{"no PEM": []byte("x"), "another key": alien} {
		if err := os.WriteFile(key, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.app.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "server.tls.") {
			t.Errorf("%s: %v", name, err)
		}
		if problem, _ := s.app.problem.Load().(string); !strings.Contains(problem, "server.tls.") {
			t.Errorf("%s: the problem is %q", name, problem)
		}
		c := &tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}
		if _, _, err := ask(t, dialing(t, c, http1Only), at); err != nil {
			t.Errorf("%s: the certificate before is gone: %v", name, err)
		}
	}
	if err := os.WriteFile(key, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.app.Reload(t.Context()); err != nil {
		t.Error(err)
	}
}
