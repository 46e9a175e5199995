package framing

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"
)

// Whatever traces a request, its connection is used again, and is told of every request.
func TestATransportAsksOnEveryRequest(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	t.Cleanup(srv.Close)
	tr := Transport{&http.Transport{DialContext: Dialer(new(net.Dialer).DialContext).Dial}}
	t.Cleanup(tr.CloseIdleConnections)
	var reused int
	foreign := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if i.Reused {
			reused++
		}
	}})
	for i, ctx := range []context.Context{t.Context(), Trace(t.Context()), foreign, Trace(foreign), Trace(Trace(t.Context())), t.Context(), foreign} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		got, err := io.ReadAll(res.Body)
		if err != nil || string(got) != "{}" {
			t.Errorf("request %d: %q, %v", i, got, err)
		}
		_ = res.Body.Close()
	}
	if reused != 3 {
		t.Errorf("a trace of its own saw %d of 3 requests on a connection that was used before", reused)
	}
}
