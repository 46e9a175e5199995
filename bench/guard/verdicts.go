package main

import (
	"context"
	_ "embed" // of the words
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// Facts whose claims cannot be decided by numbers, and claims about them that need a model, true
// and false in turn.
var (
	//go:embed testdata/written.txt
	written string
	//go:embed testdata/worded.txt
	worded string
)

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// toTime are claims of one kind with their facts.
type toTime struct {
	what   string
	facts  []string
	claims []string
}

// kinds returns n claims that numbers or the sentinel decide immediately, and n that need a model,
// as determined by the product itself.
func kinds(n int) (list [2]toTime, err error) {
	checker, err := check.New(check.Options{Judge: unasked{}})
	if err != nil {
		return list, fmt.Errorf("checker: %w", err)
	}
	list[0] = toTime{what: "decided by sentinel and numbers"}
	list[1] = toTime{what: "read by the NLI model", facts: lines(written)}
	facts, made := sheets(firstSeed)
	list[0].facts = facts
	all := [2][]string{nil, lines(worded)}
	for _, c := range made {
		all[0] = append(all[0], c.Text)
	}
	for i := range list {
		e, err := evidence.New(context.Background(), sources(list[i].facts), evidence.Options{})
		if err != nil {
			return list, fmt.Errorf("evidence: %w", err)
		}
		// The previous claim is the context of the next, and a stream may begin with any.
		fits := func(text, before string) bool {
			_, final := checker.Quick(e, check.Claim{Text: text, Context: before})
			return final == (i == 0)
		}
		before := ""
		for k, left := 0, len(all[i]); len(list[i].claims) < n; k++ {
			text := all[i][k%len(all[i])]
			if !fits(text, "") || !fits(text, before) {
				if left--; left == 0 {
					return list, fmt.Errorf("no claim is %s", list[i].what)
				}
				continue
			}
			list[i].claims, before, left = append(list[i].claims, text), text, len(all[i])
		}
	}
	return list, nil
}

func sources(facts []string) []evidence.Source {
	out := make([]evidence.Source, len(facts))
	for i, f := range facts {
		out[i] = evidence.Source{Text: f, Fact: true}
	}
	return out
}

// unasked is a judge that is never called.
type unasked struct{}

func (unasked) Judge(context.Context, []check.Pair) ([]check.Inference, error) {
	return nil, errors.New("nobody asks")
}

// verdicts measures the delay from the end of a claim until its verdict appears, on one stream.
func (b *bench) verdicts(ctx context.Context, r *report) error {
	list, err := kinds(b.claims)
	if err != nil {
		return err
	}
	judged, err := b.judged(ctx)
	if err != nil {
		return err
	}
	bars := [2]string{"p99 at most 2 ms", "p50 at most 25 ms, p99 at most 80 ms"}
	for i, k := range list {
		if i == 1 && !judged {
			r.figure("verdict after the end of a claim "+k.what, "no model", bars[i])
			continue
		}
		took, floor, err := b.timed(ctx, k)
		if err != nil {
			return fmt.Errorf("%s: %w", k.what, err)
		}
		r.figure("verdict after the end of a claim "+k.what, fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", median(took), quantile(took, 0.99)), bars[i])
		r.note("Claims %s: %d, one stream in mode hold, from when the server sends the token that ends the claim to when the client has the claim or what stands in its place; p90 %.2f ms, longest %.2f ms. The same tokens with the guard off take p50 %.2f ms, p99 %.2f ms.",
			k.what, len(took), quantile(took, 0.9), quantile(took, 1), median(floor), quantile(floor, 0.99))
	}
	return nil
}

// timed times claims in hold, and the same with the guard off, in turn.
func (b *bench) timed(ctx context.Context, k toTime) (held, off []float64, err error) {
	part := k
	for at := 0; at < len(k.claims); at += len(part.claims) {
		part.claims = k.claims[at:min(len(k.claims), at+max(2*cold, len(k.claims)/b.rounds))]
		for mode, to := range map[string]*[]float64{"": &off, "hold": &held} {
			took, err := b.timeClaims(ctx, part, mode)
			if err != nil {
				return nil, nil, err
			}
			*to = append(*to, took...)
		}
	}
	return held, off, nil
}

// cold is the number of claims at the start of a stream that are not timed.
const cold = 3

// timeClaims streams claims one after the other, each when the previous one was released; times are
// in milliseconds.
func (b *bench) timeClaims(ctx context.Context, k toTime, mode string) ([]float64, error) {
	shed, _, err := b.checks(ctx)
	if err != nil {
		return nil, err
	}
	const group = 2 // the claim, and the text that ends it
	var pieces []string
	for _, c := range k.claims {
		pieces = append(pieces, c, "\n")
	}
	next := make(chan struct{}, 1)
	f := newFeed(pieces, stepped(next, group))
	var took []float64
	text, at := "", 0
	err = b.ask(ctx, b.url, mode, question(b.upstream.take(f), k.facts), func(data []byte) {
		now := time.Since(b.start)
		text += content(data)
		if at == len(k.claims) || !released(text, k.claims[at], mode) {
			return
		}
		if at >= cold {
			took = append(took, ms(now-time.Duration(f.sent[group*at+1].Load())))
		}
		text = ""
		at++
		next <- struct{}{}
	})
	if err != nil {
		return nil, err
	}
	if at < len(k.claims) {
		return nil, fmt.Errorf("only %d of %d claims came out", at, len(k.claims))
	}
	late, _, err := b.checks(ctx)
	if err == nil && late > shed {
		err = fmt.Errorf("%.0f checks were shed", late-shed)
	}
	return took, err
}

// released reports whether text contains a claim, or its marker. With the guard off, the claim is
// complete before the server sends its end, so that end is awaited.
func released(text, claim, mode string) bool {
	if mode == "" {
		return strings.HasSuffix(text, claim+"\n")
	}
	return strings.Contains(text, claim) || strings.Contains(text, strings.TrimSpace(marker))
}

// content returns the text of an event.
func content(data []byte) string {
	var chunk struct {
		Choices []struct {
			Delta struct {
				Content string `json:"content"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &chunk); err != nil || len(chunk.Choices) == 0 {
		return ""
	}
	return chunk.Choices[0].Delta.Content
}
