package cli

import (
	"net/http"
	"strings"
	"testing"
)

func TestARefusedTokenIsNotCalledMissing(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{
		"":         "set SIGNALBOX_ADMIN_TOKEN to it",
		"Bearer x": "SIGNALBOX_ADMIN_TOKEN has the wrong value",
	} {
		req := &http.Request{Header: http.Header{"Authorization": {token}}}
		err := refusal(req, "403 Forbidden", []byte("this needs server.admin_token\n"))
		if !strings.HasSuffix(err.Error(), "; "+want) {
			t.Errorf("with %q: %v", token, err)
		}
		if err := refusal(req, "404 Not Found", []byte("no such key")); strings.Contains(err.Error(), "ADMIN_TOKEN") {
			t.Errorf("with %q: %v", token, err)
		}
	}
}
