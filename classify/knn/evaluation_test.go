package knn

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

var (
	evalDir = flag.String("eval", "", "folder made by training/fixtures/knn_eval.py; measures instead of testing")
	draws   = flag.Int("draws", 20, "draws of examples a figure is the mean of")
)

// set is labelled data with an embedding a text.
type set struct {
	name    string
	Texts   []string `json:"texts"`
	Labels  []string `json:"labels"`
	vectors [][]float32
	names   map[string][]float32 // by the words of a label
}

func readVectors(t *testing.T, name string, rows int) [][]float32 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*evalDir, name+".f32"))
	if err != nil {
		t.Fatal(err)
	}
	dims := len(data) / 4 / rows
	if len(data) != rows*dims*4 {
		t.Fatalf("%s.f32: %d bytes are no %d vectors; delete the folder to embed again", name, len(data), rows)
	}
	out := make([][]float32, rows)
	for i := range out {
		out[i] = make([]float32, dims)
		for j := range out[i] {
			out[i][j] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*dims+j):]))
		}
	}
	return out
}

func readSet(t *testing.T, name string) *set {
	t.Helper()
	s := &set{name: name}
	data, err := os.ReadFile(filepath.Join(*evalDir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	s.vectors = readVectors(t, name, len(s.Texts))
	labels := slices.Compact(slices.Sorted(slices.Values(s.Labels)))
	s.names = make(map[string][]float32, len(labels))
	for i, v := range readVectors(t, name+"_names", len(labels)) {
		s.names[label(labels[i])] = v
	}
	// A text that a set has twice, perhaps under two labels, counts once.
	seen := map[string]bool{}
	keep := 0
	for i, text := range s.Texts {
		if k := key(text); !seen[k] {
			seen[k] = true
			s.Texts[keep], s.Labels[keep], s.vectors[keep] = text, s.Labels[i], s.vectors[i]
			keep++
		}
	}
	s.Texts, s.Labels, s.vectors = s.Texts[:keep], s.Labels[:keep], s.vectors[:keep]
	return s
}

// figures are shares of texts.
type figures struct {
	accuracy float64 // of in-scope texts, the best intent is right
	recall   float64 // of in-scope texts, recognised as the right intent
	accepted float64 // of in-scope texts, recognised as some intent
	wrong    float64 // of out-of-scope texts, recognised as some intent
	wrongFar float64 // the same, of those that are not on a topic of bankingTopics
}

// draw takes shots examples of each of classes intents (0: all) and measures on at most 2,000 of
// the other texts of these intents and as many out-of-scope texts of other, which outside chooses.
func draw(t *testing.T, s, other *set, background [][]float32, classes, shots int, seed uint64, outside func(label string, in map[string]bool) bool) figures {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 77))
	labels := slices.Compact(slices.Sorted(slices.Values(s.Labels)))
	labels = slices.DeleteFunc(labels, func(l string) bool { return l == outOfScope })
	r.Shuffle(len(labels), func(i, j int) { labels[i], labels[j] = labels[j], labels[i] })
	if classes > 0 {
		labels = labels[:classes]
	}
	in := map[string]bool{}
	for _, l := range labels {
		in[l] = true
	}
	known := map[string][]float32{}
	for i, text := range backgroundTexts() {
		known[text] = background[i]
	}
	maps.Copy(known, s.names)
	taken := map[string][]string{}
	var rest []int
	for _, i := range r.Perm(len(s.Texts)) {
		switch l := s.Labels[i]; {
		case !in[l]:
		case len(taken[l]) < shots:
			taken[l] = append(taken[l], s.Texts[i])
			known[s.Texts[i]] = s.vectors[i]
		default:
			rest = append(rest, i)
		}
	}
	intents := make([]Intent, len(labels))
	for i, l := range labels {
		intents[i] = Intent{Name: l, Examples: taken[l]}
	}
	x, err := New(t.Context(), intents, DefaultOptions(), func(_ context.Context, texts []string) ([][]float32, error) {
		out := make([][]float32, len(texts))
		for i, text := range texts {
			out[i] = known[text]
		}
		return out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var f figures
	const most = 2000
	rest = rest[:min(most, len(rest))]
	for _, i := range rest {
		got := lookup(t, x, s.Texts[i], s.vectors[i])
		f.accuracy += as(got.Best == s.Labels[i]) / float64(len(rest))
		f.recall += as(got.Intent == s.Labels[i]) / float64(len(rest))
		f.accepted += as(got.Intent != "") / float64(len(rest))
	}
	n, far := 0, 0
	for _, i := range r.Perm(len(other.Texts)) {
		if outside == nil || n == most {
			break
		}
		if !outside(other.Labels[i], in) {
			continue
		}
		wrong := as(lookup(t, x, other.Texts[i], other.vectors[i]).Intent != "")
		n++
		f.wrong += wrong
		if !slices.Contains(bankingTopics, other.Labels[i]) {
			far++
			f.wrongFar += wrong
		}
	}
	f.wrong /= float64(max(n, 1))
	f.wrongFar /= float64(max(far, 1))
	return f
}

func lookup(tb testing.TB, x *Index, text string, vector []float32) Result {
	tb.Helper()
	r, err := x.Lookup(text, vector)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func as(hit bool) float64 { //nolint:revive // the value, not a switch
	if hit {
		return 1
	}
	return 0
}

// outOfScope is the label of CLINC150 for texts of none of its intents.
const outOfScope = "oos"

// bankingTopics are the intents of CLINC150 that ask a bank something, so that they are not out of
// scope for the intents of BANKING77.
var bankingTopics = []string{
	"account_blocked", "apr", "application_status", "balance", "bill_balance", "bill_due", "card_declined",
	"credit_limit", "credit_limit_change", "credit_score", "damaged_card", "direct_deposit", "exchange_rate",
	"expiration_date", "freeze_account", "improve_credit_score", "insurance_change", "interest_rate", "international_fees",
	"min_payment", "new_card", "order_checks", "pay_bill", "pin_change", "redeem_rewards", "replacement_card_duration",
	"report_fraud", "report_lost_card", "rewards_balance", "rollover_401k", "routing", "spending_history", "taxes",
	"transactions", "transfer",
}

func TestEvaluation(t *testing.T) {
	if *evalDir == "" {
		t.Skip("no -eval folder; training/fixtures/knn_eval.py makes one")
	}
	background := readVectors(t, "background", len(backgroundTexts()))
	sets := map[string]*set{"": {}}
	for _, name := range []string{"banking77", "clinc150", "hwu64", "snips"} {
		sets[name] = readSet(t, name)
	}
	others := func(label string, in map[string]bool) bool { return !in[label] }
	marked := func(label string, _ map[string]bool) bool { return label == outOfScope }
	all := func(string, map[string]bool) bool { return true }
	fewer := max(1, *draws/5)
	tests := []struct {
		in, out               string
		classes, shots, draws int
		outside               func(string, map[string]bool) bool
	}{
		{"banking77", "clinc150", 0, 5, *draws, all},
		{"banking77", "clinc150", 0, 10, *draws, all},
		{"clinc150", "clinc150", 0, 5, *draws, marked},
		{"banking77", "clinc150", 0, 1, fewer, all},
		{"banking77", "clinc150", 0, 20, fewer, all},
		{"banking77", "clinc150", 3, 5, *draws, all},
		{"clinc150", "clinc150", 1, 1, *draws, others},
		{"clinc150", "clinc150", 1, 5, *draws, others},
		{"clinc150", "clinc150", 3, 5, *draws, others},
		{"clinc150", "clinc150", 10, 5, *draws, others},
		{"clinc150", "clinc150", 75, 5, fewer, others},
		{"clinc150", "clinc150", 0, 1, fewer, marked},
		{"clinc150", "clinc150", 0, 10, fewer, marked},
		{"clinc150", "clinc150", 0, 50, fewer, marked},
		{"hwu64", "", 0, 5, fewer, nil},
		{"hwu64", "", 0, 10, fewer, nil},
		{"snips", "", 0, 5, fewer, nil},
	}
	for _, tc := range tests {
		var sum figures
		var accuracies []float64
		for seed := range tc.draws {
			f := draw(t, sets[tc.in], sets[tc.out], background, tc.classes, tc.shots, uint64(seed), tc.outside)
			sum.accuracy += f.accuracy
			sum.recall += f.recall
			sum.accepted += f.accepted
			sum.wrong += f.wrong
			sum.wrongFar += f.wrongFar
			accuracies = append(accuracies, f.accuracy)
		}
		n := float64(tc.draws)
		sd := 0.0
		for _, a := range accuracies {
			sd += (a - sum.accuracy/n) * (a - sum.accuracy/n) / n
		}
		t.Logf("%s: %d intents (0: all), %d shots, %d draws: accuracy %.3f (sd %.3f), recall %.3f, accepted %.3f; false accepts of %q %.3f, of those off banking %.3f",
			tc.in, tc.classes, tc.shots, tc.draws, sum.accuracy/n, math.Sqrt(sd), sum.recall/n, sum.accepted/n, tc.out, sum.wrong/n, sum.wrongFar/n)
	}
}
