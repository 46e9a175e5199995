package proxy

import (
	"net/http"
	"strings"
	"testing"
)

func TestAPathThatWasMissedByItsVersionNamesTheOneThatWasMeant(t *testing.T) {
	t.Parallel()
	b, _ := target(t)
	for _, c := range []struct{ method, path, meant string }{
		{"POST", "/chat/completions", "/v1/chat/completions"},
		{"POST", "/v1/v1/chat/completions", "/v1/chat/completions"},
		{"POST", "/v1/v1/messages", "/v1/messages"},
		{"GET", "/models", "/v1/models"},
		{"POST", "/v2/chat/completions", ""},
		{"GET", "/v1/files", ""},
	} {
		got := b.do(c.method, c.path, "{}")
		if got.status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
		if c.meant == "" && strings.Contains(got.body, ", but ") ||
			c.meant != "" && !strings.Contains(got.body, "but at "+c.meant+": see the base URL") {
			t.Errorf("%s %s: %s", c.method, c.path, got.body)
		}
	}
}
