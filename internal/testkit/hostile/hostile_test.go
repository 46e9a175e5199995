package hostile_test

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	askJSON   = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	askStream = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// client is one raw connection to a server.
type client struct {
	net.Conn
	tb testing.TB
}

func dial(tb testing.TB, s *hostile.Server) *client {
	tb.Helper()
	address := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "http://"), "/v1")
	c, err := new(net.Dialer).DialContext(context.Background(), "tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return &client{c, tb}
}

func (c *client) post(body string, header ...string) {
	_, _ = fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n", len(body))
	for _, h := range header {
		_, _ = io.WriteString(c, h+"\r\n")
	}
	_, _ = io.WriteString(c, "\r\n"+body)
}

// all reads what the server sends: to the end of the connection, once the mode has ended or waits
// for us. end says how.
func (c *client) all(s *hostile.Server, req int) (wire, end string) {
	c.tb.Helper()
	go func() {
		s.Wait(patience, func(e *hostile.Event) bool {
			return e.Req == req && (e.Kind == hostile.Served || e.Kind == hostile.Holding)
		})
		_ = c.Conn.(*net.TCPConn).CloseWrite()
	}()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	got, err := io.ReadAll(c)
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return string(got), "resets"
	case err != nil:
		c.tb.Errorf("request %d: %v", req, err)
	}
	e, _ := s.Wait(patience, func(e *hostile.Event) bool { return e.Req == req && e.Kind == hostile.Served })
	if e.N == 1 {
		return string(got), "keeps"
	}
	return string(got), "ends"
}

// patience is how long a test waits for what must happen.
const patience = testkit.Patience

// binary are the modes whose bytes are compressed, so that they depend on the version of a library.
var binary = map[string]bool{"gzip-json": true, "br-json": true, "zstd-json": true, "deflate-json": true, "deflate-raw": true, "gzip-corrupt": true, "gzip-trunc": true, "gzip-bomb": true, "gzip-stream": true}

// short makes modes that are long by nature short enough to read.
var short = map[string]string{
	"slow-head": "d=0s", "ttft": "d=1ms", "head-ttft": "d=1ms", "idle-close": "d=1ms", "1xx-flood": "n=2", "early-413": "d=1ms", "huge-headers": "kb=1", "header-count": "n=3",
	"after-done": "n=2&d=0s", "slow-drip": "d=0s", "json-huge": "mb=0", "json-deep": "n=5", "coalesced": "n=2", "huge-line": "bytes=20",
	"endless-line": "max=10", "flood": "max=500&bytes=9", "flood-comments": "max=10", "flood-empty-lines": "max=10", "drip-comments": "n=2&d=0s",
	"brownout": "p50=1ms&p99=1ms", "recover-after": "d=1ns", "concurrency-cap": "d=1ms", "rst-mid": "d=30ms", "status": "code=429&ra=7",
}

func TestEveryModeSendsItsBytes(t *testing.T) {
	var page strings.Builder
	s := hostile.Start(t, hostile.Options{Still: true})
	req := 0
	for _, name := range hostile.Modes() {
		if binary[name] || slices.Contains(hostile.Connections(), name) || name == "half-open" {
			continue // tested below, where they can be
		}
		mode := name
		if p := short[name]; p != "" {
			mode += "?" + p
		}
		for _, body := range []string{askJSON, askStream} {
			c := dial(t, s)
			s.Next(mode)
			c.post(body)
			req++
			wire, end := c.all(s, req)
			_ = c.Close()
			fmt.Fprintf(&page, "== %s, streamed: %v\n", mode, body == askStream)
			for line := range strings.SplitAfterSeq(wire, "\n") {
				if line != "" {
					page.WriteString(strconv.Quote(line) + "\n")
				}
			}
			page.WriteString("-- " + end + "\n\n")
		}
	}
	testkit.Golden(t, "wire.txt", page.String(), update)
}

