package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/outcomes"
	"signalbox/proxy/decide"
	"signalbox/proxy/rewrite"
)

// knownVector returns the same embedding for every text, at no cost: what remains is the cost of
// the decision.
type knownVector struct{ vector []float32 }

func (knownVector) Signals() signal.Mask { return signal.MaskOf(signal.Embedding) }

func (knownVector) Degraded() []string { return nil }

func (k knownVector) Extract(_ context.Context, _ *signal.Text, _ signal.Mask, set *signal.Set) {
	set.Put(signal.Embedding, signal.Value{State: signal.Known, Vector: k.vector})
}

// BenchmarkDecideByOutcomes measures a decision between two models without outcomes, with 10,000
// outcomes, with exploring, and while 200 responses per second are rated.
func BenchmarkDecideByOutcomes(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, 384)
		for i := range v {
			v[i] = float32(r.NormFloat64())
		}
		v[r.IntN(20)] += 15
		return v
	}
	for _, c := range []struct {
		name           string
		known          int
		explore, judge bool
	}{{name: "none"}, {name: "10000", known: 10_000}, {"10000-explored", 10_000, true, false}, {"10000-judged", 10_000, false, true}} {
		b.Run(c.name, func(b *testing.B) {
			s, _, err := outcomes.Open(outcomes.Options{Limit: 10_000, Tenants: 2, Waiting: 100})
			if err != nil {
				b.Fatal(err)
			}
			add := func(i int) {
				o := outcomes.Outcome{
					Tenant: "default", ID: fmt.Sprint(i), Model: []string{"big", "small"}[i%2], Prior: 0.5,
					Score: r.Float64(), Weight: 1, Tokens: 100,
				}
				if err := s.Add(o, vector()); err != nil {
					b.Error(err)
				}
			}
			for i := range c.known {
				add(i)
			}
			p, _ := learns(b, func(x *setup) {
				x.outcomes = s
				if c.explore {
					x.explore = decide.ExploreOptions{Share: 0.5, MaxQualityLoss: 0.005}
				}
			})
			p.state.Signals.Classifier = knownVector{vector()}
			req, err := openai.ParseChat([]byte(ask(onTaxes)), openai.Limits{})
			if err != nil {
				b.Fatal(err)
			}
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := c.known; c.judge && ctx.Err() == nil; i++ {
					add(i)
					select {
					case <-ctx.Done():
					case <-time.After(5 * time.Millisecond):
					}
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				d, err := p.state.Decide(ctx, Principal{Tenant: "default"}, req, nil, nil, nil)
				if err != nil {
					b.Fatal(err)
				}
				change := rewrite.New(p.state.edits, req, d)
				if _, err := p.state.place(&change, nil, "", p.proxy.measure(ctx, p.state, &change)); err != nil {
					b.Fatal(err)
				}
			}
			stop()
			<-done
		})
	}
}
