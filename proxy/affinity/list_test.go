package affinity_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"signalbox/proxy/affinity"
)

func TestPrefixesAreListedByWhatTheyBelongTo(t *testing.T) {
	s := newStage(t, nil)
	list := func(i int) (out []affinity.CachedPrefix) { return s.Prefixes(s.Now(), i) }
	first, _ := s.serve(s.request("a"), 0)
	at := first.Endpoint
	k := s.place(s.request("a"))
	k.First(s.Now())
	k.End(s.Now(), affinity.Usage{Prompt: 5000, Cached: 3000, Of: "req_2"})
	failed := s.place(s.request("a"))
	failed.End(s.Now(), affinity.Usage{Failed: true, Of: "req_3"})
	got := list(at)
	if len(got) != 1 || got[0].Requests != 2 || got[0].Tokens != 5000 || got[0].Cached != 3000 || got[0].Of != "req_2" ||
		got[0].Blocks != len(s.request("a").Blocks) || !got[0].Held || got[0].Source != affinity.Session {
		t.Fatalf("after two requests and one that failed: %+v", got)
	}
	for other := range 4 {
		if other != at && len(list(other)) > 0 {
			t.Errorf("endpoint %d has %+v", other, list(other))
		}
	}
	old := s.Placer
	es := []affinity.Endpoint{{Name: fmt.Sprint("e", at), Weight: 1, Tokens: 100_000}}
	next, err := affinity.New(es, affinity.DefaultOptions(), s.Now())
	if err != nil {
		t.Fatal(err)
	}
	next.Adopt(old)
	if got := next.Prefixes(s.Now(), 0); len(got) != 1 || !got[0].Held {
		t.Errorf("after a reload: %+v", got)
	}
	next.Forget(0) // its server restarted
	if got := next.Prefixes(s.Now(), 0); len(got) != 1 || got[0].Held {
		t.Errorf("after a restart of the server: %+v", got)
	}
}

func TestTheLastPrefixesOfAnEndpointAreListed(t *testing.T) {
	s := newStage(t, func(_ *affinity.Options, es []affinity.Endpoint) {
		for i := range es {
			es[i].Tokens = 10_000_000
		}
	})
	for i := range 400 {
		s.serve(s.request(fmt.Sprint("w", i)), 0)
	}
	last := time.Time{}
	for i := range 4 {
		got := s.Prefixes(s.Now(), i)
		if len(got) != 64 || !slices.IsSortedFunc(got, func(a, b affinity.CachedPrefix) int { return b.Last.Compare(a.Last) }) {
			t.Errorf("endpoint %d: %d prefixes, want the last 64 with the newest first", i, len(got))
		}
		if got[0].Last.After(last) {
			last = got[0].Last
		}
	}
	if !last.Equal(s.Now()) {
		t.Errorf("the newest is of %v, not of %v", last, s.Now())
	}
}
