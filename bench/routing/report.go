package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// reporter writes Markdown. The first error of its writer stays in err.
type reporter struct {
	w         io.Writer
	resamples int
	err       error
}

func (r *reporter) printf(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, format, args...)
	}
}

func (r *reporter) row(cells ...string) { r.printf("| %s |\n", strings.Join(cells, " | ")) }

func (r *reporter) table(head ...string) {
	r.row(head...)
	r.row(slices.Repeat([]string{"---"}, len(head))...)
}

func (r *reporter) head(limit int) {
	if limit > 0 {
		r.printf("At most %d questions of each set were used.\n\n", limit)
	}
	r.printf("Intervals are 95 %%, from %d paired bootstrap resamples unless said otherwise.\n\n", r.resamples)
}

func (r *reporter) experiment(e *experiment) {
	r.printf("### %s\n\n%s\n\n", e.title, e.note)
	domain := wilson(e.agreed, e.seen)
	r.printf("%d questions. The classifier names the data set's category for %s of them (Wilson).\n\n", len(e.questions), domain.percent())
	if !e.samePrice {
		r.printf("Assumed prices, USD per million tokens, prompt/completion: %s. Every answer is taken to have %d tokens.\n\n", e.priceList(), answerTokens)
	}
	head := []string{"policy", "right answers, %", "over the best single model, points"}
	if !e.samePrice {
		head = append(head, "USD per 1,000 requests", "over a blind mix at that cost, points")
	}
	for i := range e.pool {
		head = append(head, "to "+e.pool[i].name+", %")
	}
	r.table(head...)
	for i, f := range e.evaluate(r.resamples) {
		cells := []string{e.policies[i].name, f.quality.percent(), f.gain.points()}
		if !e.samePrice {
			cells = append(cells, fmt.Sprintf("%.3f", f.cost), f.blind.points())
		}
		for _, s := range f.share {
			cells = append(cells, fmt.Sprintf("%.0f", 100*s))
		}
		r.row(cells...)
	}
	r.printf("\n")
}

func (e *experiment) priceList() string {
	var out []string
	for i := range e.pool {
		out = append(out, fmt.Sprintf("%s %g/%g", e.pool[i].name, e.pool[i].price.Input, e.pool[i].price.Output))
	}
	return strings.Join(out, ", ")
}

func (r *reporter) efforts(m effortMix) {
	r.printf("### Automatic reasoning effort\n\n")
	r.printf("Prompts of the complexity development set, each sent by a route with `reasoning: auto`.\n\n")
	head := []string{"label of the prompt", "prompts"}
	for _, e := range efforts {
		head = append(head, "sent "+e+", %")
	}
	r.table(head...)
	for _, label := range sortedKeys(m) {
		n := 0
		for _, k := range m[label] {
			n += k
		}
		cells := []string{label, fmt.Sprint(n)}
		for _, e := range efforts {
			cells = append(cells, wilson(m[label][e], n).percent())
		}
		r.row(cells...)
	}
	r.printf("\nWhat that saves against always asking for high effort is a model, not a measurement: no tokens were counted. ")
	r.printf("Tokens of an answer, as a share of those at high effort, are assumed as given.\n\n")
	head = []string{"assumed shares"}
	mixes := []float64{0.2, 0.5, 0.8}
	for _, low := range mixes {
		head = append(head, fmt.Sprintf("saved with %.0f %% easy prompts, %%", 100*low))
	}
	r.table(head...)
	for i := range tokenModels {
		t := &tokenModels[i]
		var shares []string
		for _, e := range efforts {
			shares = append(shares, fmt.Sprintf("%s %.2f", e, t.share[e]))
		}
		cells := []string{t.name + ": " + strings.Join(shares, ", ")}
		for _, low := range mixes {
			cells = append(cells, fmt.Sprintf("%.0f", 100*m.saved(t, low)))
		}
		r.row(cells...)
	}
	r.printf("\n")
}

func (i interval) percent() string {
	return fmt.Sprintf("%.1f (%.1f to %.1f)", tenths(i.at), tenths(i.low), tenths(i.high))
}

func (i interval) points() string {
	return fmt.Sprintf("%+.1f (%+.1f to %+.1f)", tenths(i.at), tenths(i.low), tenths(i.high))
}

// tenths is a share in percent, rounded, without the sign that rounding leaves on a zero.
func tenths(share float64) float64 { return math.Round(1000*share)/10 + 0 }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
