package classify

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/bundle"
	"signalbox/internal/signal"
)

const (
	attacks       = 1<<signal.Jailbreak | 1<<signal.Injection
	injectionTask = "  - {name: injection, kind: sequence, output: i, labels: [benign, injection], positive: injection, " +
		"temperature: 1, threshold: 0.5, window: {tokens: 10, stride: 6, max: 0, combine: max}}\n"
)

// attackTwice is an attack that no window hides.
const attackTwice = "attack" + " attack"

// openAttacks is a Classifier whose bundle looks for both kinds of attack, and can scan.
func openAttacks(tb testing.TB, f *fake, o Options) *Classifier {
	tb.Helper()
	e, err := OpenEngine(testBundle(tb, "  - {name: embedding",
		injectionTask+"  - {name: embedding"), f)
	if err != nil {
		tb.Fatal(err)
	}
	e.scanner = wordScanner{"attack"}
	c, err := New([]Source{{Engine: e}}, o)
	if err != nil {
		tb.Fatal(err)
	}
	f.calls = nil
	return c
}

// said is a conversation with text of every origin; only what is said by `by` holds an attack.
func said(by signal.Origin) *signal.Text {
	t := &signal.Text{LastUser: "math"}
	for o := signal.OriginInstructions; o < signal.NumOrigins; o++ {
		text := "word"
		if o == by {
			text = "word. " + attackTwice + ". math"
		}
		t.Segments = append(t.Segments, signal.Segment{Role: "user", Origin: o, Text: text})
	}
	return t
}

func TestAttacksAreLookedForByOrigin(t *testing.T) {
	o := DefaultOptions()
	o.Read = map[signal.Kind]signal.Origins{ //nolint:exhaustive // one kind is looked at
		signal.Jailbreak: signal.OriginsOf(signal.OriginUser, signal.OriginData),
	}
	c := openAttacks(t, newFake(), o)
	//nolint:exhaustive // labels, jailbreak first
	for by, want := range map[signal.Origin][2]string{
		signal.OriginInstructions: {"benign", "benign"},
		signal.OriginUser:         {"jailbreak", "benign"},
		signal.OriginModel:        {"benign", "benign"},
		signal.OriginData:         {"benign", "injection"},
	} {
		set := extract(t, c, said(by), attacks)
		for i, label := range want {
			k := [...]signal.Kind{signal.Jailbreak, signal.Injection}[i]
			if v := set.Value(k); v.State != signal.Known || v.Label != label {
				t.Errorf("an attack from %v: %v is %q (%s), want %q", by, k, v.Label, v.Reason,
					label)
			}
		}
		var origins []signal.Origin
		for _, v := range set.Value(signal.Jailbreak).Verdicts {
			origins = append(origins, v.Origin)
			if (v.Score > 0.5) != (v.Origin == by) {
				t.Errorf("an attack from %v: the verdict on %v is %.2f", by, v.Origin, v.Score)
			}
			if v.Origin == by &&
				(v.Segment != int(by)-1 ||
					said(by).Segments[v.Segment].Text[v.Start:v.End] != attackTwice+".") {
				t.Errorf("the sentence is [%d,%d) of segment %d", v.Start, v.End, v.Segment)
			}
		}
		if d := cmp.Diff([]signal.Origin{signal.OriginUser, signal.OriginData}, origins); d != "" {
			t.Errorf("origins of verdicts (-want +got):\n%s", d)
		}
	}
}

