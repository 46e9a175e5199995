package classify

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify/pii"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
	"signalbox/internal/testkit"
)

const personTask = "{name: pii, kind: token, output: t, labels: [O, B-PERSON, I-PERSON], temperature: 1, threshold: 0.5, window: {tokens: 10, stride: 6, max: 0, combine: mean}}"

// persons sees a name in every `attack`.
func persons(_ string, in map[string][]int64) ([]float32, []int64) {
	var out []float32
	for _, id := range in["input_ids"] {
		if id == attackID {
			out = append(out, 0, 8, 0)
		} else {
			out = append(out, 8, 0, 0)
		}
	}
	return out, []int64{int64(len(in["input_ids"])), 3}
}

func openPersons(tb testing.TB, g *graph) *Classifier {
	tb.Helper()
	g.inputs, g.row = []string{"input_ids", "attention_mask"}, persons
	g.outputs = []tensor.Spec{{Name: "t", DType: tensor.Float32, Shape: []int64{tensor.Dynamic, tensor.Dynamic, 3}}}
	return openOne(tb, g, "", personTask)
}

// found lists spans as segment:text:type.
func found(text *signal.Text, v *signal.Value) []string {
	var out []string
	for _, s := range v.Spans {
		out = append(out, fmt.Sprintf("%d:%s:%s", s.Segment, text.Segments[s.Segment].Text[s.Start:s.End], s.Type))
	}
	return out
}

func TestPersonalDataIsFoundInEverySegment(t *testing.T) {
	c := openPersons(t, new(graph))
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{
		{Role: "system", Text: words(20) + " attack " + words(3)},
		{Role: "tool"},
		{Role: "tool", Text: "attack"},
		{Role: "user", Text: "word math attack, or write to ann@example.com"},
	}}
	v := *extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
	want := []string{"0:attack:PERSON", "2:attack:PERSON", "3:attack:PERSON", "3:ann@example.com:EMAIL_ADDRESS"}
	if d := cmp.Diff(want, found(text, &v)); d != "" {
		t.Errorf("spans (-want +got), state %d %s:\n%s", v.State, v.Reason, d)
	}
	if v.Coverage != signal.Windowed || v.Windows < 2 || v.Read != v.Windows {
		t.Errorf("coverage %d, %d of %d windows", v.Coverage, v.Read, v.Windows)
	}
	slices.Sort(v.Labels)
	if d := cmp.Diff([]string{"EMAIL_ADDRESS", "PERSON"}, v.Labels); d != "" || len(v.Probs) != 2 {
		t.Errorf("types (-want +got), %d scores:\n%s", len(v.Probs), d)
	}
}

// Telling what thousands of tokens say together takes milliseconds, which nobody waits for any more
// when the request has ended.
func TestAnEndedRequestStopsInTheDecoder(t *testing.T) {
	c := openPersons(t, new(graph))
	text := strings.Repeat("attack ", 10_000)
	tokens := make([]pii.Token, 10_000)
	for i := range tokens {
		at := i * len("attack ")
		tokens[i] = pii.Token{Start: at, End: at + len("attack"), Probs: []float32{0, 1, 0}}
	}
	patterns := testkit.NewCountdown(t.Context(), math.MaxInt, context.DeadlineExceeded)
	if _, err := pii.PatternsContext(patterns, text, nil); err != nil {
		t.Fatal(err)
	}
	decoder := c.sources[0].Engine.tasks[1].decoder
	for more := range 2 {
		ctx := testkit.NewCountdown(t.Context(), patterns.Looks()+more, context.DeadlineExceeded)
		spans, err := spansOf(ctx, text, decoder, tokens)
		if !errors.Is(err, context.DeadlineExceeded) || len(spans) > 0 {
			t.Errorf("%d looks into the decoder: %d spans, error %v", more, len(spans), err)
		}
	}
	if spans, err := spansOf(t.Context(), text, decoder, tokens); err != nil || len(spans) == 0 {
		t.Errorf("with time: %d spans, error %v", len(spans), err)
	}
}

func TestNothingFoundIsKnown(t *testing.T) {
	c := openPersons(t, new(graph))
	for name, text := range map[string]*signal.Text{
		"words":       user("math word"),
		"white space": user(" \n"),
		"no segments": {},
	} {
		v := *extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
		if v.State != signal.Known || len(v.Labels) != 0 || len(v.Spans) != 0 {
			t.Errorf("%s: %+v, want known and empty", name, v)
		}
	}
}

