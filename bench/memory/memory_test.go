package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"signalbox/internal/simulator/kv"
	"signalbox/proxy/affinity"
)

func TestReportsAreTheSameForTheSameSeeds(t *testing.T) {
	var a, b bytes.Buffer
	for _, out := range []io.Writer{&a, &b} {
		if err := execute(t.Context(), []string{"--small", "8", "--seeds", "11,12", "--only", "shared,restart"}, out, io.Discard); err != nil && !strings.Contains(err.Error(), "demands") {
			t.Fatal(err)
		}
	}
	if a.String() != b.String() {
		t.Errorf("two reports differ:\n%s\n%s", a.String(), b.String())
	}
	for _, want := range []string{"Seeds 11 12", turn, least, sticky, byContext, own, "<= 0.15"} {
		if !strings.Contains(a.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, a.String())
		}
	}
}

func TestSeedsForTuningAreNotReported(t *testing.T) {
	for _, c := range []struct {
		list   string
		tuning bool
		ok     bool
	}{{"11,12", false, true}, {"3,11", false, false}, {"1,2,3", true, true}, {"1,11", true, false}, {"", false, false}, {"x", false, false}} {
		if _, err := parseSeeds(c.list, c.tuning); (err == nil) != c.ok {
			t.Errorf("seeds %q, tuning %t: %v", c.list, c.tuning, err)
		}
	}
}

func TestEveryRequestIsAnsweredOnceWhateverThePolicy(t *testing.T) {
	w, f := usual(), usualFleet()
	w.contexts, f.restart = 4, 20
	p := w.make(source(11, 1))
	for _, c := range contenders() {
		clock := start()
		by, err := c.make(affinity.DefaultOptions(), f, &clock, 11)
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.run(p, by, &clock)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want, sent := 0, 0
		for _, s := range p.sessions {
			for _, j := range s {
				want += len(j.prompt)
			}
		}
		for _, n := range out.requests {
			sent += n
		}
		if out.prompt != want || sent != 60+out.lost {
			t.Errorf("%s: %d prompt tokens of %d, %d requests sent, %d lost", c.name, out.prompt, want, sent, out.lost)
		}
		if out.cached <= 0 || out.share() > p.ideal(f.server.BlockTokens)+0.001 {
			t.Errorf("%s: cached share %.3f, ideal %.3f", c.name, out.share(), p.ideal(f.server.BlockTokens))
		}
	}
}

func TestTheIdealIsWhatOneEndlessServerHas(t *testing.T) {
	w, f := usual(), usualFleet()
	w.contexts, f.servers, f.concurrency, f.server.Blocks = 3, 1, 1, 100_000
	p := w.make(source(11, 1))
	clock := start()
	out, err := f.run(p, &roundRobin{}, &clock)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := out.share(), p.ideal(f.server.BlockTokens); math.Abs(got-want) > 1e-9 {
		t.Errorf("cached share %.6f, ideal %.6f", got, want)
	}
}

func TestSpelledTokensAreTokens(t *testing.T) {
	if a, b := spell([]uint32{1, 2, 3}), spell([]uint32{1, 2, 4}); a == b || !strings.HasPrefix(b, spell([]uint32{1, 2})) {
		t.Errorf("%q and %q", a, b)
	}
	if got := len(spell(words(source(1, 1), 10_000))); got < 44_000 || got > 46_000 {
		t.Errorf("10,000 tokens have %d letters", got)
	}
}

func BenchmarkSharedBySignalbox(b *testing.B) {
	w, f := usual(), usualFleet()
	p := w.make(source(11, 1))
	for b.Loop() {
		clock := start()
		by, err := proxies(1, true)(affinity.DefaultOptions(), f, &clock, 11)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.run(p, by, &clock); err != nil {
			b.Fatal(err)
		}
	}
}

// The policies that look at nothing but the request must not look at servers.
func TestHashesNeedNoServers(t *testing.T) {
	p := &hashed{func(j *job) int { return j.session }}
	a, _ := p.pick(time.Time{}, &job{session: 5}, make([]*kv.Engine, 4))
	b, _ := p.pick(time.Time{}, &job{session: 5, context: 9}, make([]*kv.Engine, 4))
	if a != b {
		t.Errorf("one session went to %d and %d", a, b)
	}
}