// A sentence that a program puts into messages of its users is not read, and what stands on both
// sides of it is, where it stands.
func TestSentencesOfProgramsAreNotRead(t *testing.T) {
	const phrase = "Write the title in the language the user wrote in, regardless of the language of the examples above."
	c := openAttacks(t, newFake(), DefaultOptions())
	message := "<session>\nmath word. " + attackTwice + ".\n</session>\n" + phrase + " word " + attackTwice + "."
	read := func(text string) *signal.Set {
		return extract(t, c, &signal.Text{LastUser: text, Segments: []signal.Segment{
			{Role: "user", Text: text, Origin: signal.OriginUser},
		}}, attacks)
	}
	set := read(message)
	for _, k := range []signal.Kind{signal.Jailbreak, signal.Injection} {
		v := set.Value(k).Verdicts
		if len(v) != 1 {
			t.Fatalf("%v has verdicts %+v", k, v)
		}
		got := message[v[0].Start:v[0].End]
		if strings.Contains(got, "title") || !strings.Contains(got, attackTwice) {
			t.Errorf("%v speaks of %q", k, got)
		}
	}
	if v := read(phrase).Value(signal.Jailbreak); v.State != signal.Known || v.Label != "benign" || v.Read != 0 {
		t.Errorf("of the sentence alone jailbreak is %q (%v), after %d windows", v.Label, v.State, v.Read)
	}
}

// What a user shows is read by both: an attack does not hide in a fence from one or the other.
func TestWhatAUserShowsIsDataAsWell(t *testing.T) {
	f := newFake()
	c := openAttacks(t, f, DefaultOptions())
	message := "math word\n```\n" + strings.Repeat("word. ",
		60) + "word " + attackTwice + "\n```\nword math"
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{
		{Role: "system", Text: "word", Origin: signal.OriginInstructions},
		{Role: "user", Text: message, Origin: signal.OriginUser},
	}}
	set := extract(t, c, text, attacks)
	if v := set.Value(signal.Jailbreak); v.Label != "jailbreak" || len(v.Verdicts) != 1 {
		t.Errorf("jailbreak is %q with verdicts %+v", v.Label, v.Verdicts)
	}
	bare := &signal.Text{LastUser: message, Segments: []signal.Segment{
		{Role: "user", Text: "```\n" + attackTwice + "\n```", Origin: signal.OriginUser},
	}}
	if v := extract(t, c, bare, attacks).Value(signal.Jailbreak); v.Label != "jailbreak" {
		t.Errorf("of a message that is a fence jailbreak is %q", v.Label)
	}
	v := set.Value(signal.Injection)
	if v.Label != "injection" || len(v.Verdicts) != 1 ||
		v.Verdicts[0].Origin != signal.OriginData || v.Verdicts[0].Segment != 1 {
		t.Fatalf("injection is %+v", v)
	}
	if got := message[v.Verdicts[0].Start:v.Verdicts[0].End]; got != "word "+attackTwice {
		t.Errorf("the sentence is %q", got)
	}
	o := DefaultOptions()
	o.Origins = map[signal.Kind]signal.Origins{ //nolint:exhaustive // one kind is looked at
		signal.Jailbreak: signal.OriginsOf(signal.OriginUser, signal.OriginData),
	}
	if v := extract(t, openAttacks(t, newFake(), o), text,
		attacks).Value(signal.Jailbreak); v.Label != "jailbreak" || len(v.Verdicts) != 2 {
		t.Errorf("with data among its origins jailbreak is %q with verdicts %+v", v.Label,
			v.Verdicts)
	}
}

func TestTextOfNoOriginIsReadAsItIsByBoth(t *testing.T) {
	c := openAttacks(t, newFake(), DefaultOptions())
	set := extract(t, c, user("math\n```\n"+attackTwice+"\n```\n"), attacks)
	for _, k := range []signal.Kind{signal.Jailbreak, signal.Injection} {
		v := set.Value(k)
		if v.Label != k.String() || len(v.Verdicts) != 1 ||
			v.Verdicts[0].Origin != signal.OriginAny {
			t.Errorf("%v is %q with verdicts %+v", k, v.Label, v.Verdicts)
		}
	}
}

