package memory

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// gate holds whoever enters until it has seen n different names, and counts how often each came.
type gate struct {
	n    int
	open chan struct{}
	late <-chan struct{} // closed when nothing comes any more

	mu   sync.Mutex // guards seen
	seen map[string]int
}

func newGate(n int, late <-chan struct{}) *gate {
	return &gate{n: n, open: make(chan struct{}), late: late, seen: map[string]int{}}
}

func (g *gate) enter(name string) {
	g.mu.Lock()
	g.seen[name]++
	if len(g.seen) == g.n && g.seen[name] == 1 {
		close(g.open)
	}
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-g.late:
	}
}

// gated is a Remote whose objects come in when all have been asked for.
type gated struct {
	Remote
	*gate
}

func (g gated) Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error) {
	g.enter(fmt.Sprint(t, o.Sum))
	return g.Remote.Get(ctx, t, o)
}

// S3: requests that need the same at the same time wait for one of them. Those of different
// tenants, or for different texts, never do, however long what their names and texts begin with is
// the same: all are under way before the first one ends, each once.
func TestS3OnlyTheSameTextOfTheSameTenantIsFetchedAndReadOnceForAll(t *testing.T) {
	t.Parallel()
	server, clock := testkit.NewRedis(t), testkit.NewClock()
	long := strings.Repeat("a", 300)
	tenants, texts := []string{"", "a", "a\x00", "a\x00b", long + "1", long + "2"}, []string{"b", "b\x00", long + "1", long + "2", long + long}
	first := newStore(t, Options{Now: clock.Now, Revision: "r1"}, connect(t, server, clock.Now))
	n := len(tenants) * len(texts)
	var wants []struct {
		owner Owner
		id    string
		text  string
	}
	for _, tenant := range tenants {
		for _, text := range texts {
			o := Owner{Tenant: tenant}
			wants = append(wants, struct {
				owner Owner
				id    string
				text  string
			}{o, create(t, first, o, draft(text)).ID, text})
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	objects, views := newGate(n, ctx.Done()), newGate(n, ctx.Done())
	second := newStore(t, Options{Now: clock.Now, Revision: "r2", Derive: func(_ context.Context, x Text) (Derived, error) {
		views.enter(fmt.Sprintf("%q %q", x.Tenant, x.Text))
		return Derived{Skeleton: x.Tenant + "|" + x.Text}, nil
	}}, gated{connect(t, server, clock.Now), objects})
	var wg sync.WaitGroup
	for _, w := range wants {
		for range 3 {
			wg.Go(func() {
				snap, err := second.Resolve(ctx, w.owner, Ref{ID: w.id})
				if err != nil {
					t.Errorf("%.20q of %.20q: %v", w.text, w.owner.Tenant, err)
					return
				}
				defer snap.Release()
				if got, err := snap.Text(); err != nil || got != w.text || snap.Derived.Skeleton != w.owner.Tenant+"|"+w.text {
					t.Errorf("%.20q of %.20q is %.40q with %.40q, %v", w.text, w.owner.Tenant, got, snap.Derived.Skeleton, err)
				}
			})
		}
	}
	wg.Wait()
	for what, g := range map[string]*gate{"fetched": objects, "derived": views} {
		if len(g.seen) != n {
			t.Errorf("%d of %d were %s at the same time", len(g.seen), n, what)
		}
		for name, times := range g.seen {
			if times != 1 {
				t.Errorf("%.60s was %s %d times for three requests", name, what, times)
			}
		}
	}
	wantText(t, second, wants[0].owner, Ref{ID: wants[0].id}, wants[0].text, page.Hot)
}
