package evidence_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

func build(tb testing.TB, o evidence.Options, sources ...evidence.Source) *evidence.Evidence {
	tb.Helper()
	e, err := evidence.New(tb.Context(), sources, o)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func facts(texts ...string) []evidence.Source {
	var list []evidence.Source
	for i, s := range texts {
		list = append(list, evidence.Source{ID: fmt.Sprintf("f%d", i), Text: s, Fact: true})
	}
	return list
}

var towers = facts(
	"The Eiffel Tower is 330 m tall.",
	"The Tokyo Tower is 333 m tall.",
	"Gustave Eiffel's company built the Eiffel Tower in 1889.",
	"The Louvre is the most visited museum of the world.",
	"埃菲尔铁塔位于巴黎。",
)

func TestPremises(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, claim string
		want        string
		why         evidence.Why
	}{
		{"a number at odds comes first", "The Eiffel Tower is 350 m tall.", "f0", evidence.OtherNumber},
		{"a value of another subject brings the sentence of this one", "The Tokyo Tower is 330 m tall.", "f1", evidence.OtherNumber},
		{"a number in another unit is found", "The tower in Tokyo is 1,093 ft high.", "f1", evidence.SameNumber},
		{"rare words and names find the sentence", "Many people visit the Louvre.", "f3", evidence.SharedWords},
		{"a text without spaces is found", "埃菲尔铁塔在哪里", "f4", evidence.SharedWords},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := build(t, evidence.Options{}, towers...)
			got := e.For(nil, tt.claim, nil, 2)
			if len(got) == 0 {
				t.Fatal("no premise")
			}
			if got[0].ID != tt.want || got[0].Why != tt.why {
				t.Errorf("first premise %s (%v), want %s (%v)", got[0].ID, got[0].Why, tt.want, tt.why)
			}
		})
	}
}

func TestClaimThatSharesNothingHasNoPremise(t *testing.T) {
	t.Parallel()
	e := build(t, evidence.Options{}, towers...)
	if got := e.For(nil, "Bananas ripen quickly.", nil, 3); len(got) != 0 {
		t.Errorf("premises %v, want none", got)
	}
}

func TestNoSourcesAreEmpty(t *testing.T) {
	t.Parallel()
	e := build(t, evidence.Options{})
	if !e.Empty() || len(e.For(nil, "It is 5 m.", nil, 3)) != 0 {
		t.Error("evidence without sources gives premises")
	}
	var none *evidence.Evidence
	if !none.Empty() {
		t.Error("nil is not empty")
	}
}

func TestWindowHoldsWhatAPronounStandsFor(t *testing.T) {
	t.Parallel()
	doc := evidence.Source{ID: "d", Text: "The Eiffel Tower stands in Paris. It is 330 m tall. Every year many people climb it on foot. Far away, " + strings.Repeat("others wait ", 40) + "."}
	e := build(t, evidence.Options{WindowWords: 12}, doc)
	got := e.For(nil, "It is 330 m tall.", nil, 1)
	want := "The Eiffel Tower stands in Paris. It is 330 m tall."
	if len(got) != 1 || got[0].Text != want {
		t.Errorf("premises %+v, want %q", got, want)
	}
}

func TestTableRowsAreSentencesWithTheirHeads(t *testing.T) {
	t.Parallel()
	e := build(t, evidence.Options{}, evidence.Source{ID: "d", Text: "| Tower | Height | Year |\n|---|---|---|\n| Eiffel | 330 m | 1889 |\n| Tokyo | 333 m | 1958 |\n"})
	got := e.For(nil, "The height of the Tokyo tower is 333 m.", nil, 1)
	if len(got) != 1 || got[0].Text != "Tokyo | Height 333 m | Year 1958" {
		t.Errorf("premises %+v", got)
	}
	if v, _ := e.Numbers().Check(nil, "The height of the Eiffel tower is 333 m.", ""); v != numeric.Contradicted {
		t.Errorf("swapped height: %v, want contradicted", v)
	}
}