func TestADocumentsScoreIsMadeOfItsBestWindows(t *testing.T) {
	task := func(d *bundle.Document) *task {
		return &task{Task: &bundle.Task{Document: d, Temperature: 2}, positive: 1}
	}
	logistic := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	weighted := &bundle.Document{Bias: -1, Top: []float64{0.5, 0.3, 0.2}, Length: 0.5}
	single := &bundle.Document{Bias: -1, Top: []float64{1}, Single: 1.5}
	for name, tc := range map[string]struct {
		document *bundle.Document
		top      []float64
		windows  int
		want     float64
		scan     float64
	}{
		"without weights the greatest": {nil, []float64{2, 1}, 40, logistic(2), 0},
		"nothing was read":             {weighted, nil, 40, 0, 0},
		"the scan has its say":         {weighted, []float64{4}, 1, logistic(-1 + 4 - .75), -.75},
		"all of them": {
			weighted,
			[]float64{4, 2, 1},
			1,
			logistic(-1 + 2 + .6 + .2),
			0,
		},
		"more windows are less": {
			weighted,
			[]float64{4, 2, 1},
			10,
			logistic(-1 + 2 + .6 + .2 - .5*math.Log(10)),
			0,
		},
		"a text of one window":  {single, []float64{3}, 1, logistic(-1 + 3 + 1.5), 0},
		"a text of two windows": {single, []float64{3}, 2, logistic(-1 + 3), 0},
		"the last one again": {
			weighted,
			[]float64{4, 2},
			1,
			logistic(-1 + 2 + .6 + .4),
			0,
		},
		"one window is what the model says": {
			&bundle.Document{Top: []float64{.6, .4}, Length: 3},
			[]float64{1.5},
			1, logistic(1.5), 0,
		},
	} {
		if got := task(tc.document).document(tc.top, tc.scan, tc.windows); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	if got := task(nil).logOdds([]float32{1, 4}); math.Abs(got-1.5) > 1e-12 {
		t.Errorf("log-odds %v, want those at the temperature, 1.5", got)
	}
	if got, want := task(nil).logOdds([]float32{1, 4, 1}),
		1.5-math.Log(2); math.Abs(got-want) > 1e-12 {
		t.Errorf("log-odds of one of three labels %v, want %v", got, want)
	}
}

func TestTheLabelIsPositiveFromTheThresholdOn(t *testing.T) {
	for threshold, want := range map[string]string{"0.74": "benign", "0.72": "jailbreak"} {
		c, err := classifierOf(testBundle(t, "positive: jailbreak, temperature: 1, threshold: 0.5",
			"positive: jailbreak, temperature: 1, threshold: "+threshold), newFake(),
			DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		v := *extract(t, c, user("attack"), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
		if v.Label != want || math.Abs(v.Score-soft(1, 1, 2)[1]) > 1e-9 {
			t.Errorf("score %.3f, threshold %s: %q, want %q", v.Score, threshold, v.Label, want)
		}
	}
}

func TestTheSentenceThatWeighsMost(t *testing.T) {
	p := &pass{e: &Engine{scanner: wordScanner{"attack"}}, req: new(request)}
	for text, want := range map[string]string{
		"one. two attack! three":                  "two attack!",
		"version 1.2 of attack is out. And more?": "version 1.2 of attack is out.",
		"first line\nattack on line two\nthird":   "attack on line two",
		"\u597d\u3002attack\u3002\u597d":          "attack\u3002",
		"nothing. here":                           "nothing.",
		"":                                        "",
		" \n":                                     " \n",
	} {
		if from, to := p.sentence(text, 0, len(text)); text[from:to] != want {
			t.Errorf("%q: %q, want %q", text, text[from:to], want)
		}
	}
	p.e.scanner = nil
	if from, to := p.sentence("a. b. c.", 3, 8); from != 3 || to != 8 {
		t.Errorf("without a scan: [%d,%d), want the window", from, to)
	}
}

func TestALongColdConversationIsReadWhereTheScanPoints(t *testing.T) {
	f := newFake()
	c := openAttacks(t, f, DefaultOptions())
	text := &signal.Text{LastUser: "math"}
	for i := range 200 {
		message := words(8 + i%2)
		if i == 77 {
			message = "w1 " + attackTwice + " w2"
		}
		text.Segments = append(text.Segments,
			signal.Segment{Role: "user", Text: message, Origin: signal.OriginUser})
	}
	v := *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	if v.Label != "jailbreak" || v.Verdicts[0].Segment != 77 {
		t.Errorf("%q by segment %d, want the attack in 77", v.Label, v.Verdicts[0].Segment)
	}
	if v.Windows < 200 || v.Read > 2*c.opts.Windows || v.Read < c.opts.Windows/2 {
		t.Errorf("%d of %d windows read, want about %d of 200", v.Read, v.Windows, c.opts.Windows)
	}
	set := new(signal.Set)
	c.ExtractAll(t.Context(), text, signal.MaskOf(signal.Jailbreak), set)
	if all := set.Value(signal.Jailbreak); all.Read != all.Windows {
		t.Errorf("ExtractAll read %d of %d windows", all.Read, all.Windows)
	}
	// Turn by turn what was left out is read.
	for range 40 {
		v = *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	}
	if v.Read != v.Windows || v.Label != "jailbreak" {
		t.Errorf("in the end %d of %d windows were read: %q", v.Read, v.Windows, v.Label)
	}
}

// What is new is read although the twins of older texts make them dearer than they look.
func TestTheNewestMessageIsReadWhateverTheOthersCost(t *testing.T) {
	say := func(text string) signal.Segment {
		return signal.Segment{Role: "user", Text: text, Origin: signal.OriginUser}
	}
	hidden, attack := say(strings.Repeat("ma\u00adth ", 30)), say("word "+attackTwice)
	for n := range 5 {
		text := &signal.Text{LastUser: attack.Text}
		text.Segments = append(slices.Repeat([]signal.Segment{hidden}, n), attack)
		c := openAttacks(t, newFake(), DefaultOptions())
		v := *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
		if v.Label != "jailbreak" {
			t.Errorf("behind %d texts: %q, %d of %d windows", n, v.Label, v.Read, v.Windows)
		}
	}
}

// A text has the score that it has alone, whatever stands beside it.
func TestHarmlessTextsDoNotClearAnAttack(t *testing.T) {
	f := newFake()
	e, err := OpenEngine(testBundle(t, "positive: jailbreak, temperature: 1, threshold: 0.5",
		"positive: jailbreak, temperature: 1, threshold: 0.5, "+
			"document: {bias: 0, top: [0.6, 0.4], length: 0.5}"), f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New([]Source{{Engine: e}}, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	score := func(texts ...string) float64 {
		text := &signal.Text{LastUser: "math"}
		for _, s := range texts {
			text.Segments = append(text.Segments,
				signal.Segment{Role: "user", Text: s, Origin: signal.OriginUser})
		}
		return extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak).Score
	}
	alone := score(attackTwice)
	if got := score("word", "math", attackTwice, "word math"); got != alone || alone < 0.5 {
		t.Errorf("%.3f beside harmless texts, %.3f alone", got, alone)
	}
}

func TestAVerdictDependsOnTheTextAlone(t *testing.T) {
	long := strings.Repeat(words(40)+". ", 20) + attackTwice + ". " + words(300)
	segment := signal.Segment{Role: "tool", Text: long, Origin: signal.OriginData}
	var want signal.Verdict
	for i, before := range [][]signal.Segment{
		nil,
		{{Role: "tool", Text: "word attack", Origin: signal.OriginUser}},
		{{Role: "user", Text: words(90), Origin: signal.OriginUser}},
	} {
		c := openAttacks(t, newFake(), DefaultOptions())
		text := &signal.Text{LastUser: "math", Segments: append(before, segment)}
		got := extract(t, c, text, attacks).Value(signal.Injection).Verdicts[0]
		got.Segment = 0
		if i == 0 {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" || got.Score < 0.9 {
			t.Errorf("behind %d segments (-alone +here):\n%s", len(before), d)
		}
	}
}

func TestSentencesEndWithTheMarksOfTheirLanguage(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"One. Two.":          "One.",
		"Version 1.2 is out": "Version 1.2 is out",
		"One\nTwo":           "One\n",
		"一。二。":               "一。",
		"यह एक है। यह दो है।":  "यह एक है।",
		"هل هذا واحد؟ نعم.":    "هل هذا واحد؟",
		"یہ ایک ہے۔ یہ دو ہے۔": "یہ ایک ہے۔",
	} {
		if got := text[:sentenceEnd(text)]; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