// Every token belongs to one window, and offsets are those of the text.
func TestTokensOfOverlappingWindowsAreGivenOnce(t *testing.T) {
	g := new(graph)
	c := openPersons(t, g)
	e := c.sources[0].Engine
	for _, squeeze := range []bool{false, true} {
		g.squeeze = squeeze
		for _, n := range []int{1, 8, 9, 14, 15, 40} {
			text := user(words(n))
			o := DefaultOptions()
			req := newRequest(text, everyWindow, &o)
			if err := req.prepare(t.Context(), signal.MaskOf(signal.PII)); err != nil {
				t.Fatal(err)
			}
			p := new(pass)
			p.reset(e, req, &o)
			if err := p.plan(t.Context(), signal.MaskOf(signal.PII)); err != nil {
				t.Fatal(err)
			}
			if err := p.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, token := range p.classifyTokens(&e.tasks[1], p.reads) {
				got = append(got, text.LastUser[token.Start:token.End])
			}
			if d := cmp.Diff(strings.Fields(text.LastUser), got); d != "" {
				t.Errorf("%d words (-want +got):\n%s", n, d)
			}
		}
	}
}

func TestASelectionFindsPersonalDataWhereItWasRead(t *testing.T) {
	c := openPersons(t, new(graph))
	c.sources[0].Engine.scanner = wordScanner{"nothing"}
	text := user(words(3000) + ", said Ann Attack")
	v := *extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
	if v.State != signal.Known || v.Read >= v.Windows || v.Read < 2 {
		t.Fatalf("state %d, %d of %d windows read, want a selection", v.State, v.Read, v.Windows)
	}
	if d := cmp.Diff([]string{"0:Attack:PERSON"}, found(text, &v)); d != "" {
		t.Errorf("spans in the tail (-want +got):\n%s", d)
	}
}

func TestPatternsServeWithoutAModelOnlyWhereThatIsAsked(t *testing.T) {
	text := user("write to ann@example.com")
	for name, patterns := range map[string]bool{"asked for": true, "not asked for": false} {
		o := DefaultOptions()
		o.Patterns = patterns
		c, err := New(nil, o)
		if err != nil {
			t.Fatal(err)
		}
		v := *extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
		if patterns != (v.State == signal.Known) || !patterns && v.Reason != signal.ReasonNoModel {
			t.Errorf("%s: %+v", name, v)
		}
		if c.Signals().Has(signal.PII) != patterns {
			t.Errorf("%s: signals %v", name, c.Signals().Kinds())
		}
	}
}

// Of a long text the model reads, where all of it is asked for, what can hold something for it: a
// window of numbers, or of addresses that patterns find, costs no run.
func TestTheModelIsSparedWindowsWithoutWords(t *testing.T) {
	numbers := strings.Repeat("4711 12 ", 400)
	mails := strings.Repeat("a@b.org ", 200)
	for _, tc := range []struct {
		name, text string
		rows       int // fewer than there are windows; 0 for none at all
		want       []string
	}{
		{"numbers", numbers, 0, nil},
		{"a name amid numbers", numbers + " Attack " + numbers, 3, []string{"0:Attack:PERSON"}},
		{"a name amid addresses", mails + " Attack " + mails, 3, []string{"0:Attack:PERSON"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := new(graph)
			c := openPersons(t, g)
			before := len(g.seen) // of the canary
			set := new(signal.Set)
			text := user(tc.text)
			c.ExtractAll(t.Context(), text, signal.MaskOf(signal.PII), set)
			v := set.Value(signal.PII)
			if v.State != signal.Known || v.Read != v.Windows || v.Windows < 10 {
				t.Fatalf("state %d (%s), %d of %d windows", v.State, v.Reason, v.Read, v.Windows)
			}
			if n := len(g.seen) - before; n > tc.rows {
				t.Errorf("the model has read %d rows, at most %d hold a word", n, tc.rows)
			}
			var got []string
			for _, s := range found(text, v) {
				if strings.HasSuffix(s, ":PERSON") {
					got = append(got, s)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Models do not recognise names whose letters are escaped.
func TestNamesAreReadWithoutEscapes(t *testing.T) {
	c := openPersons(t, new(graph))
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{
		{Role: "tool", Text: `word \u00e9 att\u00e4ck, math att\u00e4ck`, Origin: signal.OriginData},
	}}
	want := []string{`0:att\u00e4ck:PERSON`, `0:att\u00e4ck:PERSON`}
	for range 2 { // also as it is remembered
		v := extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
		if diff := cmp.Diff(want, found(text, v)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
