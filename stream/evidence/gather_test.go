package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// page returns a text of many unrelated sentences, each with its own name, with the given ones
// among them.
func page(ours map[int]string) string {
	var b strings.Builder
	for i := range 80 {
		if s, ok := ours[i]; ok {
			b.WriteString(s + " ")
		}
		fmt.Fprintf(&b, "Visitor %c%d walked along the river and looked at the boats for a while. ", 'A'+i%26, i)
	}
	return b.String()
}

func pages(tb testing.TB, sources ...string) *evidence.Evidence {
	tb.Helper()
	list := make([]evidence.Source, len(sources))
	for i, s := range sources {
		list[i] = evidence.Source{ID: fmt.Sprintf("s%d", i), Text: s}
	}
	e, err := evidence.New(tb.Context(), list, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func TestWhatAClaimStatesIsGatheredFromSeveralPlaces(t *testing.T) {
	t.Parallel()
	const born, opened, closed = "Anna Berg was born in Lund.", "She opened the Astra harbour.", "The harbour closed in 1962."
	const want = born + " " + opened + " " + closed
	const claim = "Anna Berg, born in Lund, opened the Astra harbour, which closed in 1962."
	// The sentences are found in another order than they have: the one with most of the claim's
	// rare words comes last.
	e := pages(t, "Anna Berg is in another source, with Lund and Astra and 1962.", page(map[int]string{60: closed, 5: born, 30: opened}))
	p := e.Gather(claim, 1)
	if p.Text != want {
		t.Errorf("gathered %q, want %q", p.Text, want)
	}
	if at := e.Premise(p.Sentence); p.Source != 1 || p.ID != "s1" || p.Page < 1000 || p.Score != 0 || !strings.Contains(at.Text, born) || at.Source != 1 {
		t.Errorf("%+v at %q, want a premise of the second source at its first sentence", p, at.Text)
	}
	e = pages(t, page(map[int]string{60: born, 5: closed, 30: opened}))
	if p, want := e.Gather(claim, 0), closed+" "+opened+" "+born; p.Text != want {
		t.Errorf("gathered %q, want %q", p.Text, want)
	}
}

func TestWhatIsGathered(t *testing.T) {
	t.Parallel()
	// 77 words, of which 48 count
	long := "The Astra harbour " + strings.Repeat("and boats ", 36) + "lay there."
	for _, tt := range []struct {
		name, claim string
		ours        map[int]string
		want        []string
	}{
		{
			"a word that is found counts for little",
			"The Astra harbour has cranes and a granite pier.",
			map[int]string{5: "The Astra harbour has cranes.", 20: "The Astra harbour had cranes once, said some.", 40: "There is a granite pier."},
			[]string{"The Astra harbour has cranes.", "The Astra harbour had cranes once, said some.", "There is a granite pier."},
		},
		{
			"what is rare in the page counts for more",
			"The river visitor saw Astra.",
			map[int]string{40: "Nobody but Astra came home that day, said the woman at the gate, who had waited for most of an hour."},
			[]string{"Nobody but Astra came"},
		},
		{
			"a long sentence counts as 48 words",
			"The Astra harbour has a granite pier.",
			map[int]string{5: long, 40: "There is a granite pier."},
			[]string{long, "There is a granite pier."},
		},
	} {
		got := pages(t, page(tt.ours)).Gather(tt.claim, 0).Text
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q, want %q in it", tt.name, got, want)
			}
		}
	}
}

// TestWhatIsGatheredIsShortAndSaysNothingTwice checks that of many equivalent sentences only as
// many are picked as 72 words allow, earlier and shorter ones first.
func TestWhatIsGatheredIsShortAndSaysNothingTwice(t *testing.T) {
	t.Parallel()
	same, other := map[int]string{}, map[int]string{}
	for i := range 40 {
		same[i] = "The Astra harbour opened early."
		other[i] = fmt.Sprintf("The Astra harbour opened early, said guest number %d of them.", i)
	}
	const claim = "The Astra harbour opened early."
	if text := pages(t, page(same)).Gather(claim, 0).Text; text != claim {
		t.Errorf("gathered %q, want the sentence once", text)
	}
	var want []string
	for i := range 6 { // 11 words each
		want = append(want, other[i])
	}
	if text := pages(t, page(other)).Gather(claim, 0).Text; text != strings.Join(want, " ") {
		t.Errorf("gathered %q, want %q", text, want)
	}
}

