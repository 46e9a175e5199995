package affinity

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// placerOf returns a placer of endpoints whose addresses are their names.
func placerOf(t *testing.T, names ...string) *Placer {
	t.Helper()
	var ends []Endpoint
	for _, n := range names {
		ends = append(ends, Endpoint{Name: n, Address: "http://" + n, Weight: 1})
	}
	p, err := New(ends, DefaultOptions(), epoch)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var epoch = time.Unix(1_000_000, 0)

// longChain returns a prompt of 16 KiB.
func longChain(seed string) *Chain {
	c := new(Chain)
	c.Message("user", strings.Repeat(seed, 16<<10/len(seed)))
	return c
}

// serve places a request and answers it.
func serve(t *testing.T, p *Placer, now time.Time, r *Request) Ticket {
	t.Helper()
	ticket, ok := p.Place(now, r)
	if !ok {
		t.Fatal("no place")
	}
	ticket.First(now.Add(time.Millisecond))
	ticket.End(now.Add(2*time.Millisecond), Usage{Prompt: 4096, Cached: ticket.Predicted})
	return ticket
}

func TestWhatWasLearntOutlivesAReload(t *testing.T) {
	t.Parallel()
	old := placerOf(t, "a", "b", "c")
	c := longChain("some words ")
	r := &Request{Class: 7, Key: 11, Blocks: c.Blocks(), Bytes: c.Bytes()}
	first := serve(t, old, epoch, r)
	was := old.endpoints[first.Endpoint].Name
	under, _ := old.Place(epoch, r) // still running when the configuration changes
	old.Learn(epoch, Residence{Key: 99, Endpoint: "c", Tokens: 500, Expires: epoch.Add(time.Hour)})

	next := placerOf(t, "d", "c", "b", "a")
	next.Adopt(old)
	again, _ := next.Place(epoch.Add(time.Second), r)
	if got := next.endpoints[again.Endpoint].Name; got != was || again.Predicted < 3000 {
		t.Errorf("after the reload the prompt goes to %s with %d tokens, want %s with about 4096", got, again.Predicted, was)
	}
	i := again.Endpoint
	if got := next.Stats(i).Running; got != 2 {
		t.Errorf("%d requests run at %s, want the old one and the new one", got, was)
	}
	under.First(epoch.Add(time.Second))
	under.End(epoch.Add(time.Second), Usage{})
	again.End(epoch.Add(time.Second), Usage{Failed: true})
	if got := next.Stats(i); got.Running != 0 || got.Queued != 0 {
		t.Errorf("load after all have ended: %+v", got)
	}
	var told [MaxEndpoints]int32
	if next.residences.read(&told, 99, 0); told[1] != 500 {
		t.Errorf("what others told of c is %v", told[:4])
	}

	moved := placerOf(t, "a", "b", "c")
	for j := range moved.endpoints {
		moved.endpoints[j].Address += ":8000"
	}
	moved.Adopt(old)
	if fresh, _ := moved.Place(epoch.Add(time.Second), r); fresh.Predicted != 0 {
		t.Errorf("%d tokens are predicted at another address", fresh.Predicted)
	}
}

func TestATableThatShrinksKeepsWhatWasUsedLast(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a")
	for i := range 8 {
		c := longChain(fmt.Sprintf("prompt %d ", i))
		serve(t, p, epoch, &Request{Key: uint64(i + 1), Blocks: c.Blocks(), Bytes: c.Bytes()})
	}
	p.Resize(0, 2*4096) // room for two of them
	for i, want := range []bool{7: true, 6: true} {
		c := longChain(fmt.Sprintf("prompt %d ", i))
		n, _, _ := p.endpoints[0].table.match(0, c.Blocks(), p.ticks(epoch))
		if (n > 0) != want {
			t.Errorf("prompt %d has %d blocks left", i, n)
		}
	}
	if n, room := p.Stats(0).Blocks, blocksOf(2*4096); n > room {
		t.Errorf("%d blocks in a cache of %d", n, room)
	}
	p.Resize(0, 1<<20)
	for i := range 20 {
		c := longChain(fmt.Sprintf("more %d ", i))
		serve(t, p, epoch, &Request{Key: uint64(i + 1), Blocks: c.Blocks(), Bytes: c.Bytes()})
	}
	if n := p.Stats(0).Blocks; n < 20*16 {
		t.Errorf("%d blocks after the cache grew, want at least %d", n, 20*16)
	}
	p.Resize(0, 0)
	if n := p.Stats(0).Blocks; n < 20*16 {
		t.Error("a size that is not known forgets what is held")
	}
}

func TestWhatIsSentWithoutAPlaceIsLoad(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a", "b")
	var under []Ticket
	for range 30 {
		under = append(under, p.Sent(epoch, &Request{Tokens: 100}, 0))
	}
	if s := p.Stats(0); s.Running != 30 || s.Queued != 3000 {
		t.Errorf("load of the endpoint: %+v", s)
	}
	for key := range uint64(20) {
		r := &Request{Key: key + 1, Tokens: 50}
		ticket, _ := p.Place(epoch, r)
		if ticket.Endpoint != 1 {
			t.Errorf("key %d goes to the endpoint with 30 requests", key+1)
		}
		ticket.End(epoch, Usage{Failed: true})
	}
	for i := range under {
		under[i].First(epoch)
		under[i].End(epoch, Usage{})
	}
	if s := p.Stats(0); s.Running != 0 || s.Queued != 0 {
		t.Errorf("load after all have ended: %+v", s)
	}
}

func TestTheHolderIsWhoHasMost(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a", "b")
	c := longChain("some words ")
	r := &Request{Key: 5, Blocks: c.Blocks(), Bytes: c.Bytes()}
	first := serve(t, p, epoch, r)
	if first.Holder != first.Endpoint || first.Held != 0 {
		t.Errorf("nobody has anything, yet the holder is %d with %d", first.Holder, first.Held)
	}
	away := *r
	away.Penalty = make([]float64, 2)
	away.Penalty[first.Endpoint] = 1000 // busy, but there
	second, _ := p.Place(epoch, &away)
	if second.Endpoint == first.Endpoint || second.Holder != first.Endpoint || second.Held < 3000 {
		t.Errorf("placed at %d, holder %d with %d tokens", second.Endpoint, second.Holder, second.Held)
	}
}

func TestAFieldThatIsLeftOutMeansNoneWhereOthersHadIt(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a")
	c := longChain("some words ")
	r := &Request{Key: 5, Blocks: c.Blocks(), Bytes: c.Bytes()}
	end := func(cached int) (Ticket, bool) {
		ticket, _ := p.Place(epoch, r)
		ticket.First(epoch)
		bad := ticket.End(epoch, Usage{Prompt: 4096, Cached: cached})
		return ticket, bad
	}
	if ticket, _ := end(-1); ticket.Cached >= 0 {
		t.Error("nothing was told, and something was heard")
	}
	if ticket, bad := end(-1); bad || ticket.Predicted == 0 {
		t.Errorf("an endpoint that never tells: mispredicted %v, predicted %d", bad, ticket.Predicted)
	}
	end(4000)
	if ticket, bad := end(-1); !bad || ticket.Cached != 0 {
		t.Errorf("an endpoint that tells left it out: mispredicted %v, cached %d", bad, ticket.Cached)
	}
}

func TestTimesOfShortPromptsAndOfWholeAnswersSayNothingOfSpeed(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a")
	before := p.Stats(0).Prefill
	for i := range 50 {
		ticket := p.Sent(epoch, &Request{Tokens: 20 + i}, 0)
		ticket.First(epoch.Add(30 * time.Millisecond))
		ticket.End(epoch.Add(time.Second), Usage{Prompt: 20 + i, Cached: 0})
		whole := p.Sent(epoch, &Request{Tokens: 4000}, 0)
		whole.First(epoch.Add(20 * time.Second))
		whole.End(epoch.Add(20*time.Second), Usage{Prompt: 4000, Cached: 0, Whole: true})
	}
	if got := p.Stats(0).Prefill; got != before {
		t.Errorf("seconds for a token went from %v to %v", before, got)
	}
}

func TestNobodyIsShunnedForNotBeingMeasured(t *testing.T) {
	t.Parallel()
	p := placerOf(t, "a", "b", "c")
	for i := range 10 { // a turns out to be ten times as fast as assumed
		n := 1000 + 400*i
		ticket := p.Sent(epoch, &Request{Tokens: n}, 0)
		ticket.First(epoch.Add(time.Duration(n) * 6 * time.Microsecond))
		ticket.End(epoch.Add(time.Second), Usage{Prompt: n})
	}
	for i := range p.endpoints {
		if got := p.Stats(i).Prefill; got < 5e-6 || got > 7e-6 {
			t.Errorf("endpoint %d is taken to need %v s for a token", i, got)
		}
	}
	for key := range uint64(30) {
		ticket, _ := p.Place(epoch, &Request{Key: key + 1, Tokens: 8000})
		if !ticket.Home {
			t.Errorf("key %d left its home for the endpoint that was measured", key+1)
		}
		ticket.End(epoch, Usage{Failed: true})
	}
}

func TestBytesAndTextMakeTheSameChain(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a few words and more, ", 400)
	var a, b Chain
	a.Write(text)
	for rest := []byte(text); len(rest) > 0; {
		n := min(700, len(rest))
		b.WriteBytes(rest[:n])
		rest = rest[n:]
	}
	if fmt.Sprint(a.Blocks(), a.Bytes()) != fmt.Sprint(b.Blocks(), b.Bytes()) || len(a.Blocks()) != len(text)/BlockBytes {
		t.Errorf("%v and %v", a.Blocks(), b.Blocks())
	}
}
