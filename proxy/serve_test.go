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
		{"GET", "/v1/filesystem", ""},
	} {
		got := b.do(c.method, c.path, "{}")
		if got.status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
		if c.meant == "" && strings.Contains(got.body, "did you mean") ||
			c.meant != "" && !strings.Contains(got.body, "did you mean "+c.meant+"? Check the base URL") {
			t.Errorf("%s %s: %s", c.method, c.path, got.body)
		}
	}
}

func TestAPathOfTheAPIThatIsNotServedSaysSo(t *testing.T) {
	t.Parallel()
	b, _ := target(t)
	for _, c := range []struct{ method, path, api string }{
		{"GET", "/v1/files", "/v1/files"},
		{"DELETE", "/v1/files/file-1", "/v1/files"},
		{"POST", "/v1/batches", "/v1/batches"},
		{"POST", "/v1/images/generations", "/v1/images"},
		{"GET", "/v1/realtime", "/v1/realtime"},
		{"POST", "/v1/conversations", "/v1/conversations"},
		{"POST", "/v1/moderations", "/v1/moderations"},
		{"POST", "/v1/vector_stores/vs_1/search", "/v1/vector_stores"},
		{"POST", "/v1/assistants", "/v1/assistants"},
		{"POST", "/v1/threads/runs", "/v1/threads"},
		{"GET", "/v1/responses/resp_1", "/v1/responses/{id}"},
		{"POST", "/v1/responses/resp_1/cancel", "/v1/responses/{id}/cancel"},
		{"GET", "/v1/responses/resp_1/input_items", "/v1/responses/{id}/input_items"},
		{"GET", "/v1/responses/resp_1/other", "/v1/responses/{id}"},
		{"POST", "/v1/responses/compact", "/v1/responses/compact"},
		{"POST", "/v1/responses/input_tokens", "/v1/responses/input_tokens"},
	} {
		want := c.api + " is not supported by this proxy; send the request to the model server directly"
		for _, header := range [][]string{nil, {"Connection", "Upgrade", "Upgrade", "websocket"}} {
			got := b.do(c.method, c.path, "", header...)
			if got.status != http.StatusNotFound || got.error(t).Message != want {
				t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
			}
		}
	}
	if got := b.do("GET", "/v1/responses", ""); got.status != http.StatusMethodNotAllowed {
		t.Errorf("a path that is served, by another method: %d %s", got.status, got.body)
	}
}
