package proxy

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// A new route must be added to tools/configref/openapi.go, followed by `make generate`.
func TestEveryRouteIsDescribed(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../internal/app/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	r, _ := (&Proxy{}).router()
	routes := map[string]bool{}
	err = chi.Walk(r, func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		path = strings.Replace(path, "/v1/models/*", "/v1/models/{model}", 1)
		routes[strings.ToLower(method)+" "+path] = true
		if doc.Paths[path][strings.ToLower(method)] == nil {
			t.Errorf("%s %s is not described", method, path)
		}
		return nil
	})
	if err != nil || len(routes) < 30 {
		t.Fatalf("%d routes, %v", len(routes), err)
	}
	for path, item := range doc.Paths {
		for method := range item {
			if item["servers"] == nil && !routes[method+" "+path] {
				t.Errorf("%s %s is described and not there", method, path)
			}
		}
	}
}
