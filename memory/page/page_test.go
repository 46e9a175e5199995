package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = ledger.Tenant("t")

// home is whether there is another than RAM, for a pager or an object.
type home uint8

const (
	ramOnly home = iota
	withL3
)

// shelf is an L3 in RAM.
type shelf struct {
	mu      sync.Mutex
	packed  map[blob.Sum][]byte
	gets    int
	waiting chan struct{} // receives when Get has begun, if set
	gate    chan struct{} // Get goes on when it is closed, if set
	err     error
}

func (s *shelf) Get(_ context.Context, _ ledger.Tenant, o ledger.Object) ([]byte, error) {
	s.mu.Lock()
	packed, err, gate := s.packed[o.Sum], s.err, s.gate
	s.gets++
	s.mu.Unlock()
	if gate != nil {
		s.waiting <- struct{}{}
		<-gate
	}
	if err == nil && packed == nil {
		err = ledger.ErrMissing
	}
	return packed, err
}

func (s *shelf) put(o ledger.Object, packed []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packed[o.Sum] = packed
}

func object(raw []byte) (Key, ledger.Object, []byte) {
	packed, sum := blob.Pack(raw)
	o := ledger.Object{Sum: sum, Size: int64(len(raw)), Packed: int64(len(packed))}
	return Key{Tenant: tenant, Sum: o.Sum}, o, packed
}

// text is n bytes that differ by name and compress about three to one.
func text(name string, n int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := blob.Of(fmt.Appendf(nil, "%s %d", name, i))
		fmt.Fprintf(&b, "%s %x pays the rent. ", name, sum[:4])
	}
	return []byte(b.String()[:n])
}

func pager(tb testing.TB, o Options, is home) (*Pager, *shelf, *testkit.Clock) {
	tb.Helper()
	clock := testkit.NewClock()
	o.Now = clock.Now
	s := &shelf{packed: map[blob.Sum][]byte{}}
	var source Source
	if is == withL3 {
		source = s
	}
	p, err := New(o, source)
	if err != nil {
		tb.Fatal(err)
	}
	return p, s, clock
}

func add(tb testing.TB, p *Pager, s *shelf, raw []byte, is home, c Care) (Key, ledger.Object) {
	tb.Helper()
	k, o, packed := object(raw)
	if is == withL3 {
		s.put(o, packed)
	}
	if err := p.Add(k, Copy{o, raw, packed, is == withL3}, c); err != nil {
		tb.Fatal(err)
	}
	return k, o
}

func get(tb testing.TB, p *Pager, o ledger.Object, raw []byte, from Tier) {
	tb.Helper()
	h, err := p.Get(tb.Context(), tenant, o, Care{})
	if err != nil || !bytes.Equal(h.Bytes, raw) || h.Tier != from {
		tb.Fatalf("got %d bytes from %v, %v; want %d from %v", len(h.Bytes), h.Tier, err, len(raw), from)
	}
	h.Release()
}

func TestIdleObjectsLeaveTierByTierAndComeBack(t *testing.T) {
	t.Parallel()
	p, s, clock := pager(t, Options{}, withL3)
	raw := text("a", 5000)
	k, o := add(t, p, s, raw, withL3, Care{})
	get(t, p, o, raw, Hot)
	for _, step := range []struct {
		pass time.Duration
		want Tier
	}{{29 * time.Second, Hot}, {time.Second, L2}, {4*time.Minute + 29*time.Second, L2}, {time.Second, L3}} {
		clock.Pass(step.pass)
		p.Idle()
		if got := p.Tier(k); got != step.want {
			t.Fatalf("after another %v it is in %v, want %v", step.pass, got, step.want)
		}
	}
	if st := p.Stats(); st != (Stats{}) {
		t.Errorf("nothing is in RAM, and it counts %+v", st)
	}
	get(t, p, o, raw, L3)
	get(t, p, o, raw, Hot)
	if got := p.PageOut(k, L2); got != L2 {
		t.Errorf("paged out to %v", got)
	}
	get(t, p, o, raw, L2)
}

func TestPinnedAnnouncedAndUsedObjectsStay(t *testing.T) {
	t.Parallel()
	p, s, clock := pager(t, Options{}, withL3)
	now := clock.Now()
	pinned, _ := add(t, p, s, text("pinned", 900), withL3, Care{PinUntil: now.Add(time.Hour)})
	soon, _ := add(t, p, s, text("soon", 900), withL3, Care{NextUse: now.Add(30 * time.Minute)})
	used, o := add(t, p, s, text("used", 900), withL3, Care{})
	h, err := p.Get(t.Context(), tenant, o, Care{})
	if err != nil {
		t.Fatal(err)
	}
	clock.Pass(20 * time.Minute)
	p.Idle()
	p.Idle()
	for name, k := range map[string]Key{"pinned": pinned, "announced": soon, "used": used} {
		if got := p.Tier(k); got != Hot {
			t.Errorf("the %s object went to %v", name, got)
		}
	}
	if got := p.PageOut(used, L3); got != Hot {
		t.Errorf("an object in use was paged out to %v", got)
	}
	h.Release()
	clock.Pass(time.Hour)
	p.Idle()
	p.Idle()
	for name, k := range map[string]Key{"pinned": pinned, "announced": soon, "used": used} {
		if got := p.Tier(k); got != L3 {
			t.Errorf("the %s object is still in %v", name, got)
		}
	}
}

