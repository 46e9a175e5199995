package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestARefusedTokenIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ token, message, want string }{
		{"", "this needs server.admin_token\n", "set SIGNALBOX_ADMIN_TOKEN to it"},
		{"Bearer x", "this needs server.admin_token\n", "the server was started without one"},
		{
			"Bearer x", "this needs server.admin_token as bearer token, and what was sent is another\n",
			"SIGNALBOX_ADMIN_TOKEN has the wrong value",
		},
	} {
		req := &http.Request{Header: http.Header{"Authorization": {c.token}}}
		err := refusal(req, "403 Forbidden", []byte(c.message))
		if !strings.HasSuffix(err.Error(), "; "+c.want) {
			t.Errorf("with %q: %v", c.token, err)
		}
		if err := refusal(req, "404 Not Found", []byte("no such key")); strings.Contains(err.Error(), "ADMIN_TOKEN") {
			t.Errorf("with %q: %v", c.token, err)
		}
	}
}

func TestAKeyIsMeantByItsIDOrElseByItsName(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"keys": [{"id": "k1", "name": "app"}, {"id": "app2", "name": "k3"},
			{"id": "k3", "name": "other"}, {"id": "app3", "name": "k1"}]}`)
	}))
	defer s.Close()
	c := command{Streams: Streams{Env: func(string) (string, bool) { return "", false }}}
	for word, want := range map[string]string{"k1": "k1", "app": "k1", "k3": "k3", "nobody": "nobody", "other": "k3"} {
		got, err := c.keyID(t.Context(), s.URL, word)
		if got != want || err != nil {
			t.Errorf("%s means %q, %v; want %q", word, got, err, want)
		}
	}
}