func TestALongTableRowGoesOnUnderItsHead(t *testing.T) {
	t.Parallel()
	const cells = 2000
	var b strings.Builder
	b.WriteString("| Tower | Height |\n|---|---|\n| Eiffel | ")
	for i := range cells {
		fmt.Fprintf(&b, "%d m | ", 1000+i)
	}
	e := build(t, evidence.Options{}, evidence.Source{ID: "d", Text: b.String()})
	if e.Numbers().Len() < cells {
		t.Errorf("%d numbers of %d", e.Numbers().Len(), cells)
	}
	for i := range e.Len() {
		if text := e.Premise(i).Text; len(text) > 2<<10 || i > 1 && !strings.HasPrefix(text, "Eiffel | ") {
			t.Fatalf("sentence %d of %d bytes: %.40q", i, len(text), text)
		}
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		opts evidence.Options
		src  []evidence.Source
	}{
		{"too many facts", evidence.Options{MaxFacts: 1}, facts("a", "b")},
		{"too many bytes", evidence.Options{MaxBytes: 3}, facts("abcd")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := evidence.New(t.Context(), tt.src, tt.opts); !errors.Is(err, evidence.ErrTooLarge) {
				t.Errorf("error %v, want ErrTooLarge", err)
			}
		})
	}
	if _, err := evidence.New(t.Context(), nil, evidence.Options{MaxBytes: -1}); err == nil {
		t.Error("negative limit is taken")
	}
}

func TestRerankDecidesTheOrder(t *testing.T) {
	t.Parallel()
	seen := 0
	e := build(t, evidence.Options{Rerank: func(_ string, list []evidence.Premise) {
		seen = len(list)
		for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
			list[i], list[j] = list[j], list[i]
		}
	}}, towers...)
	plain := build(t, evidence.Options{}, towers...)
	claim := "The Eiffel Tower is a tower in Paris."
	all := plain.For(nil, claim, nil, 4)
	got := e.For(nil, claim, nil, 1)
	if seen != len(all) || len(got) != 1 || got[0].ID != all[len(all)-1].ID {
		t.Errorf("re-ranked first %v of %d, want %v of %d", got, seen, all[len(all)-1].ID, len(all))
	}
}

// library returns about n bytes of similar facts about many things.
func library(n int) []evidence.Source {
	var list []evidence.Source
	for i := 0; n > 200 && len(list) < 512; i++ {
		s := fmt.Sprintf("Station %c%c%d of the northern line was opened in %d, has %d platforms and served %d,%03d passengers in 2023. Its longest platform measures %d m.",
			'A'+i%26, 'a'+i/26%26, i, 1850+i%150, 2+i%7, 10+i%80, i*37%1000, 90+i%211)
		list = append(list, evidence.Source{ID: fmt.Sprint(i), Text: s, Fact: true})
		n -= len(s)
	}
	return list
}

func TestConcurrentQuestionsGiveTheSameAnswer(t *testing.T) {
	t.Parallel()
	e := build(t, evidence.Options{}, library(20<<10)...)
	claim := "Station Ba27 of the northern line was opened in 1890."
	want := e.For(nil, claim, nil, 3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if diff := cmp.Diff(want, e.For(nil, claim, nil, 3)); diff != "" {
					t.Errorf("premises differ (-first +now):\n%s", diff)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestForDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector empties pools at random")
	}
	e := build(t, evidence.Options{}, library(8<<10)...)
	dst := make([]evidence.Premise, 0, 8)
	var found []numeric.Finding
	if n := testing.AllocsPerRun(100, func() {
		_, found = e.Numbers().Check(found[:0], "Station Ba27 was opened in 1890.", "")
		dst = e.For(dst[:0], "Station Ba27 was opened in 1890.", found, 3)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkFor(b *testing.B) {
	e := build(b, evidence.Options{}, library(64<<10)...)
	var dst []evidence.Premise
	b.ReportAllocs()
	for b.Loop() {
		dst = e.For(dst[:0], "Station Ba27 of the northern line was opened in 1890 and has 5 platforms.", nil, 3)
	}
}

// BenchmarkNewOfNumbers prepares 256 KiB of text that is mostly numbers, as tools return it.
func BenchmarkNewOfNumbers(b *testing.B) {
	for name, form := range map[string]string{"plain": "%d ", "lines": "%d\n", "json": `{"id":%d,"n":17},`, "row": "%d | ", "digits": "%.1d;"} {
		b.Run(name, func(b *testing.B) {
			text := []byte("a | b\n--|--\n| c | ")
			for i := 1; len(text) < 256<<10; i++ {
				text = fmt.Appendf(text, form, i*7919%99991)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				build(b, evidence.Options{MaxBytes: 1 << 20}, evidence.Source{Text: string(text)})
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	src := library(64 << 10)
	for b.Loop() {
		build(b, evidence.Options{}, src...)
	}
}
