package knn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// naiveGrams is what appendGrams means, without hashing.
func naiveGrams(text string) map[string]int {
	out := map[string]int{}
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		padded := []rune(" " + word + " ")
		for n := minGram; n <= maxGram; n++ {
			for i := 0; i+n <= len(padded); i++ {
				out[string(padded[i:i+n])]++
			}
		}
	}
	return out
}

func TestGramsAreThoseOfTheWords(t *testing.T) {
	var buf []rune
	for _, text := range []string{"", "a", "to be or not to be", "Straße, schön!", "  two\tspaces ", "機密 です"} {
		got := appendGrams(nil, text, &buf)
		want := naiveGrams(text)
		total, sum := 0, 0
		for _, n := range want {
			total += n
		}
		for i, g := range got {
			sum += int(g.count)
			if i > 0 && got[i-1].hash >= g.hash {
				t.Errorf("%q: hashes do not ascend", text)
			}
		}
		if len(got) != len(want) || sum != total {
			t.Errorf("%q: %d n-grams, %d in all; want %d, %d", text, len(got), sum, len(want), total)
		}
	}
}

func TestGramsOfALongTextAreThoseOfItsEnds(t *testing.T) {
	var buf []rune
	middle := strings.Repeat("é", 4*gramEdge)
	got := appendGrams(nil, strings.Repeat("ab ", gramEdge/3)+middle+strings.Repeat(" cd", gramEdge/3), &buf)
	for _, word := range []string{"ab", "cd"} {
		for _, g := range appendGrams(nil, word, &buf) {
			found := false
			for _, h := range got {
				found = found || h.hash == g.hash
			}
			if !found {
				t.Errorf("an n-gram of %q is missing", word)
			}
		}
	}
}

// TestSimilaritiesFollowTheFormula computes the package comment's formula the plain way.
func TestSimilaritiesFollowTheFormula(t *testing.T) {
	x := build(t, hr(), it())
	s := x.current.Load()
	docs := append(append(hr().Examples, it().Examples...), backgroundTexts()...)
	df := map[string]int{}
	mean := make([]float64, testDims)
	for _, d := range docs {
		for g := range naiveGrams(d) {
			df[g]++
		}
		v := vectorOf(d)
		norm := 0.0
		for _, f := range v {
			norm += float64(f) * float64(f)
		}
		for i, f := range v {
			mean[i] += float64(f) / math.Sqrt(norm) / float64(len(docs))
		}
	}
	bag := func(text string) map[string]float64 {
		out := map[string]float64{}
		for g, n := range naiveGrams(text) {
			out[g] = (1 + math.Log(float64(n))) * (math.Log(float64(1+len(docs))/float64(1+df[g])) + 1)
		}
		return out
	}
	centred := func(text string) map[string]float64 {
		out := map[string]float64{}
		v := vectorOf(text)
		norm := 0.0
		for _, f := range v {
			norm += float64(f) * float64(f)
		}
		for i, f := range v {
			out[fmt.Sprint(i)] = float64(f)/math.Sqrt(norm) - mean[i]
		}
		return out
	}
	cosine := func(a, b map[string]float64) float64 {
		ab, aa, bb := 0.0, 0.0, 0.0
		for k, f := range a {
			ab += f * b[k]
			aa += f * f
		}
		for _, f := range b {
			bb += f * f
		}
		return ab / math.Sqrt(aa*bb)
	}
	var b scratch
	for _, text := range []string{"When will the salary be paid?", "the printer is jammed again, printer!", "nothing of the kind"} {
		var buf []rune
		e := newExample(text, vectorOf(text))
		s.similarities(e.vector, appendGrams(nil, text, &buf), &b)
		for i, d := range slices.Concat(hr().Examples, it().Examples, []string{"hr bot", "it help"}) {
			want := max(0, (cosine(centred(text), centred(d))+0.3*cosine(bag(text), bag(d)))/1.3)
			if math.Abs(want-float64(b.sims[i])) > 2e-3 { // n-grams share hashes
				t.Errorf("%q and %q: %v, want %v", text, d, b.sims[i], want)
			}
		}
	}
}

