package relay

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/pool"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

func TestMain(m *testing.M) { testkit.VerifyNoLeaks(m) }

// The result does not depend on how a stream is cut. A stream without an error ends with its end
// mark, and events that need no repair pass byte for byte.
func FuzzStreamSurvivesAnyCut(f *testing.F) {
	whole := testkit.Event("a") + ": ping\n\n" + testkit.Finish + testkit.Done
	f.Add([]byte(whole), uint16(3))
	f.Add([]byte(strings.ReplaceAll(whole, "\n", "\r\n")), uint16(1))
	f.Add([]byte(strings.ReplaceAll(whole, "\n", "\r")), uint16(1))
	f.Add([]byte("data: x\n\ndata: [DONE]"), uint16(7))
	f.Add([]byte("data: [DONE]\n\nlate"), uint16(2))
	f.Add([]byte("\xef\xbb\xbfevent: error\ndata: {\ndata: }\n\n"), uint16(2))
	f.Add([]byte(testkit.Finish), uint16(2))
	f.Fuzz(func(t *testing.T, s []byte, step uint16) {
		want, wantErr := pass(s, len(s)+1)
		got, err := pass(s, int(step)%512+1)
		switch {
		case !bytes.Equal(got, want) || (err == nil) != (wantErr == nil):
			t.Errorf("%q in pieces of %d: %q, %v; whole: %q, %v", s, int(step)%512+1, got, err, want, wantErr)
		case err == nil && !regexp.MustCompile(`(^|[\r\n])data: ?\[DONE\]`).Match(got):
			t.Errorf("%q passed as whole", got)
		case bytes.HasPrefix(s, []byte(testkit.Event("a"))) && !bytes.HasPrefix(got, []byte(testkit.Event("a"))):
			t.Errorf("%q became %q", s, got)
		}
	})
}

type pieces struct {
	s    []byte
	step int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.s) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.s[:min(p.step, len(p.s))])
	p.s = p.s[n:]
	return n, nil
}

func (*pieces) Close() error { return nil }

// pass sends a stream through the copy loop.
func pass(s []byte, step int) ([]byte, error) {
	m := &backend.Model{Model: &choose.Model{Name: "m"}, Group: &pool.Group{}, Gap: time.Minute}
	u := upstream.Open(context.Background(), m, &pool.Endpoint{}, 0,
		func(context.Context) io.ReadCloser { return &pieces{s, step} }, &response.StreamOptions{})
	defer u.Close()
	rec := httptest.NewRecorder()
	client := &downstream.Sink{W: downstream.New(rec, &http.Request{Header: http.Header{}})}
	u.Observe(&meter{metrics: telemetry.Discard().Metrics, model: "m"})
	err := copyEvents(u, client, client)
	return rec.Body.Bytes(), err
}

// cancellable is a body that ends when the watchdog cancels the attempt.
type cancellable struct {
	pieces

	ctx context.Context // that of the attempt
}

func (b *cancellable) Read(to []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.pieces.Read(to)
}

// slowReader is a client that takes time for every piece of the response.
type slowReader struct {
	http.ResponseWriter

	pause time.Duration
}

func (c *slowReader) Write(b []byte) (int, error) {
	time.Sleep(c.pause)
	return c.ResponseWriter.Write(b)
}

func (*slowReader) Flush() {}

// A client that reads slowly does not make the upstream late.
func TestTheTimeOfTheClientIsNotTheUpstreams(t *testing.T) {
	t.Parallel()
	const gap = 5 * time.Second
	stream := strings.Repeat(testkit.Event(" token"), 3) + testkit.Done
	for name, events := range map[string]bool{"a stream of events": true, "another body": false} {
		synctest.Test(t, func(t *testing.T) {
			m := &backend.Model{Model: &choose.Model{Name: "m"}, Group: &pool.Group{}, Gap: gap}
			var o *response.StreamOptions
			if events {
				o = new(response.StreamOptions)
			}
			u := upstream.Open(t.Context(), m, &pool.Endpoint{}, gap, func(ctx context.Context) io.ReadCloser {
				return &cancellable{pieces{[]byte(stream), len(testkit.Event(" token"))}, ctx}
			}, o)
			u.Length = int64(len(stream))
			rec := httptest.NewRecorder()
			w := downstream.New(&slowReader{rec, 2 * gap}, &http.Request{Header: http.Header{}})
			meter := &meter{metrics: telemetry.Discard().Metrics, model: "m"}
			pass := func() error { return downstream.CopyBody(w, u, &meter.Tally, nil) }
			if events {
				u.Observe(meter)
				client := &downstream.Sink{W: w}
				pass = func() error { return copyEvents(u, client, client) }
			}
			if err := pass(); err != nil || rec.Body.String() != stream {
				t.Errorf("%s: %v, sent %q", name, err, rec.Body.String())
			}
			if u.Late() {
				t.Errorf("%s: the upstream is called late", name)
			}
			u.Close()
			time.Sleep(time.Hour) // nothing is left that ticks
		})
	}
}
