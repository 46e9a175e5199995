package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/pool"
)

// stateful is a server of the Responses API: it alone has what it has answered with.
func stateful(tb testing.TB, name string) *testkit.Upstream {
	tb.Helper()
	kept := map[string]bool{}
	return testkit.NewUpstream(tb, func(u *testkit.Upstream, w http.ResponseWriter, _ *http.Request) {
		var req struct {
			Previous     string `json:"previous_response_id"`
			Conversation string `json:"conversation"`
		}
		_ = json.Unmarshal(lastBody(u), &req)
		w.Header().Set("Content-Type", "application/json")
		if req.Previous != "" && !kept[req.Previous] {
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"error":{"message":"no %s at %s"}}`, req.Previous, name)
			return
		}
		id := fmt.Sprintf("resp_%s_%d", name, len(kept))
		kept[id] = true
		_, _ = fmt.Fprintf(w, `{"id":%q,"object":"response","status":"completed","model":"m","output":[]}`, id)
	})
}

// responseOf is the id of a response.
func responseOf(tb testing.TB, a answered) string {
	tb.Helper()
	var r struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(a.body), &r); err != nil || r.ID == "" {
		tb.Fatalf("status %d: %s (%v)", a.status, a.body, err)
	}
	return r.ID
}

func TestAResponseIsGoneOnWithAtTheServerThatHasIt(t *testing.T) {
	t.Parallel()
	servers := []*testkit.Upstream{stateful(t, "a"), stateful(t, "b"), stateful(t, "c"), stateful(t, "d")}
	b := start(t, oneModel(servers...), sticks)
	for _, model := range []string{"auto", "small"} {
		first := b.post("/v1/responses", `{"model":"`+model+`","input":"hello"}`)
		at, id := first.header.Get("X-Signalbox-Endpoint"), responseOf(t, first)
		for turn := range 12 {
			next := b.post("/v1/responses", `{"model":"`+model+`","input":"go on","previous_response_id":"`+id+`"}`)
			if got := next.header.Get("X-Signalbox-Endpoint"); next.status != http.StatusOK || got != at {
				t.Fatalf("%s, turn %d: status %d at %s, begun at %s: %s", model, turn, next.status, got, at, next.body)
			}
			id = responseOf(t, next)
		}
	}
}

func TestAResponseIsGoneOnWithByItsModelWhateverTheSubject(t *testing.T) {
	t.Parallel()
	models := oneModel()
	for i := range models { // each of a server of its own
		up := stateful(t, models[i].Name)
		models[i].Endpoints = []pool.EndpointOptions{{Name: "e", URL: up.URL()}}
	}
	b := unsure(t, models)
	first := b.post("/v1/responses", `{"model":"auto","input":"math: integrate x"}`).
		goes(t, "the first turn", "new  big high")
	b.post("/v1/responses", `{"model":"auto","input":"law","previous_response_id":"`+responseOf(t, first)+`"}`).
		goes(t, "another subject", "kept server_state big high")
}