// BenchmarkGatherWorst checks that Gather takes about as long as a ranking, however the text is
// cut, and returns the same result.
func BenchmarkGatherWorst(b *testing.B) {
	var claim []string
	for i := range 60 {
		claim = append(claim, fmt.Sprintf("w%c%c", 'a'+i%26, 'a'+i/26))
	}
	var words, lines strings.Builder
	for i := 0; lines.Len() < 250<<10; i++ {
		fmt.Fprintf(&words, "%s %d. ", claim[i%60], i)
		lines.WriteString(claim[i%60] + "\n")
	}
	for name, text := range map[string]string{"lines of a word": lines.String(), "sentences of two words": words.String()} {
		e, err := evidence.New(b.Context(), []evidence.Source{{Text: text}}, evidence.Options{MaxBytes: 1 << 20})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				e.Gather(strings.Join(claim, " "), 0)
			}
		})
		b.Run(name+", ranked", func(b *testing.B) {
			for b.Loop() {
				e.For(nil, strings.Join(claim, " "), []numeric.Finding{}, 4)
			}
		})
	}
}

func TestNothingSharedIsNothingGathered(t *testing.T) {
	t.Parallel()
	e := pages(t, page(nil), "A fact.")
	for _, claim := range []string{"Bananas ripen.", "", "and the of"} {
		if p := e.Gather(claim, 0); p.Text != "" || p.Sentence != -1 || p.Source != 0 {
			t.Errorf("%q: %+v, want nothing", claim, p)
		}
	}
}

func BenchmarkGather(b *testing.B) {
	e := pages(b, page(map[int]string{5: "Anna Berg was born in Lund.", 30: "She opened the Astra harbour."}))
	b.ReportAllocs()
	for b.Loop() {
		e.Gather("Anna Berg, born in Lund, opened the Astra harbour by the river.", 0)
	}
}

// gathered is Gather by its definition. As long as one fits into 72 words, it picks the sentence
// whose words weigh most for its length. The weight of a word is its rarity in the page; if it was
// found before, .15 of it plus what .2 leaves each time.
func gathered(sentences []string, claim string) string {
	fields := func(s string) []string { return strings.Fields(strings.ToLower(strings.Trim(s, "."))) }
	weight, left := map[string]float64{}, map[string]float64{}
	for _, w := range fields(claim) {
		df := 0.0
		for _, s := range sentences {
			if slices.Contains(fields(s), w) {
				df++
			}
		}
		if df > 0 {
			n := float64(len(sentences))
			weight[w] = float64(float32(math.Log(1 + (n-df+0.5)/(df+0.5))))
			left[w] = weight[w]
		}
	}
	var picked []int
	for used := 0; ; {
		best, most := -1, 0.0
		for i, s := range sentences {
			same := func(k int) bool { return sentences[k] == s }
			if used+min(48, len(fields(s))) > 72 || slices.ContainsFunc(picked, same) {
				continue
			}
			gain := 0.0
			for w := range weight {
				if slices.Contains(fields(s), w) {
					gain += left[w] + 0.15*weight[w]
				}
			}
			if gain /= math.Pow(float64(len(fields(s))+15), 0.3); gain > most+1e-9 {
				best, most = i, gain
			}
		}
		if best < 0 {
			break
		}
		picked = append(picked, best)
		used += min(48, len(fields(sentences[best])))
		for w := range left {
			if slices.Contains(fields(sentences[best]), w) {
				left[w] *= 0.2
			}
		}
	}
	slices.Sort(picked)
	var texts []string
	for _, i := range picked {
		texts = append(texts, sentences[i])
	}
	return strings.Join(texts, " ")
}

func TestWhatIsGatheredIsWhatTheDefinitionSays(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([]string, 120)
	for i := range vocabulary {
		vocabulary[i] = fmt.Sprintf("%cam%cuk%c", 'b'+i%20, 'b'+i/20, 'k'+i%8)
	}
	// some words are frequent
	word := func() string { return vocabulary[int(math.Pow(rng.Float64(), 2)*float64(len(vocabulary)))] }
	say := func(words int) string {
		list := make([]string, words)
		for i := range list {
			list[i] = word()
		}
		return strings.ToUpper(list[0][:1]) + strings.Join(list, " ")[1:] + "."
	}
	for range testkit.Fewer(300) {
		sentences := make([]string, 20+rng.IntN(60))
		for i := range sentences {
			sentences[i] = say(4 + rng.IntN(24))
			if i > 0 && rng.IntN(5) == 0 {
				sentences[i] = sentences[rng.IntN(i)]
			}
			if rng.IntN(12) == 0 {
				sentences[i] = say(50 + rng.IntN(30))
			}
		}
		claim := say(3 + rng.IntN(12))
		e := pages(t, strings.Join(sentences, " "))
		if e.Len() != len(sentences) {
			t.Fatalf("%d sentences, want %d", e.Len(), len(sentences))
		}
		if got, want := e.Gather(claim, 0).Text, gathered(sentences, claim); got != want {
			t.Fatalf("%q\ngathered %q\nwant     %q", claim, got, want)
		}
	}
}