func TestWithoutL3NothingIsLostAndFullIsSaid(t *testing.T) {
	t.Parallel()
	p, s, clock := pager(t, Options{Bytes: 64 << 10}, ramOnly)
	held := map[ledger.Object][]byte{}
	for i := 0; ; i++ {
		raw := text(fmt.Sprint("object ", i), 6000)
		k, o, packed := object(raw)
		err := p.Add(k, Copy{o, raw, packed, false}, Care{})
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil || i > 1000 {
			t.Fatal(i, err)
		}
		held[o] = raw
	}
	clock.Pass(time.Hour)
	p.Idle()
	p.Idle()
	if len(held) < 10 {
		t.Errorf("64 KiB hold %d objects of 6 kB", len(held))
	}
	for o, raw := range held {
		h, err := p.Get(t.Context(), tenant, o, Care{})
		if err != nil || !bytes.Equal(h.Bytes, raw) {
			t.Fatalf("an object was lost: %v", err)
		}
		h.Release()
	}
	if _, err := p.Get(t.Context(), tenant, ledger.Object{}, Care{}); !errors.Is(err, ErrGone) {
		t.Errorf("what was never there: %v", err)
	}
	_ = s
	check(t, p)
}

func TestRarelyUsedAndLargeObjectsAreTheVictims(t *testing.T) {
	t.Parallel()
	p, s, clock := pager(t, Options{Bytes: 100 << 10}, withL3)
	often, o := add(t, p, s, text("often", 8000), withL3, Care{})
	for range 20 {
		get(t, p, o, text("often", 8000), Hot)
	}
	awaited, _ := add(t, p, s, text("awaited", 8000), withL3, Care{NextUse: clock.Now().Add(time.Minute)})
	rarely, _ := add(t, p, s, text("rarely", 8000), withL3, Care{})
	for i := range 10 {
		clock.Pass(time.Millisecond)
		add(t, p, s, text(fmt.Sprint("filler ", i), 8000), withL3, Care{})
		check(t, p)
	}
	if p.Tier(often) != Hot || p.Tier(awaited) != Hot || p.Tier(rarely) == Hot {
		t.Errorf("often used: %v, awaited: %v, rarely used: %v", p.Tier(often), p.Tier(awaited), p.Tier(rarely))
	}
	if used := p.used(); used > 85<<10 {
		t.Errorf("%d bytes are over the high watermark", used)
	}
}

