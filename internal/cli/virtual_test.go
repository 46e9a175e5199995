package cli

import (
	"net/http"
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
