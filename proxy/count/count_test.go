package count

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox/proxy/backend"
	"signalbox/proxy/framing"
	"signalbox/proxy/pool"
)

// TestServersThatCannotCountAreNotAskedAgain checks that a server without the path is not asked for
// a while, and that one that is only busy, or refuses the prompt, is asked the next time.
func TestServersThatCannotCountAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	for status, again := range map[int]bool{
		http.StatusOK: true, http.StatusBadRequest: true, http.StatusTooManyRequests: true, http.StatusServiceUnavailable: true,
		http.StatusNotFound: false, http.StatusMethodNotAllowed: false, http.StatusNotImplemented: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, `{"count": 3}`)
		}))
		t.Cleanup(server.Close)
		g, err := pool.New("m", []pool.EndpointOptions{{Name: "a", URL: server.URL + "/v1"}}, pool.HealthOptions{}, pool.QueueOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, m := New(framing.Transport{Transport: &http.Transport{}}), &backend.Model{Group: g}
		t.Cleanup(g.CloseIdle)
		if n, ok := c.Tokenize(t.Context(), c.Of(m), Path, strings.NewReader(`{}`)); ok != (status == http.StatusOK) || ok && n != 3 {
			t.Errorf("status %d: %d tokens, %v", status, n, ok)
		}
		if got := c.Of(m) != nil; got != again {
			t.Errorf("behind status %d the server is asked again: %v, want %v", status, got, again)
		}
	}
}
