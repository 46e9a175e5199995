// Package signaltest generates the requests and signals with which tests of rules are evaluated.
// Only tests import it.
package signaltest

import (
	"math"
	"strings"

	"pgregory.net/rapid"

	"signalbox/internal/signal"
)

// Labels returns the labels that signals of this package have, in order.
func Labels() map[signal.Kind][]string {
	return map[signal.Kind][]string{ //nolint:exhaustive // the others have no fixed labels
		signal.Domain:     {"business", "economics", "law", "math", "physics", "other"},
		signal.Keyword:    {"project_titan", "urgent", "internal"},
		signal.Intent:     {"hr_bot", "it_help"},
		signal.Complexity: {"low", "medium", "high"},
		signal.PII:        {"EMAIL_ADDRESS", "PERSON", "US_SSN"},
	}
}

// Headers returns a signal.Facts.Header for a request with one header.
func Headers(name, value string) func(string) []string {
	return func(asked string) []string {
		if !strings.EqualFold(asked, name) {
			return nil
		}
		return []string{value}
	}
}

// Labelled returns a known value over labels. scores assigns probabilities to labels; the rest is
// divided among the others.
func Labelled(labels []string, scores map[string]float64) signal.Value {
	v := signal.Value{State: signal.Known, Labels: labels, Probs: make([]float32, len(labels))}
	rest := 1.0
	for _, s := range scores {
		rest -= s
	}
	for i, l := range labels {
		s, ok := scores[l]
		if !ok {
			s = max(0, rest) / float64(max(1, len(labels)-len(scores)))
		}
		v.Probs[i] = float32(s)
		if s > v.Score || math.IsNaN(s) {
			v.Label, v.Score = l, s
		}
	}
	return v
}

// Attack returns a known value of a signal about attacks with a score for the user's text and one
// for data; the score of the value is the first.
func Attack(user, data float64) signal.Value {
	return signal.Value{State: signal.Known, Score: user, Verdicts: []signal.Verdict{
		{Origin: signal.OriginUser, Score: user}, {Origin: signal.OriginData, Score: data},
	}}
}

// Values returns values of a kind on both sides of every bound in the tests' leaves, and a failed
// one.
func Values(k signal.Kind) []signal.Value {
	out := []signal.Value{{State: signal.Unknown, Reason: signal.ReasonTimeout}}
	scores := func(label string, at ...float64) {
		for _, x := range at {
			out = append(out, Labelled(Labels()[k], map[string]float64{label: x}))
		}
	}
	switch k { //nolint:exhaustive // default serves the rest
	case signal.Keyword:
		for _, names := range [][]string{nil, {"urgent"}, {"internal"}, {"internal", "urgent"}} {
			out = append(out, signal.Value{State: signal.Known, Labels: names})
		}
	case signal.Language:
		out = append(out, signal.Value{State: signal.Known, Label: "fr", Score: 1}, signal.Value{State: signal.Known, Label: "en", Score: 1})
	case signal.Domain:
		for _, l := range []string{"math", "law", "physics"} {
			scores(l, 0.3, 0.45, 0.6, 0.7, 0.8)
		}
		for _, pair := range [][2]string{{"math", "law"}, {"law", "math"}, {"math", "physics"}, {"law", "physics"}, {"physics", "law"}, {"physics", "math"}} {
			out = append(out, Labelled(Labels()[k], map[string]float64{pair[0]: 0.52, pair[1]: 0.44}),
				Labelled(Labels()[k], map[string]float64{pair[0]: 0.58, pair[1]: 0.41}))
		}
	case signal.Jailbreak, signal.Injection:
		for _, x := range []float64{0.1, 0.2, 0.4, 0.6, 0.7, 0.9, 0.95} {
			out = append(out, signal.Value{State: signal.Known, Score: x})
		}
		for _, pair := range [][2]float64{
			{0.1, 0.1},
			{0.1, 0.95},
			{0.6, 0.2},
			{0.95, 0.1},
			{0.95, 0.9},
			{0.95, 0.95},
		} {
			out = append(out, Attack(pair[0], pair[1]))
		}
	case signal.PII:
		for _, v := range []signal.Value{
			{},
			{Labels: []string{"US_SSN"}},
			{Labels: []string{"US_SSN", "PERSON"}, Probs: []float32{0.5, 0.9}},
			{Labels: []string{"US_SSN"}, Probs: []float32{0.5}},
			{Labels: []string{"EMAIL_ADDRESS"}},
			{Labels: []string{"PERSON"}, Probs: []float32{0.6}},
			{Labels: []string{"PERSON"}, Probs: []float32{0.9}},
			{Labels: []string{"US_SSN"}, Probs: []float32{0.9}},
		} {
			v.State = signal.Known
			out = append(out, v)
		}
	case signal.Complexity:
		scores("high", 0.9)
		scores("low", 0.9)
	case signal.FactCheck:
		for _, p := range []float64{0.1, 0.3, 0.4, 0.6} {
			out = append(out, Labelled([]string{"no", "needs"}, map[string]float64{"needs": p}))
		}
	default:
		out = append(out, signal.Value{State: signal.Known, Label: "other", Score: 0.5})
	}
	return out
}

// Draw generates a request in which every signal is known or failed.
func Draw(t *rapid.T) *signal.Set {
	set := &signal.Set{Facts: signal.Facts{
		Role:     rapid.SampledFrom([]string{"", "staff", "admin", "customer"}).Draw(t, "role"),
		Tenant:   rapid.SampledFrom([]string{"acme", "umbrella"}).Draw(t, "tenant"),
		Model:    "auto",
		Session:  rapid.SampledFrom([]string{"", "s1"}).Draw(t, "session"),
		Tokens:   rapid.SampledFrom([]int{0, 50, 100, 101, 200}).Draw(t, "tokens"),
		Turns:    rapid.SampledFrom([]int{1, 3, 4}).Draw(t, "turns"),
		Results:  rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "results"),
		Features: signal.Features(rapid.IntRange(0, 15).Draw(t, "features")),
		Header:   Headers("X-Team", rapid.SampledFrom([]string{"ads", "art", "sales"}).Draw(t, "team")),
	}}
	set.Facts.ToolLoop = set.Facts.Results > 0 && rapid.Bool().Draw(t, "loop")
	for k := range signal.NumKinds {
		set.Put(k, rapid.SampledFrom(Values(k)).Draw(t, k.String()))
	}
	return set
}

// Hide marks the signals of m as not extracted.
func Hide(set *signal.Set, m signal.Mask) {
	set.Drop(m)
}
