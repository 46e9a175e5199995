package classify

import (
	"math"
	"strings"
	"testing"

	"signalbox/internal/signal"
)

// closeManifest is a jailbreak task with windows of ten tokens, looked at again from log-odds of 0.
const closeManifest = "threshold: 0.5, document: {bias: 0, top: [1], length: 0, " +
	"close: {from: 0, weight: 0.5, sentences: 2, tokens: 8}}, window: {tokens: 10"

func closeClassifier(t *testing.T, f *fake) *Classifier {
	t.Helper()
	c, err := classifierOf(testBundle(t, "threshold: 0.5, window: {tokens: 10", closeManifest), f,
		DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	f.calls = nil
	return c
}

// long is one token that makes a sentence of what it stands in.
var long = strings.Repeat("x", shortSentence)

// Log-odds of a row of the fake are twice the number of "attack" in it, less one.
func TestTheSentencesOfASuspiciousWindowAreReadAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		odds float64
		rows int // of second looks
	}{
		"one attack in a window of three sentences": {
			long + "\nattack " + long + " attack\n" + long, 0.5*3 + 0.5*3, 4,
		},
		"two sentences, an attack in each": {
			// the window and the pair have both, so nothing is lost
			"attack " + long + "\nattack " + long, 0.5*3 + 0.5*3, 3,
		},
		"one sentence is the window":      {"w1 attack w2", 1, 0},
		"words in lines are one sentence": {"attack\nw3\nattack\nw2", 3, 0},
		"nothing suspicious":              {"w1\nw2\nw3", -1, 0},
		"neighbours that are long together": {
			"attack w1 w2 " + long + "\nattack w5 w6 " + long, 0.5*3 + 0.5*1, 2,
		},
	} {
		f := newFake()
		c := closeClassifier(t, f)
		v := *extract(t, c, user(tc.text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
		want := 1 / (1 + math.Exp(-tc.odds))
		if math.Abs(v.Score-want) > 1e-9 {
			t.Errorf("%s: score %.4f, want %.4f", name, v.Score, want)
		}
		rows := 0
		for _, call := range f.calls {
			rows += len(call.rows)
		}
		if rows != 1+tc.rows {
			t.Errorf("%s: %d rows were run, want %d", name, rows, 1+tc.rows)
		}
	}
}

func TestASecondLookNamesItsSentence(t *testing.T) {
	c := closeClassifier(t, newFake())
	order := "attack " + long + " attack"
	text := long + "\n" + order + "\n" + long
	v := *extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if len(v.Verdicts) != 1 {
		t.Fatalf("verdicts %v, want one", v.Verdicts)
	}
	got := text[v.Verdicts[0].Start:v.Verdicts[0].End]
	if want := order; got != want {
		t.Errorf("%q weighs most, want %q", got, want)
	}
}

func TestASecondLookIsRemembered(t *testing.T) {
	f := newFake()
	c := closeClassifier(t, f)
	text := user(long + "\nattack " + long + " attack\n" + long)
	first := *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	ran := len(f.calls)
	second := *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if len(f.calls) != ran || second.Score != first.Score {
		t.Errorf("%d runs, then %d; score %v, then %v", ran, len(f.calls), first.Score, second.Score)
	}
}

func TestWhatASecondLookCosts(t *testing.T) {
	f := newFake()
	c := closeClassifier(t, f)
	line := long + " attack\n"
	set := extract(t, c, user(strings.Repeat(line, 2000)), signal.MaskOf(signal.Jailbreak))
	if v := set.Value(signal.Jailbreak); v.State != signal.Known {
		t.Fatalf("%v", v.Reason)
	}
	longest := 0
	for _, call := range f.calls {
		longest = max(longest, len(call.rows))
	}
	again := f.calls[len(f.calls)-1]
	if n := len(again.rows); n > 2+3 { // two sentences, and pairs with what is beside them
		t.Errorf("%d rows in the second look, of %d at most in a run", n, longest)
	}
}
