// Command h2spec measures the HTTP/2 conformance of signalbox: it starts the program twice, over
// cleartext HTTP/2 and over TLS, runs every case of github.com/summerwind/h2spec against both, and
// compares the failed cases with the explained list below. A failure that is not on the list is an
// error, and so is a listed case that no longer fails.
//
// Usage: h2spec PROGRAM, where PROGRAM is the built signalbox.
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/summerwind/h2spec/config"
	"github.com/summerwind/h2spec/generic"
	"github.com/summerwind/h2spec/hpack"
	"github.com/summerwind/h2spec/http2"
	"github.com/summerwind/h2spec/spec"
)

const (
	patience   = 2 * time.Second        // for a response of the server, the default of h2spec
	startLimit = 30 * time.Second       // until the program listens
	atOnce     = 8                      // concurrent cases, each on a separate connection
	path       = "/v1/chat/completions" // its handler reads the whole body before it responds
)

// misses are the cases that a listener fails, with reasons; docs/security.md has the same list. All
// are choices of the standard library.
func misses(tls bool) map[string]string {
	out := map[string]string{
		"http2/6.5.3/1":   "a setting that is given twice is an error of the connection, as an endless list of them would cost us and not who sends it",
		"http2/8.1.2.2/1": "a malformed request is answered with 400 on its stream, as RFC 9113 section 8.1.1 permits; the case knows RFC 7540",
		"http2/8.1.2.2/2": "the same",
	}
	if !tls {
		out["http2/3.5/2"] = "the port speaks HTTP/1.1 too, and what is no preface of HTTP/2 is answered in it"
	}
	return out
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: h2spec PROGRAM")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "h2spec:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, program string) error {
	dir, err := os.MkdirTemp("", "h2spec")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all sync.WaitGroup
	var errs [2]error
	for i, tls := range []bool{false, true} {
		all.Go(func() { errs[i] = measure(ctx, program, dir, tls) })
	}
	all.Wait()
	return errors.Join(errs[:]...)
}

// measure starts the program, runs every case against it and compares the failed cases with the
// list.
func measure(ctx context.Context, program, dir string, tls bool) error {
	name := map[bool]string{false: "h2c", true: "TLS"}[tls]
	address, stop, err := serve(ctx, program, filepath.Join(dir, name), tls)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer stop()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	begun := time.Now()
	c := &config.Config{Host: host, Port: number, Path: path, Timeout: patience, MaxHeaderLen: 4000, TLS: tls, Insecure: true} // like h2spec's own command
	got, cases := missed(c)
	fmt.Printf("h2spec over %s: %d of %d cases in %s\n", name, cases-len(got), cases, time.Since(begun).Round(time.Millisecond))
	want := misses(tls)
	var bad []string
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if want[id] == "" {
			bad = append(bad, fmt.Sprintf("%s is missed: %v", id, got[id]))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if got[id] == nil {
			bad = append(bad, id+" is missed no longer: take it off the list")
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("%s:\n  %s", name, strings.Join(bad, "\n  "))
	}
	return nil
}

// again is the number of retries of a failed case. Some cases race with the response: a server that
// has sent all of it resets the stream without an error before it has read the invalid next frame,
// about once in five runs. A case that the server cannot pass fails every time.
const again = 2

// missed runs every case and returns the failed ones, by id, and the number of cases.
func missed(c *config.Config) (map[string]error, int) {
	var (
		mu    sync.Mutex
		all   sync.WaitGroup
		out   = map[string]error{}
		cases int
		slots = make(chan struct{}, atOnce)
	)
	var visit func(g *spec.TestGroup)
	visit = func(g *spec.TestGroup) {
		for i, tc := range g.Tests {
			cases++
			id := fmt.Sprintf("%s/%d", g.ID(), i+1)
			slots <- struct{}{}
			all.Go(func() {
				defer func() { <-slots }()
				err := try(c, tc)
				for range again {
					if err == nil {
						break
					}
					err = try(c, tc)
				}
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					out[id] = err
				}
			})
		}
		for _, sub := range g.Groups {
			visit(sub)
		}
	}
	for _, g := range []*spec.TestGroup{generic.Spec(), http2.Spec(), hpack.Spec()} {
		visit(g)
	}
	all.Wait()
	return out, cases
}

// try runs a case on a separate connection.
func try(c *config.Config, tc *spec.TestCase) error {
	conn, err := spec.Dial(c)
	if err != nil {
		return err
	}
	defer conn.Close()
	return tc.Run(c, conn)
}

var listening = regexp.MustCompile(`msg=listening address=(\S+)`)

// serve starts the program on free ports and returns the address of its main listener, and a
// function that stops it.
func serve(ctx context.Context, program, dir string, tls bool) (address string, stop func(), err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	text := "models: [{name: m, endpoints: [{name: a, url: \"http://127.0.0.1:9/v1\"}]}]\ndefault: {models: [m]}\n"
	if tls {
		if err := certificate(dir); err != nil {
			return "", nil, err
		}
		text += "server: {tls: {cert_file: cert.pem, key_file: key.pem}}\n"
	}
	file := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, program, "serve", "--config", file, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
	out, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	// All output is read until the program ends, so that it never blocks on writing.
	said, found := make(chan struct{}), make(chan string, 1)
	go func() {
		defer close(said)
		var text strings.Builder
		for r := bufio.NewScanner(out); r.Scan(); {
			if m := listening.FindStringSubmatch(r.Text()); m != nil {
				found <- m[1]
				_, _ = io.Copy(io.Discard, out)
				return
			}
			text.WriteString(r.Text() + "\n")
		}
		fmt.Fprint(os.Stderr, text.String())
	}()
	stop = func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-said
		_ = cmd.Wait()
	}
	select {
	case address = <-found:
		return address, stop, nil
	case <-said:
		err = errors.New("the program ended")
	case <-time.After(startLimit):
		err = fmt.Errorf("the program does not listen after %s", startLimit)
	}
	stop()
	return "", nil, err
}

// certificate writes a self-signed certificate; nothing verifies it.
func certificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: cert}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