func TestVote(t *testing.T) {
	tests := map[string]struct {
		sims       []float32
		neighbours int
		skip       int
		want       float32
	}{
		"one example is all there is":         {[]float32{0.6}, 10, -1, 0.6},
		"the nearest counts beside the mean":  {[]float32{0.2, 0.8}, 10, -1, (0.8 + 2*0.5) / 3},
		"far examples do not vote":            {[]float32{0.1, 0.9, 0.1, 0.7, 0.1}, 2, -1, (0.9 + 2*0.8) / 3},
		"an example that is left out is not":  {[]float32{0.1, 0.9, 0.4}, 2, 1, (0.4 + 2*0.25) / 3},
		"equal examples are not counted once": {[]float32{0.5, 0.5, 0.5}, 2, -1, 0.5},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &snapshot{opts: Options{Neighbours: tc.neighbours}}
			if got := s.vote(tc.sims, tc.skip, new(scratch)); math.Abs(float64(got-tc.want)) > 1e-6 {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheRegressionSolvesItsEquations(t *testing.T) {
	s := build(t, hr(), it()).current.Load()
	d := s.dims + sketchDims
	left := make([]float64, d*d)
	right := make([]float64, 2*d)
	var b scratch
	add := func(intent int, list []*example) {
		for _, e := range list {
			s.similarities(e.vector, e.grams, &b)
			x := s.features(e.grams, &b)
			for i := range x {
				for j := range x {
					left[i*d+j] += float64(x[i]) * float64(x[j])
				}
				if intent >= 0 {
					right[intent*d+i] += float64(x[i])
				}
			}
		}
	}
	add(-1, s.background)
	for i := range s.intents {
		add(i, append(slices.Clone(s.intents[i].examples), s.intents[i].label))
	}
	for intent := range s.intents {
		for i := range d {
			got := ridge * float64(s.weights[intent*d+i])
			for j := range d {
				got += left[i*d+j] * float64(s.weights[intent*d+j])
			}
			if want := right[intent*d+i]; math.Abs(got-want) > 1e-4 {
				t.Fatalf("intent %d, feature %d: %v, want %v", intent, i, got, want)
			}
		}
	}
	if cholesky([]float64{1, 0, 2, 1}, 2) {
		t.Error("a matrix that is not positive definite has a root")
	}
}

func TestOneIntentScoredAloneScoresTheSame(t *testing.T) {
	s := build(t, hr(), it()).current.Load()
	var a, b scratch
	scores, alone := make([]float32, 2), make([]float32, 2)
	for _, e := range append(s.background[:20:20], s.intents[0].examples...) {
		s.score(e.vector, e.grams, &a, scores)
		for i := range s.intents {
			s.scoreOne(i, e, &b, alone)
			if math.Abs(float64(scores[i]-alone[i])) > 1e-5 {
				t.Errorf("%q, intent %d: %v alone, want %v", e.text, i, alone[i], scores[i])
			}
		}
	}
}

// random returns an index of n examples in 100 intents, without levels, and a text with its vector:
// random vectors, and sentences of words from a vocabulary of 5,000 with Zipf's frequencies.
func random(n, dims int) (x *Index, text string, vector []float32) {
	r := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(r, 1.1, 4, 4999)
	sentence := func() string {
		var w strings.Builder
		for range 10 {
			k := zipf.Uint64()
			fmt.Fprintf(&w, "%c%c%c%c ", 'a'+k%26, 'a'+k/26%26, 'a'+k/676%26, 'a'+k%7)
		}
		return w.String()
	}
	direction := func() []float32 {
		v := make([]float32, dims)
		for i := range v {
			v[i] = r.Float32() - 0.5
		}
		return v
	}
	s := &snapshot{opts: DefaultOptions(), intents: make([]intent, 100), stats: make([]stats, 100)}
	for i := range n {
		in := &s.intents[i%100]
		in.examples = append(in.examples, newExample(sentence(), direction()))
	}
	s.background = []*example{newExample(sentence(), direction())}
	s.lay()
	s.weights = s.regress()
	x = new(Index)
	x.current.Store(s)
	return x, sentence(), direction()
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, text, v := random(n, 384)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Lookup(text, v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{100, 1_000} {
		intents := []Intent{{Name: "a"}, {Name: "b", Examples: []string{"one", "two"}}}
		for i := range n {
			intents[0].Examples = append(intents[0].Examples, fmt.Sprintf("example number %d of %d", i, n))
		}
		x := build(b, intents...)
		i := 0
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				i++
				if _, err := x.Add(context.Background(), "b", []string{fmt.Sprintf("another %d", i)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAddToMany adds one example to the largest of some intents with n sentences, half of them
// its own.
func BenchmarkAddToMany(b *testing.B) {
	for _, n := range []int{5_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			x, _, v := random(n, 384)
			s := x.current.Load()
			next := &snapshot{opts: s.opts, background: s.background, intents: slices.Clone(s.intents[:51])}
			for i := 51; i < len(s.intents); i++ {
				next.intents[0].examples = append(next.intents[0].examples, s.intents[i].examples...)
			}
			next.build(nil)
			x.embed = func(_ context.Context, texts []string) ([][]float32, error) {
				return slices.Repeat([][]float32{v}, len(texts)), nil
			}
			x.names = []string{"first"}
			x.current.Store(next)
			i := 0
			for b.Loop() {
				i++
				if _, err := x.Add(b.Context(), "first", []string{fmt.Sprintf("another sentence %d", i)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestLabel(t *testing.T) {
	for name, want := range map[string]string{
		"card_not_working": "card not working", "HR_Bot": "hr bot", "orderStatus": "order status", "HRBot": "hrbot",
		"tax-2024": "tax 2024", "42": "", "__": "", "Überweisung_läuft": "überweisung läuft", "注文状況": "注文状況",
	} {
		if got := label(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
