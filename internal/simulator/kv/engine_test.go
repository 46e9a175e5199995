package kv_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"signalbox/internal/simulator/kv"
)

// plain is a server whose times are easy to add up: 1 ms a prompt token, 10 ms a token of the
// answer.
func plain() kv.Options {
	return kv.Options{Blocks: 1000, BlockTokens: 16, Lanes: 1, Prefill: time.Millisecond, Decode: 10 * time.Millisecond}
}

type rig struct {
	*kv.Engine
	t     *testing.T
	start time.Time
}

func newRig(t *testing.T, o kv.Options) *rig {
	t.Helper()
	start := time.Unix(1000, 0)
	e, err := kv.New(o, start)
	if err != nil {
		t.Fatal(err)
	}
	return &rig{e, t, start}
}

// at is a time in milliseconds after the start.
func (r *rig) at(ms int) time.Time { return r.start.Add(time.Duration(ms) * time.Millisecond) }

// ms is the inverse of at.
func (r *rig) ms(at time.Time) int {
	return int(at.Sub(r.start).Round(time.Millisecond) / time.Millisecond)
}

func (r *rig) submit(ms int, q kv.Request) *kv.Sequence {
	r.t.Helper()
	if q.Answer == nil {
		q.Answer = tokens(900, 1)
	}
	s, err := r.Submit(r.at(ms), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func TestTimesOfOneRequest(t *testing.T) {
	o := plain()
	o.Overhead = 5 * time.Millisecond
	r := newRig(t, o)
	s := r.submit(0, kv.Request{Prompt: tokens(1, 100), Answer: tokens(2, 4)})
	var got []kv.State
	for _, e := range r.Advance(r.at(1000)) {
		got = append(got, e.State)
	}
	if want := []kv.State{kv.Prefill, kv.Decode, kv.Finished}; !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	if r.ms(s.First) != 105 || r.ms(s.Ended) != 135 {
		t.Errorf("first token at %d ms, end at %d ms; want 105 and 135", r.ms(s.First), r.ms(s.Ended))
	}
}

func TestCachedTokens(t *testing.T) {
	prompt, answer := tokens(1, 100), tokens(2, 33)
	for _, c := range []struct {
		name string
		next kv.Request
		want int
	}{
		{"the same prompt", kv.Request{Prompt: prompt}, 96},
		{"a prompt of whole blocks computes its last one", kv.Request{Prompt: prompt[:96]}, 80},
		{"a longer prompt finds the blocks of the answer", kv.Request{Prompt: slices.Concat(prompt, answer, tokens(3, 50))}, 128},
		{"a prompt that differs in the middle", kv.Request{Prompt: slices.Concat(prompt[:50], tokens(4, 50))}, 48},
		{"another prompt", kv.Request{Prompt: tokens(5, 100)}, 0},
		{"another salt", kv.Request{Prompt: prompt, Seed: kv.Seed{Salt: "x"}}, 0},
		{"another adapter", kv.Request{Prompt: prompt, Seed: kv.Seed{LoRA: "x"}}, 0},
		{"another effort", kv.Request{Prompt: prompt, Seed: kv.Seed{Effort: "high"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, plain())
			r.submit(0, kv.Request{Prompt: prompt, Answer: answer})
			r.Advance(r.at(5000))
			s := r.submit(5000, c.next)
			if s.Cached != c.want {
				t.Errorf("%d tokens cached, want %d", s.Cached, c.want)
			}
			r.Advance(r.at(9000))
			if got, want := r.ms(s.First)-5000, len(c.next.Prompt)-c.want; got != want {
				t.Errorf("first token after %d ms, want %d: one for each token that is not cached", got, want)
			}
		})
	}
}

func TestAPromptBeingComputedIsSharedAsFarAsItIs(t *testing.T) {
	for _, c := range []struct{ lanes, at, want int }{
		{1, 0, 96}, // waits for the lane, and finds all
		{2, 0, 0},
		{2, 15, 0},
		{2, 16, 16},
		{2, 50, 48},
		{2, 99, 96},
	} {
		o := plain()
		o.Lanes = c.lanes
		r := newRig(t, o)
		r.submit(0, kv.Request{Prompt: tokens(1, 100)})
		s := r.submit(c.at, kv.Request{Prompt: tokens(1, 100)})
		r.Advance(r.at(1000))
		if s.Cached != c.want {
			t.Errorf("%d lanes, %d ms later: %d tokens cached, want %d", c.lanes, c.at, s.Cached, c.want)
		}
	}
}

func TestRequestsWaitForSeatsInTheirOrder(t *testing.T) {
	o := plain()
	o.Seats, o.Lanes = 2, 2
	r := newRig(t, o)
	long := r.submit(0, kv.Request{Prompt: tokens(1, 10), Answer: tokens(2, 10)})
	short := r.submit(0, kv.Request{Prompt: tokens(3, 20)})
	next := r.submit(0, kv.Request{Prompt: tokens(4, 10)})
	last := r.submit(0, kv.Request{Prompt: tokens(5, 10)})
	if c := r.Counters(); c.Running != 2 || c.Waiting != 2 {
		t.Errorf("%d running, %d waiting; want 2 and 2", c.Running, c.Waiting)
	}
	r.Advance(r.at(1000))
	if r.ms(short.Ended) != 20 || r.ms(next.Started) != 20 || r.ms(last.Started) != 30 || r.ms(long.Ended) != 100 {
		t.Errorf("short ended at %d, next began at %d, last at %d, long ended at %d; want 20, 20, 30, 100",
			r.ms(short.Ended), r.ms(next.Started), r.ms(last.Started), r.ms(long.Ended))
	}
}

func TestCompanySlowsAnswersDown(t *testing.T) {
	o := plain()
	o.Crowd, o.Lanes = 10*time.Millisecond, 2
	r := newRig(t, o)
	a := r.submit(0, kv.Request{Prompt: tokens(1, 1), Answer: tokens(2, 11)})
	b := r.submit(0, kv.Request{Prompt: tokens(3, 1), Answer: tokens(4, 6)})
	r.Advance(r.at(5000))
	// Five tokens each at 20 ms, then five of a alone at 10 ms.
	if r.ms(b.Ended) != 101 || r.ms(a.Ended) != 151 {
		t.Errorf("ends at %d and %d ms, want 101 and 151", r.ms(b.Ended), r.ms(a.Ended))
	}
}

func TestACancelledRequestLeavesWhatItComputed(t *testing.T) {
	r := newRig(t, plain())
	s := r.submit(0, kv.Request{Prompt: tokens(1, 100)})
	r.Cancel(r.at(40), s)
	r.Cancel(r.at(40), s)
	if s.State != kv.Gone {
		t.Errorf("state %v after cancel", s.State)
	}
	if r.Cache().InUse() != 0 {
		t.Errorf("%d blocks are still in use", r.Cache().InUse())
	}
	if again := r.submit(50, kv.Request{Prompt: tokens(1, 100)}); again.Cached != 32 {
		t.Errorf("%d tokens cached after 40 ms of computing, want 32", again.Cached)
	}
}

func TestRequestsThatCannotBeServedAreRefused(t *testing.T) {
	o := plain()
	o.Blocks = 4
	r := newRig(t, o)
	if _, err := r.Submit(r.at(0), kv.Request{Prompt: tokens(1, 64), Answer: tokens(2, 2)}); !errors.Is(err, kv.ErrTooLong) {
		t.Errorf("65 tokens in 64: %v", err)
	}
	if _, err := r.Submit(r.at(0), kv.Request{Prompt: tokens(1, 64)}); !errors.Is(err, kv.ErrEmpty) {
		t.Errorf("no answer: %v", err)
	}
	r.submit(0, kv.Request{Prompt: tokens(1, 64)})
	if _, err := kv.New(kv.Options{}, r.start); err == nil {
		t.Error("options without a block were taken")
	}
}

func TestResetAndRestart(t *testing.T) {
	r := newRig(t, plain())
	r.submit(0, kv.Request{Prompt: tokens(1, 100)})
	if r.Reset(r.at(10), true) {
		t.Error("reset while a request runs")
	}
	r.Advance(r.at(200))
	if !r.Reset(r.at(200), true) {
		t.Error("no reset of an idle server")
	}
	if s := r.submit(200, kv.Request{Prompt: tokens(1, 100)}); s.Cached != 0 {
		t.Errorf("%d tokens cached after a reset", s.Cached)
	}
	s, waits := r.submit(300, kv.Request{Prompt: tokens(3, 100)}), r.submit(300, kv.Request{Prompt: tokens(2, 100)})
	r.Restart(r.at(310))
	if s.State != kv.Gone || waits.State != kv.Gone {
		t.Errorf("states %v and %v after a restart", s.State, waits.State)
	}
	if c := r.Counters(); !c.Started.Equal(r.at(310)) || c.PromptTokens != 0 || c.Running != 0 || c.Usage != 0 {
		t.Errorf("counters after a restart: %+v", c)
	}
	if s := r.submit(400, kv.Request{Prompt: tokens(1, 100)}); s.Cached != 0 {
		t.Errorf("%d tokens cached after a restart", s.Cached)
	}
}

func TestMainMemoryGivesBackWhatTheCacheLost(t *testing.T) {
	o := plain()
	o.Blocks, o.OffloadBlocks, o.Load = 10, 100, 100*time.Microsecond
	r := newRig(t, o)
	r.submit(0, kv.Request{Prompt: tokens(1, 160)})
	r.Advance(r.at(1000))
	r.submit(1000, kv.Request{Prompt: tokens(2, 160)})
	r.Advance(r.at(2000))
	s := r.submit(2000, kv.Request{Prompt: tokens(1, 160)})
	r.Advance(r.at(3000))
	if s.Cached != 144 || s.External != 144 {
		t.Errorf("%d cached, %d of them from main memory; want 144 and 144", s.Cached, s.External)
	}
	if want := r.at(2000).Add(14400*time.Microsecond + 16*time.Millisecond); !s.First.Equal(want) {
		t.Errorf("first token at %v, want %v", s.First, want)
	}
	c := r.Counters()
	if c.ExternalHits != 144 || c.ExternalQueries != 480 {
		t.Errorf("external hits %d of %d, want 144 of 480", c.ExternalHits, c.ExternalQueries)
	}
}

func TestBlocksCanBePulledFromAnotherServer(t *testing.T) {
	o := plain()
	o.OffloadBlocks = 100
	a, b := newRig(t, o), newRig(t, plain())
	a.submit(0, kv.Request{Prompt: tokens(1, 160)})
	a.Advance(a.at(1000))
	for _, c := range []struct {
		name string
		seed kv.Seed
		want int
	}{{"the same seed", kv.Seed{}, 144}, {"another salt", kv.Seed{Salt: "x"}, 0}} {
		if s := b.submit(1000, kv.Request{Prompt: tokens(1, 160), Seed: c.seed, Remote: a.Tier()}); s.External != c.want {
			t.Errorf("%s: %d tokens from the other server, want %d", c.name, s.External, c.want)
		}
		b.Advance(b.at(1900))
		b.Reset(b.at(1900), false)
	}
}

func TestMetricsHaveTheNamesOfVLLM(t *testing.T) {
	r := newRig(t, plain())
	for range 2 {
		r.submit(0, kv.Request{Prompt: tokens(1, 100), Answer: tokens(2, 5)})
	}
	r.Advance(r.at(1000))
	c, got := r.Counters(), map[string]float64{}
	c.Each(func(name string, v float64) { got[name] = v })
	want := map[string]float64{
		"process_start_time_seconds": 1000, "vllm:prefix_cache_queries_total": 200, "vllm:prefix_cache_hits_total": 96,
		"vllm:external_prefix_cache_queries_total": 0, "vllm:external_prefix_cache_hits_total": 0, "vllm:prompt_tokens_total": 200,
		"vllm:prompt_tokens_cached_total": 96, "vllm:generation_tokens_total": 10, "vllm:num_requests_running": 0,
		"vllm:num_requests_waiting": 0, "vllm:kv_cache_usage_perc": 0,
	}
	if !maps.Equal(got, want) {
		t.Errorf("metrics %v\nwant %v", got, want)
	}
}

// How often a caller looks must not change what happens.
func TestStepsDoNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := kv.Options{
			Blocks: rapid.IntRange(40, 80).Draw(t, "blocks"), BlockTokens: 16, Lanes: rapid.IntRange(1, 3).Draw(t, "lanes"),
			Seats: rapid.IntRange(0, 4).Draw(t, "seats"), Prefill: time.Millisecond, Decode: 3 * time.Millisecond,
			Crowd: time.Millisecond, Overhead: 2 * time.Millisecond, Load: time.Millisecond / 4, OffloadBlocks: rapid.IntRange(0, 90).Draw(t, "offload"),
		}
		start := time.Unix(1000, 0)
		calm, _ := kv.New(o, start)
		busy, _ := kv.New(o, start)
		at := start
		var a, b []*kv.Sequence
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			next := at.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Millisecond)
			for ; at.Before(next); at = at.Add(7 * time.Millisecond) {
				busy.Advance(at)
			}
			at = next
			stem := tokens(rapid.Uint32Range(1, 3).Draw(t, "stem"), rapid.IntRange(16, 200).Draw(t, "stem length"))
			q := kv.Request{
				Prompt: slices.Concat(stem, tokens(rapid.Uint32Range(4, 6).Draw(t, "tail"), rapid.IntRange(1, 100).Draw(t, "tail length"))),
				Answer: tokens(9, rapid.IntRange(1, 40).Draw(t, "answer")),
			}
			x, err := calm.Submit(at, q)
			if err != nil {
				t.Fatal(err)
			}
			y, _ := busy.Submit(at, q)
			a, b = append(a, x), append(b, y)
		}
		end := at.Add(time.Hour)
		calm.Advance(end)
		for at, ok := busy.Next(); ok; at, ok = busy.Next() {
			busy.Advance(at)
		}
		for i := range a {
			same := a[i].Ended.Equal(b[i].Ended) && a[i].First.Equal(b[i].First)
			if a[i].State != kv.Finished || a[i].Cached != b[i].Cached || !same {
				t.Fatalf("request %d: %v, %d cached, %v, %v; looked at often %d cached, %v, %v", i, a[i].State,
					a[i].Cached, a[i].First.Sub(start), a[i].Ended.Sub(start), b[i].Cached, b[i].First.Sub(start), b[i].Ended.Sub(start))
			}
		}
		if calm.Cache().InUse() != 0 {
			t.Fatalf("%d blocks in use at the end", calm.Cache().InUse())
		}
	})
}

func TestTierGivesUpTheTailOfTheOldestChainFirst(t *testing.T) {
	m := kv.NewTier(6)
	a, b := chain(1, 4), chain(2, 3)
	m.Store(a)
	m.Store(b)
	if m.Len() != 6 || m.Match(a) != 3 || m.Match(b) != 3 {
		t.Errorf("%d blocks, %d and %d of the chains; want 6, 3, 3", m.Len(), m.Match(a), m.Match(b))
	}
	m.Match(a)
	m.Store(chain(3, 2))
	if m.Match(a) != 3 || m.Match(b) != 1 {
		t.Errorf("after use of the first: %d and %d of the chains, want 3 and 1", m.Match(a), m.Match(b))
	}
}
