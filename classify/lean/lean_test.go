package lean

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

const integral = "Evaluate the integral of x^2 e^x from 0 to 1."

func odds(before, turn string, cosine float64) float64 {
	return Read(turn).LogOdds([]*Turn{Read(before)}, cosine)
}

func TestLogOdds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		cosine float64
		turns  []string
		leans  bool
	}{
		{"follow-ups in English lean even where their embedding is far away", .05, []string{
			"explain the second step again?", "Can you rewrite it in Python?",
			"Summarize your previous answer in two sentences.", "Is that always true of these?",
		}, true},
		{"turns without a word of their own lean whatever their embedding", -.2, []string{
			"why", "why?", "And then?", "what else?", "ok, continue", "Are you sure?",
		}, true},
		{"turns that say how to answer lean whatever their embedding", -.2, []string{
			"Please answer in German", "auf Deutsch bitte", "en français s'il te plaît", "tl;dr", "go on",
			"I don't understand", "Can you cite a source?", "Explain like I'm five", "Als Tabelle bitte",
			"Verstehe ich nicht", "no entiendo", "Non capisco", "请用中文回答", "わからない", "不懂", "объясни проще",
		}, true},
		{"turns that say how to answer, and about what, do not", .05, []string{
			"Translate the word cat into French", "Explain photosynthesis in German",
			"How do I format a date in Java?", "用中文介绍光合作用",
		}, false},
		{"new questions in English do not", .05, []string{
			"Which dishes are served at a wedding in Armenia?",
			"Write a poem about the sea in the manner of Byron",
		}, false},
		{"follow-ups in other languages lean by their words", NoCosine, []string{
			"¿y en niños?", "Warum?", "pourquoi ?", "为什么?", "а вторую?", "Kannst du das kürzer sagen?",
		}, true},
		{"new questions in other languages do not", NoCosine, []string{
			"Wer hat den Dreißigjährigen Krieg gewonnen?",
			"Escribe una consulta SQL que cuente pedidos por cliente.",
			"Wie wird das Wetter morgen?", "Erkläre mir die Gezeiten.",
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for _, turn := range test.turns {
				if got := odds(integral, turn, test.cosine); got > 0 != test.leans {
					t.Errorf("%q: log-odds %.2f", turn, got)
				}
			}
		})
	}
}

func TestWeightGrowsWithTheCosine(t *testing.T) {
	t.Parallel()
	last := 0.0
	for c := -1.0; c <= 1; c += .1 {
		w := Weight(odds(integral, "What does Kant mean by the categorical imperative?", c))
		if w < last || w < 0 || w > most {
			t.Errorf("cosine %.1f: weight %.3f after %.3f", c, w, last)
		}
		last = w
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Don't do THAT, 3x!": "don't do that 3x",
		"现在用 Java 写":         "现在 在用 用 java 写",
		"naïve été":          "naïve été",
		"l’heure x'":         "l'heure x",
		"":                   "",
	} {
		var got []string
		for w := range words(text) {
			got = append(got, lower(w))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q: %q, want %q", text, s, want)
		}
	}
}

func FuzzLogOdds(f *testing.F) {
	f.Add("a b", "why?", .3, true)
	f.Add(strings.Repeat("世", 3000), strings.Repeat("x'", 4000), -1.0, false)
	f.Fuzz(func(t *testing.T, before, turn string, c float64, known bool) {
		if math.IsNaN(c) || math.Abs(c) > 1 {
			t.Skip()
		}
		if !known {
			c = NoCosine
		}
		if o := odds(before, turn, c); math.IsNaN(o) || math.IsInf(o, 0) {
			t.Errorf("%v", o)
		}
		if s := head(turn); utf8.ValidString(turn) && !utf8.ValidString(s) || len(s) > maxBytes {
			t.Errorf("%d bytes, valid %v", len(s), utf8.ValidString(s))
		}
	})
}
