package app

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"signalbox/classify"
	"signalbox/internal/signal"
)

const integral = "Evaluate the integral of x^2 e^x from 0 to 1."

// talked are the signals of the last of the turns of a user.
func talked(tb testing.TB, c *classify.Classifier, need signal.Mask, turns ...string) *signal.Set {
	tb.Helper()
	last := len(turns) - 1
	text := &signal.Text{LastUser: turns[last], Before: turns[:last:last]}
	for _, t := range turns {
		text.Segments = append(text.Segments, signal.Segment{Role: "user", Origin: signal.OriginUser, Text: t})
	}
	set := &signal.Set{}
	c.Extract(tb.Context(), text, need, set)
	return set
}

func remembering(tb testing.TB, m *embedded, memo int) *classify.Classifier {
	tb.Helper()
	o := classify.DefaultOptions()
	o.Memo = memo
	c, err := classify.New([]classify.Source{{Engine: m.engine}}, o)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestAFollowUpKeepsTheSubjectAndAChangeMoves(t *testing.T) {
	t.Parallel()
	m := openModels(t)
	domain := signal.MaskOf(signal.Domain)
	for _, memo := range []int{0, classify.DefaultOptions().Memo} {
		c := remembering(t, m, memo)
		for _, tt := range []struct {
			turns []string
			want  string
			leans bool
		}{
			{[]string{integral}, "math", false},
			{[]string{integral, "explain the second step again?"}, "math", true},
			{[]string{integral, "explain the second step again?", "why?"}, "math", true},
			{[]string{integral, "explain the second step again?", "why?", "hm, shorter please"}, "math", true},
			{[]string{integral, "my teacher says otherwise"}, "math", true},
			{[]string{integral, "hm, my calculator shows 0.718"}, "math", true},
			{[]string{integral, "would a lawyer be able to follow that"}, "math", true},
			{[]string{integral, "thanks. is it legal to record calls"}, "law", false},
			{[]string{integral, "why?", "What are early signs of diabetes?"}, "health", false},
			{[]string{integral, "why?", "What are early signs of diabetes?", "and in children?"}, "health", true},
		} {
			v := *talked(t, c, domain, tt.turns...).Value(signal.Domain)
			if v.State != signal.Known || v.Label != tt.want || (v.Leans > .5) != tt.leans {
				t.Errorf("memo %d, %q: %v %q %.2f, leans %.2f", memo, tt.turns[len(tt.turns)-1], v.State, v.Label, v.Score, v.Leans)
			}
			var sum float64
			for _, p := range v.Probs {
				sum += float64(p)
			}
			if sum < .999 || sum > 1.001 {
				t.Errorf("probabilities of sum %v", sum)
			}
		}
	}
}

// The model for other languages tells what follows, without a word that is in a list.
func TestAFollowUpInAnotherLanguageKeepsTheSubject(t *testing.T) {
	t.Parallel()
	c := openModels(t).classifier
	for first, turns := range map[string][2]string{ // a turn that follows, and one that does not
		"Welche Nebenwirkungen hat Ibuprofen bei Kindern?":           {"gibt es die auch als Zäpfchen", "Wie leite ich sin(x²) ab?"},
		"¿Cómo calculo la derivada de un cociente de dos funciones?": {"a mí me sale el signo al revés", "¿Quién escribió La Celestina?"},
		"미분방정식 y' = 2y 를 어떻게 풀어?":                                    {"초기값이 3이면?", "우리 동네 헌법재판소는 무슨 일을 해?"},
		"二次方程式の解の公式を導いてください。":                                        {"途中の計算をもう少し詳しくお願いします", "江戸幕府はなぜ倒れたのですか"},
	} {
		domain := signal.MaskOf(signal.Domain)
		alone := talked(t, c, domain, first).Value(signal.Domain).Label
		if v := talked(t, c, domain, first, turns[0]).Value(signal.Domain); v.Label != alone || v.Leans < .5 {
			t.Errorf("%q behind %q is of %q, leans %.2f; want %q", turns[0], first, v.Label, v.Leans, alone)
		}
		if v := talked(t, c, domain, first, turns[1]).Value(signal.Domain); v.Leans > .5 {
			t.Errorf("%q behind %q is of %q, leans %.2f", turns[1], first, v.Label, v.Leans)
		}
	}
}

// What is remembered of the turns before changes the work, and not what is said.
func TestAConversationSaysTheSameTurnByTurnAndAtOnce(t *testing.T) {
	t.Parallel()
	m := openModels(t)
	need := signal.MaskOf(signal.Domain, signal.Complexity, signal.FactCheck)
	turns := []string{integral, "and from 0 to 2?", "Write it as a Python function.", "now with tests"}
	warm, cold := remembering(t, m, 1<<12), remembering(t, m, 0)
	for n := 1; n <= len(turns); n++ {
		a, b := talked(t, warm, need, turns[:n]...), talked(t, cold, need, turns[:n]...)
		for _, k := range need.Kinds() {
			if !slices.Equal(a.Value(k).Probs, b.Value(k).Probs) {
				t.Errorf("turn %d, %v: %v and %v", n, k, a.Value(k).Probs, b.Value(k).Probs)
			}
		}
	}
	// Signals that are asked for one after the other, as rules do, say the same as at once.
	one := remembering(t, m, 1<<12)
	text := &signal.Text{LastUser: turns[1], Before: turns[:1]}
	var apart signal.Set
	for _, k := range need.Kinds() {
		one.Extract(t.Context(), text, signal.MaskOf(k), &apart)
	}
	at := talked(t, cold, need, turns[:2]...)
	for _, k := range need.Kinds() {
		if apart.Value(k).Label != at.Value(k).Label || apart.Value(k).Leans != at.Value(k).Leans {
			t.Errorf("%v: %+v and %+v", k, apart.Value(k), at.Value(k))
		}
	}
}

func TestTheLanguageOfAShortTurnIsThatOfTheTurnBefore(t *testing.T) {
	t.Parallel()
	m := openModels(t)
	c := remembering(t, m, 1<<12)
	language := signal.MaskOf(signal.Language, signal.Domain)
	const first = "Welche Nebenwirkungen hat Ibuprofen bei Kindern unter zwölf Jahren?"
	v := talked(t, c, language, first, "42?").Value(signal.Language)
	if v.Label != "de" || v.Leans != 1 {
		t.Errorf("%+v", v)
	}
	if v := *talked(t, c, language, "42?").Value(signal.Language); v.State != signal.Unknown {
		t.Errorf("a first turn without a language: %+v", v)
	}
}

func TestConversationsAtOnceDoNotMix(t *testing.T) {
	t.Parallel()
	m := openModels(t)
	c := remembering(t, m, 64) // two subjects: they evict each other
	firsts := map[string]string{"math": integral, "health": "What are early signs of diabetes?", "law": "My landlord kept my deposit. What can I do?"}
	var wg sync.WaitGroup
	for want, first := range firsts {
		for range 4 {
			wg.Go(func() {
				v := talked(t, c, signal.MaskOf(signal.Domain), first, "why?").Value(signal.Domain)
				if v.Label != want {
					t.Errorf("%q, then why: %q", first, v.Label)
				}
			})
		}
	}
	wg.Wait()
}

func TestAConversationStopsWithItsContext(t *testing.T) {
	t.Parallel()
	m := openModels(t)
	c := remembering(t, m, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := &signal.Text{LastUser: "why?", Before: []string{strings.Repeat("long ", 1<<18), integral}}
	var set signal.Set
	c.Extract(ctx, text, signal.MaskOf(signal.Domain), &set)
	if v := set.Value(signal.Domain); v.State != signal.Unknown {
		t.Errorf("%+v", v)
	}
}
