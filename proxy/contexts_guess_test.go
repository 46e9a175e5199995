package proxy

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/memory"
	"signalbox/proxy/auth"
)

// S11: an id alone gives no access. An id that was guessed, belongs to another tenant, key or
// session, has a lease of another caller, was deleted, or has expired elsewhere gets the same
// response, to the byte, as one that never existed. Ids have at least 128 random bits.
func TestS11AnIDThatIsNotOnesOwnIsNone(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	b := startContexts(t, memory.Options{Now: clock.Now}, func(s *setup) {
		s.auth = auth.Options{Mode: auth.ModeKeys, Keys: []auth.KeyOptions{
			{Name: "ann", SHA256: sha("ann"), Tenant: "acme"}, {Name: "bob", SHA256: sha("bob"), Tenant: "acme"}, {Name: "eve", SHA256: sha("eve"), Tenant: "globex"},
		}}
	})
	create := func(body string) string {
		return ok[seen](t, b.post(all, body, "Authorization", "Bearer ann", "X-Signalbox-Session", "s1"), 200).ID
	}
	drop := func(id string) {
		ok[any](t, b.do(http.MethodDelete, all+"/"+id, "", "Authorization", "Bearer ann"), 200)
	}
	shared, private, session := create(`{"content":"a"}`), create(`{"content":"a","scope":"private"}`), create(`{"content":"a","scope":"session"}`)
	deleted, leased, expired := create(`{"content":"a"}`), create(`{"content":"a"}`), create(`{"content":"a","scope":"private","ttl":"10s"}`)
	lease, _ := ok[map[string]any](t, b.post(all+"/"+leased+"/leases", `{"ttl":"1h"}`, "Authorization", "Bearer ann"), 200)["id"].(string)
	drop(deleted)
	drop(leased)
	clock.Pass(time.Minute)
	if got := b.do(http.MethodGet, all+"/"+expired, "", "Authorization", "Bearer ann"); got.status != http.StatusGone {
		t.Fatalf("one's own that has expired: %d", got.status)
	}
	if got := b.do(http.MethodGet, all+"/"+leased+"/content?lease="+lease, "", "Authorization", "Bearer ann"); got.status != http.StatusOK {
		t.Fatalf("one's own that is leased: %d", got.status)
	}
	never := "ctx_" + strings.Repeat("a", 26)
	flipped := shared[:len(shared)-1] + string("ab"[strings.Count(shared[len(shared)-1:], "a")]) // the last character is another
	ways := map[string]func(id, key string) answered{
		"get": func(id, key string) answered {
			return b.do(http.MethodGet, all+"/"+id, "", "Authorization", "Bearer "+key)
		},
		"version": func(id, key string) answered {
			return b.do(http.MethodGet, all+"/"+id+"@1", "", "Authorization", "Bearer "+key)
		},
		"content": func(id, key string) answered {
			return b.do(http.MethodGet, all+"/"+id+"/content?lease="+lease, "", "Authorization", "Bearer "+key)
		},
		"wake": func(id, key string) answered { return b.post(all+"/"+id+"/wake", "", "Authorization", "Bearer "+key) },
		"delete": func(id, key string) answered {
			return b.do(http.MethodDelete, all+"/"+id, "", "Authorization", "Bearer "+key)
		},
		"parent": func(id, key string) answered {
			return b.post(all, `{"content":"b","parent":"`+id+`"}`, "Authorization", "Bearer "+key)
		},
		"chat": func(id, key string) answered { return b.chat(with(quoted(id), hi), "Authorization", "Bearer "+key) },
		"leased chat": func(id, key string) answered {
			return b.chat(with(`{"id":"`+id+`","lease":"`+lease+`"}`, hi), "Authorization", "Bearer "+key)
		},
	}
	for way, call := range ways {
		want := call(never, "eve")
		if want.status != http.StatusNotFound || want.code(t) != "context_not_found" {
			t.Fatalf("%s of one that never was: %d %s", way, want.status, want.body)
		}
		for name, c := range map[string]struct{ id, key string }{
			"of another tenant": {shared, "eve"}, "private, of another tenant": {private, "eve"}, "of a session of another tenant": {session, "eve"},
			"deleted, of another tenant": {deleted, "eve"}, "leased, of another tenant": {leased, "eve"}, "expired, of another tenant": {expired, "eve"},
			"private, of a colleague": {private, "bob"}, "of another session": {session, "ann"}, "expired, of a colleague": {expired, "bob"},
			"deleted": {deleted, "ann"}, "guessed": {flipped, "eve"}, "guessed by its own tenant": {flipped, "ann"}, "never there": {never, "ann"},
		} {
			got := call(c.id, c.key)
			if diff := cmp.Diff(faceOf(want, never), faceOf(got, c.id)); diff != "" {
				t.Errorf("%s, %s (-never was +got):\n%s", way, name, diff)
			}
		}
	}
	if got := b.do(http.MethodGet, all+"/"+shared+"/content", "", "Authorization", "Bearer bob"); got.status != http.StatusOK {
		t.Errorf("of a colleague, for the tenant: %d %s", got.status, got.body)
	}
	ids := map[string]bool{}
	for range 200 {
		id := create(`{"content":"a"}`)
		if ids[id] || len(id) != len("ctx_")+26 { // 26 characters of 5 bits
			t.Fatalf("id %q", id)
		}
		ids[id] = true
	}
	for at := range 26 {
		letters := map[byte]bool{}
		for id := range ids {
			letters[id[len("ctx_")+at]] = true
		}
		if len(letters) < 20 { // of 32; 200 draws miss 13 of them with a chance under 1e-30
			t.Errorf("character %d of 200 ids is one of %d: %q", at, len(letters), slices.Sorted(maps.Keys(letters)))
		}
	}
}

// faceOf returns everything in a response that could distinguish cases: all but its time, the
// request id and the requested id.
func faceOf(a answered, id string) map[string]any {
	h := a.header.Clone()
	for _, own := range []string{"Date", "X-Request-Id", "Server-Timing"} {
		h.Del(own)
	}
	return map[string]any{"status": a.status, "header": h, "body": strings.ReplaceAll(a.body, id, "ID")}
}