func TestOneRequestFetchesForAll(t *testing.T) {
	t.Parallel()
	p, s, _ := pager(t, Options{}, withL3)
	raw := text("shared", 9000)
	_, o, packed := object(raw)
	s.put(o, packed)
	s.waiting, s.gate = make(chan struct{}), make(chan struct{})
	const n = 8
	errs := make(chan error, n)
	for range n {
		go func() {
			h, err := p.Get(t.Context(), tenant, o, Care{})
			if err == nil && !bytes.Equal(h.Bytes, raw) {
				err = fmt.Errorf("%d bytes from %v", len(h.Bytes), h.Tier)
			}
			h.Release()
			errs <- err
		}()
	}
	<-s.waiting
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Get(impatient, tenant, o, Care{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that went away waits on: %v", err)
	}
	if !p.Waking(Key{tenant, o.Sum}) {
		t.Error("the object is not waking")
	}
	close(s.gate)
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if s.gets != 1 {
		t.Errorf("%d fetches", s.gets)
	}
	check(t, p)
}

func TestDamageIsAnErrorAndNeverOtherBytes(t *testing.T) {
	t.Parallel()
	p, s, _ := pager(t, Options{}, withL3)
	raw := text("a", 5000)
	k, o, packed := object(raw)
	bad := bytes.Clone(packed)
	bad[len(bad)/2] ^= 1
	s.put(o, bad)
	if h, err := p.Get(t.Context(), tenant, o, Care{}); !errors.Is(err, blob.ErrDamaged) || h.Bytes != nil {
		t.Fatalf("%d bytes, %v", len(h.Bytes), err)
	}
	s.put(o, packed)
	get(t, p, o, raw, L3)
	if p.Tier(k) != Hot {
		t.Error("the object did not recover")
	}
	check(t, p)
}

func TestForgottenObjectsGoWhenTheLastUserIsDone(t *testing.T) {
	t.Parallel()
	p, s, _ := pager(t, Options{}, ramOnly)
	raw := text("a", 5000)
	k, o := add(t, p, s, raw, ramOnly, Care{})
	h, err := p.Get(t.Context(), tenant, o, Care{})
	if err != nil {
		t.Fatal(err)
	}
	p.Forget(k)
	if !bytes.Equal(h.Bytes, raw) || p.Stats().Hot != 1 {
		t.Error("the bytes went under a user")
	}
	h.Release()
	if st := p.Stats(); st != (Stats{}) || p.Tier(k) != Gone {
		t.Errorf("%+v is left", st)
	}
	add(t, p, s, raw, ramOnly, Care{})
	h, err = p.Get(t.Context(), tenant, o, Care{})
	if err != nil {
		t.Fatal(err)
	}
	p.Forget(k)
	if !p.Keep(k) {
		t.Error("it is not there to be kept")
	}
	h.Release()
	get(t, p, o, raw, Hot)
}

// fataler is a test, of testing or of rapid.
type fataler interface {
	Fatalf(format string, args ...any)
}

// check compares counts, lists and ranking with the entries.
func check(t fataler, p *Pager) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var hot, cold, ranked int
	var hotBytes, l2Bytes int64
	for k, e := range p.entries {
		hotBytes += int64(len(e.hot))
		l2Bytes += int64(len(e.packed))
		switch {
		case e.hot != nil && e.in == &p.hot:
			hot++
		case e.hot == nil && e.packed != nil && e.in == &p.cold:
			cold++
		case e.packed == nil && e.in == nil && e.refs > 0:
		default:
			t.Fatalf("%v is in %v with %d references and in a wrong list", k, e.tier(), e.refs)
		}
		if e.place >= 0 {
			ranked++
			if p.victims[e.place] != e {
				t.Fatalf("%v has another's place in the ranking", k)
			}
			if e.refs > 0 || (e.hot == nil && !e.safe) {
				t.Fatalf("%v may not be a victim", k)
			}
		}
	}
	if hot != p.hot.Len() || cold != p.cold.Len() || ranked != len(p.victims) {
		t.Fatalf("%d hot, %d cold, %d ranked; lists hold %d, %d, %d", hot, cold, ranked, p.hot.Len(), p.cold.Len(), len(p.victims))
	}
	if hotBytes != p.stats.HotBytes || l2Bytes != p.stats.L2Bytes {
		t.Fatalf("%d and %d bytes are counted as %d and %d", hotBytes, l2Bytes, p.stats.HotBytes, p.stats.L2Bytes)
	}
	if p.used() > p.o.Bytes+int64(len(p.entries))*overhead {
		t.Fatalf("%d bytes are over the bound of %d", p.used(), p.o.Bytes)
	}
}

func TestWhatRestsIsOfferedOnceToBePackedTightly(t *testing.T) {
	t.Parallel()
	p, s, clock := pager(t, Options{}, withL3)
	raw, small := text("large", 2*blob.Small), text("small", 1000)
	k, o := add(t, p, s, raw, withL3, Care{})
	add(t, p, s, small, withL3, Care{})
	if l, ok := p.Loose(); ok {
		t.Fatalf("%v is hot, and offered", l.Key)
	}
	clock.Pass(time.Minute)
	p.Idle()
	l, ok := p.Loose()
	if !ok || l.Key != k || !l.Safe {
		t.Fatalf("offered: %t, %+v", ok, l)
	}
	if l, ok := p.Loose(); ok {
		t.Errorf("offered again, or what is small: %v", l.Key)
	}
	tight, err := blob.Repack(l.Packed, o.Size, o.Sum)
	if err != nil {
		t.Fatal(err)
	}
	before := p.Stats().L2Bytes
	p.Replace(l, tight)
	if freed := before - p.Stats().L2Bytes; freed != int64(len(l.Packed)-len(tight)) {
		t.Errorf("%d bytes fewer are counted, of %d", freed, len(l.Packed)-len(tight))
	}
	get(t, p, o, raw, L2)
	p.Replace(l, []byte("of what was there before"))
	p.PageOut(k, L2)
	get(t, p, o, raw, L2)
	p.PageOut(k, L3)
	if l, ok := p.Loose(); ok {
		t.Errorf("packed tightly, and offered: %v", l.Key)
	}
}

func TestWhatLeavesBeforeItRestsIsOfferedToo(t *testing.T) {
	t.Parallel()
	_, _, packed := object(text("0", blob.Small+1000))
	p, s, _ := pager(t, Options{Bytes: mostWaiting * int64(len(packed)) * 5 / 2}, withL3) // two have room to wait
	for i := range 4 {
		k, _ := add(t, p, s, text(fmt.Sprint(i), blob.Small+1000), withL3, Care{})
		if i == 0 {
			p.Drop(k)
			continue
		}
		if got := p.PageOut(k, L3); got != L3 {
			t.Fatalf("paged out to %v", got)
		}
	}
	if st := p.Stats(); st != (Stats{}) {
		t.Errorf("nothing is in RAM, and it counts %+v", st)
	}
	n := 0
	for l, ok := p.Loose(); ok; l, ok = p.Loose() {
		n++
		p.Replace(l, blob.Tighten([]byte("it is not in RAM"), l.Object.Sum))
	}
	if n != 2 || p.used() != 0 {
		t.Errorf("%d were offered, and %d bytes are in use then", n, p.used())
	}
}
