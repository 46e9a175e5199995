package recent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/memory/conversation"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/signals"
	"signalbox/stream/response"
)

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	r := New()
	for i := range maxKept + 10 {
		r.add(&sighting{size: 1, shown: &Seen{Seq: uint64(i)}})
	}
	if len(r.lines) != maxKept || r.size != maxKept || r.lines[0].seq != 11 {
		t.Errorf("%d decisions of %d bytes, the first is %d", len(r.lines), r.size, r.lines[0].seq)
	}
	r.add(&sighting{size: maxSize - 2, shown: &Seen{}})
	if len(r.lines) != 3 || r.size != maxSize {
		t.Errorf("%d decisions of %d bytes", len(r.lines), r.size)
	}
}

func TestDecisionsBeyondWhatAPersonReadsAreCounted(t *testing.T) {
	t.Parallel()
	r, now := New(), time.Unix(1000, 0)
	x := &Request{At: now}
	kept := 0
	for range perSecond + 5 {
		if r.Count(t.Context(), x) {
			kept++
		}
	}
	if _, skipped, _ := r.After(0, 1); kept != perSecond || skipped != 5 {
		t.Errorf("%d kept, %d skipped", kept, skipped)
	}
	if !r.Count(Shown(t.Context()), x) ||
		!r.Count(t.Context(), &Request{At: now.Add(time.Second)}) {
		t.Error("one that is to be shown, or of the next second, is not kept")
	}
}

func TestKeysOfConversationsAreBounded(t *testing.T) {
	t.Parallel()
	r, m := New(), &backend.Model{Model: &choose.Model{Name: "m"}}
	for i := range 2 * (MaxFollowed + 5) {
		key := func(n byte) conversation.Key { return conversation.Key{byte(i), byte(i >> 8), n} }
		turn := &decide.Turn{Found: []conversation.Key{key(0)}, Keys: []conversation.Key{key(0), key(1)}, From: "m"}
		r.Count(t.Context(), &Request{Fate: "kept", Turn: turn, Model: m})
	}
	if len(r.Talks()) != MaxFollowed || len(r.followed.at) != 2*MaxFollowed {
		t.Errorf("%d keys are kept of %d conversations", len(r.followed.at), len(r.Talks()))
	}
}

func TestRequestsAreCountedWhoseAnswersTellNoTokens(t *testing.T) {
	t.Parallel()
	r := New()
	m := &backend.Model{Model: &choose.Model{Name: "m", Price: choose.Price{Input: 1, Output: 2}}}
	for _, x := range []Request{
		{Model: m, Tells: true, Used: response.Usage{Input: 100, Output: 10}},
		{Model: m, Tells: true},
		{Model: m, Tells: true},
		{Model: m}, // it failed
		{},         // no model was asked
	} {
		r.Count(t.Context(), &x)
	}
	got := r.Tally()
	want := []Spent{{Model: "m", Requests: 4, Untold: 2, Prompt: 100, Completion: 10, Cost: 120e-6}}
	if diff := cmp.Diff(want, got.Spent); got.Decided != 5 || diff != "" {
		t.Errorf("%d decided; spent (-want +got):\n%s", got.Decided, diff)
	}
}

// BenchmarkRecent measures what a request costs for the operators' view once a second's quota is
// used.
func BenchmarkRecent(b *testing.B) {
	r, now := New(), time.Unix(1000, 0)
	m := &backend.Model{Model: &choose.Model{}}
	b.ReportAllocs()
	for b.Loop() {
		r.Count(b.Context(), &Request{Model: m, Used: response.Usage{Input: 100, Output: 100}, At: now})
	}
}

// written is a line that says who wrote it.
type written string

func (w written) Entry() *decisionlog.Entry { return &decisionlog.Entry{ID: string(w)} }

func (written) Quote(*decisionlog.Entry) {}

func (w written) Reasons() (map[string]signals.Trace, []Route) {
	return nil, []Route{{Name: string(w)}}
}

func TestAReplacedConfigurationIsNotHeldOnTo(t *testing.T) {
	t.Parallel()
	r := New()
	r.Adopt("old")
	r.Add(&Request{}, &Kept{ID: "a", Of: "old", Line: written("a")})
	before := r.Find("a")
	r.Adopt("new")
	r.Add(&Request{}, &Kept{ID: "b", Of: "old", Line: written("b")}) // was under way
	r.Add(&Request{}, &Kept{ID: "c", Of: "new", Line: written("c")})
	for i, s := range r.lines {
		if held := s.taken != nil; held != (i == 2) {
			t.Errorf("decision %d is as it was taken down: %v", i, held)
		}
	}
	if diff := cmp.Diff(before, r.Find("a")); diff != "" {
		t.Errorf("shown differently (-before +after):\n%s", diff)
	}
}