func TestCompressedBodiesAreWhatTheySay(t *testing.T) {
	s := hostile.Start(t, hostile.Options{})
	req := 0
	body := func(mode string) []byte {
		req++
		c := dial(t, s)
		s.Next(mode)
		c.post(askJSON)
		wire, _ := c.all(s, req)
		_, b, _ := strings.Cut(wire, "\r\n\r\n")
		return []byte(b)
	}
	read := func(r io.Reader, err error) string {
		if err != nil {
			return err.Error()
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	plain, err := z.DecodeAll(body("zstd-json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	zlibReader, err := zlib.NewReader(bytes.NewReader(body("deflate-json")))
	got := map[string]string{
		"zstd": string(plain), "deflate": read(zlibReader, err), "raw": read(flate.NewReader(bytes.NewReader(body("deflate-raw"))), nil),
	}
	gz, err := gzip.NewReader(bytes.NewReader(body("gzip-json")))
	got["gzip"] = read(gz, err)
	for encoding, text := range got {
		if text != hostile.Completion {
			t.Errorf("%s decodes to %q", encoding, text)
		}
	}
	for _, mode := range []string{"gzip-trunc", "gzip-corrupt"} {
		gz, err := gzip.NewReader(bytes.NewReader(body(mode)))
		if text := read(gz, err); text == hostile.Completion {
			t.Errorf("%s decodes well", mode)
		}
	}
	if b := body("gzip-bomb?mb=8"); len(b) > 16<<10 {
		t.Errorf("a bomb of %d bytes", len(b))
	}
	if b := body("br-json"); len(b) != len(hostile.Completion)+4 || !bytes.Contains(b, []byte(hostile.Completion)) || b[0]&0xf != 0 || b[2]>>4 != 1 {
		t.Errorf("brotli is %q", b)
	}
}

// decode reads events as the standard says, line by line, without the product's parser.
func decode(stream string) (data []string) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	var lines []string
	for line := range strings.SplitSeq(stream, "\n") {
		if line == "" {
			if len(lines) > 0 {
				data = append(data, strings.Join(lines, "\n"))
			}
			lines = nil
			continue
		}
		if v, ok := strings.CutPrefix(line, "data:"); ok {
			lines = append(lines, strings.TrimPrefix(v, " "))
		}
	}
	return data
}

func TestSplitStreamsHoldTheSameEvents(t *testing.T) {
	s := hostile.Start(t, hostile.Options{Still: true})
	var want []string
	for _, mode := range []string{"split1", "split-bytes", "crlf", "cr", "crlf-split", "mixed-eol", "bom", "bom-split", "nospace", "comments"} {
		c := dial(t, s)
		s.Next(mode)
		c.post(askStream)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got := decode(string(body))
		if want == nil {
			want = got
			if len(got) != 4 || !strings.Contains(got[0], "héé漢字🙂") || got[3] != "[DONE]" {
				t.Fatalf("events are %q", got)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", mode, diff)
		}
	}
}

func TestTheFirstThatNamesAModeDoes(t *testing.T) {
	s := hostile.Start(t, hostile.Options{Mode: "status?code=418"})
	req := 0
	status := func(body string, header ...string) string {
		req++
		c := dial(t, s)
		c.post(body, header...)
		wire, _ := c.all(s, req)
		if len(wire) < len("HTTP/1.1 200") {
			t.Fatalf("answer is %q", wire)
		}
		return wire[len("HTTP/1.1 "):][:3]
	}
	inBody := strings.Replace(askJSON, "hi", "[[fault:status?code=402&ra=1]]", 1)
	if got := status(askJSON); got != "418" {
		t.Errorf("the usual mode answers %s", got)
	}
	if got := status(askJSON, "X-Fault: status?code=403"); got != "403" {
		t.Errorf("the header's mode answers %s", got)
	}
	if got := status(inBody, "X-Fault: status?code=403"); got != "402" {
		t.Errorf("the body's mode answers %s", got)
	}
	s.Next("status?code=401", "ok")
	if got := []string{status(inBody), status(inBody), status(inBody)}; got[0] != "401" || got[1] != "200" || got[2] != "402" {
		t.Errorf("scripted modes answer %v", got)
	}
}

func TestTheLogTellsWhatHappened(t *testing.T) {
	s := hostile.Start(t, hostile.Options{Mode: "watch-stall"})
	c := dial(t, s)
	c.post(askStream)
	if _, ok := s.Wait(patience, func(e *hostile.Event) bool { return e.Kind == hostile.FirstByte }); !ok {
		t.Fatal("no first byte")
	}
	left := time.Now()
	_ = c.Close()
	gone, ok := s.WaitGone(1, patience)
	if !ok || testkit.Timed() && gone.Sub(left) > time.Second {
		t.Errorf("noticed %v after %s", ok, gone.Sub(left))
	}
	if string(s.Body(1)) != askStream || !strings.HasPrefix(s.Head(1), "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n") || s.Requests() != 1 || s.Accepts() != 1 {
		t.Errorf("head %q, body %q", s.Head(1), s.Body(1))
	}
}

func TestAThousandConnectionsAtOnce(t *testing.T) {
	s := hostile.Start(t, hostile.Options{})
	var wg sync.WaitGroup
	var bad atomic.Int64
	for range 1000 {
		wg.Go(func() {
			c := dial(t, s)
			defer c.Close()
			c.post(askStream)
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				bad.Add(1)
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err != nil || !strings.HasSuffix(string(body), hostile.Done) {
				bad.Add(1)
			}
		})
	}
	wg.Wait()
	if bad.Load() > 0 || s.Requests() != 1000 {
		t.Errorf("%d of %d answers were not whole", bad.Load(), s.Requests())
	}
}

func TestConnectionFaults(t *testing.T) {
	var dialer net.Dialer
	address := func(s *hostile.Server) string {
		_, rest, _ := strings.Cut(strings.TrimSuffix(s.URL(), "/v1"), "://")
		return rest
	}
	t.Run("refuse", func(t *testing.T) {
		if _, err := dialer.DialContext(t.Context(), "tcp", address(hostile.Start(t, hostile.Options{Mode: "refuse"}))); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("blackhole", func(t *testing.T) {
		dialer := net.Dialer{Timeout: 300 * time.Millisecond}
		_, err := dialer.DialContext(t.Context(), "tcp", address(hostile.Start(t, hostile.Options{Mode: "blackhole"})))
		var late net.Error
		if !errors.As(err, &late) || !late.Timeout() {
			t.Errorf("got %v", err)
		}
	})
	t.Run("rst-on-accept", func(t *testing.T) {
		c, err := dialer.DialContext(t.Context(), "tcp", address(hostile.Start(t, hostile.Options{Mode: "rst-on-accept"})))
		if err == nil { // else the reset came before the kernel told of the connection
			_ = c.SetReadDeadline(time.Now().Add(patience))
			_, err = c.Read(make([]byte, 1))
			_ = c.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("ends with %v", err)
		}
	})
	t.Run("tls", func(t *testing.T) {
		for mode, want := range map[string]string{"tls-expired": "expired", "tls-wrong-name": "127.0.0.1", "tls-mtls-required": "certificate required"} {
			s := hostile.Start(t, hostile.Options{Mode: mode})
			d := tls.Dialer{Config: &tls.Config{RootCAs: hostile.Roots(), MinVersion: tls.VersionTLS12}}
			c, err := d.DialContext(t.Context(), "tcp", address(s))
			if err == nil {
				_, err = c.Read(make([]byte, 1))
				_ = c.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", mode, err)
			}
		}
	})
}
