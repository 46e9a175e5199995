package proxy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/proxy/placement"
	"signalbox/proxy/recent"
)

// settles waits until what is recorded after responses is available.
func settles[T any](tb testing.TB, look func() T, good func(T) bool) T {
	tb.Helper()
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(time.Millisecond) {
		if got := look(); good(got) {
			return got
		} else if time.Now().After(end) {
			tb.Fatalf("what is recorded stays %+v", got)
		}
	}
}

func TestConversationsAreListedWithWhatBecameOfThem(t *testing.T) {
	t.Parallel()
	up := okUpstream(t)
	b := unsure(t, oneModel(up))
	talks := func(good func([]recent.Followed) bool) []recent.Followed {
		t.Helper()
		return settles(t, b.proxy.Recent().Talks, good)
	}
	first := long("math: integrate x")
	b.chat(chatOf("", first))
	b.chat(chatOf("", "user something else"))
	b.chat(chatOf("", first, "assistant It is.", "user perhaps explain it"), "X-Request-Id", "r-2")
	x := talks(func(l []recent.Followed) bool { return len(l) == 1 })[0]
	if x.Kept != 1 || x.Moved != 0 || x.Named || x.Model != "big" || x.ID != "r-2" || x.From != "" || x.Tokens == 0 || x.Tenant == "" {
		t.Errorf("after a turn that was kept: %+v", x)
	}
	b.chat(chatOf("", first, "assistant It is.", "user perhaps explain it", "assistant Well.", "user law: what is a tort"),
		"X-Request-Id", "r-3")
	x = talks(func(l []recent.Followed) bool { return len(l) == 1 && l[0].Moved == 1 })[0]
	if x.Kept != 1 || x.Model != "effort" || x.From != "big" || x.To != "effort" || x.Reason == "" || x.ID != "r-3" {
		t.Errorf("after one that moved: %+v", x)
	}
	for range 2 {
		b.chat(chatOf("", "user hello there"), "X-Signalbox-Session", "mine")
	}
	if x = talks(func(l []recent.Followed) bool { return len(l) == 2 })[0]; !x.Named || x.Kept != 1 {
		t.Errorf("one that has a name: %+v", x)
	}
	for i := range 2 * (recent.MaxFollowed + 5) {
		b.chat(chatOf("", "user hello there"), "X-Signalbox-Session", fmt.Sprint(i/2))
	}
	list := talks(func(l []recent.Followed) bool { return len(l) == recent.MaxFollowed })
	for i := 1; i < len(list); i++ {
		if list[i].Last.After(list[i-1].Last) {
			t.Fatalf("not the newest first: %v behind %v", list[i].Last, list[i-1].Last)
		}
	}
}

func TestPrefixesOfAnEndpointNameTheirRequest(t *testing.T) {
	t.Parallel()
	up := okUpstream(t)
	b := unsure(t, oneModel(up))
	long := chatOf("", "user law: "+strings.Repeat("all that was written down ", 400))
	for range 2 {
		b.chat(long, "X-Signalbox-Session", "mine", "X-Request-Id", "r-1")
	}
	b.chat(chatOf("", "user law: hello"))
	name := b.state.ByName["effort"].Endpoints[0].Name
	list := settles(t, func() []placement.HeldPrefix { l, _ := b.proxy.Prefixes("effort", name); return l },
		func(l []placement.HeldPrefix) bool { return len(l) == 1 && l[0].Requests == 2 })
	if x := list[0]; x.By != "session" || x.ID != "r-1" || !x.Held || x.Tokens == 0 || len(x.Key) != 8 {
		t.Errorf("%+v", x)
	}
	if l, ok := b.proxy.Prefixes("big", b.state.ByName["big"].Endpoints[0].Name); !ok || l == nil || len(l) != 0 {
		t.Errorf("of an endpoint that got nothing: %v, %v", l, ok)
	}
	for _, x := range [][2]string{{"none", name}, {"effort", "none"}} {
		if _, ok := b.proxy.Prefixes(x[0], x[1]); ok {
			t.Errorf("%v is there", x)
		}
	}
}
