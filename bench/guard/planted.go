package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
	"signalbox/stream/numeric/planted"
)

// tally counts claims, false ones first, then true ones. It is safe for concurrent use.
type tally struct {
	mu             sync.Mutex // guards what follows
	asked, flagged [2]int
}

func (t *tally) add(c planted.Claim, verdict string) {
	side := 0
	if c.True {
		side = 1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked[side]++
	if verdict == "unsupported" {
		t.flagged[side]++
	}
}

// planted checks claims with known truth through the product's verify endpoint.
func (b *bench) planted(ctx context.Context, r *report) error {
	t := &tally{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range b.seeds {
		facts, claims := sheets(firstSeed + seed)
		for _, c := range claims {
			g.Go(func() error {
				got, err := b.verify(ctx, facts, "", c.Text)
				if err == nil {
					t.add(c, got.Verdict)
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return err
	}
	r.figure("planted numbers through verify: recall", percent(t.flagged[0], t.asked[0]), "at least 95 %")
	r.figure("planted numbers through verify: false alarms on true ones", percent(t.flagged[1], t.asked[1]), "at most 2 %")
	r.note("Planted numbers: %d false and %d true claims from %d made-up sets of facts.", t.asked[0], t.asked[1], b.seeds)
	return nil
}

// firstSeed excludes the sheets that the number check was developed with.
const firstSeed = 1_000_000

// sheets returns the facts of one seed, and all claims about them.
func sheets(seed uint64) (facts []string, claims []planted.Claim) {
	for _, s := range planted.Sheets(seed) {
		facts, claims = append(facts, s.Facts...), append(claims, s.Claims...)
	}
	return facts, claims
}

func percent(n, of int) string { return fmt.Sprintf("%.2f %%", 100*float64(n)/float64(of)) }

// verified is the product's result for an answer.
type verified struct {
	Verdict string `json:"verdict"`
	Claims  []struct {
		Verdict string  `json:"verdict"`
		Score   float64 `json:"score"`
		Start   int     `json:"start"`
		End     int     `json:"end"`
	} `json:"claims"`
}

func (b *bench) verify(ctx context.Context, facts []string, question, answer string) (got verified, err error) {
	ask := map[string]any{"facts": facts, "answer": answer}
	if question != "" {
		ask["question"] = question
	}
	_, out, err := lab.Post(ctx, b.client, b.url+"/signalbox/v1/verify", ask)
	if err != nil {
		return got, fmt.Errorf("verify: %w", err)
	}
	if err := json.Unmarshal(out, &got); err != nil || got.Verdict == "" {
		return got, fmt.Errorf("verify: %s", out)
	}
	return got, nil
}
