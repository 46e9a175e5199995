package classify

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"math"
	"testing"

	"signalbox/classify/lean"
	"signalbox/internal/bounded"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// tellingTurns has a source for all texts and one for other languages, whose head for turns says that
// each follows the one before.
func tellingTurns(tb testing.TB, all, other *fake) *Classifier {
	tb.Helper()
	const dims = 4
	body := binary.LittleEndian.AppendUint32(nil, math.Float32bits(9)) // the bias, and a unit of zeros
	body = append(body, make([]byte, 4*(3+lean.NumFeatures)+2*dims)...)
	data := append([]byte("sbxturns"), 1, 0, dims, 0, 1, 0, 0, 0)
	data = append(binary.LittleEndian.AppendUint32(data, crc32.ChecksumIEEE(body)), body...)
	head, err := lean.LoadHead(data)
	if err != nil {
		tb.Fatal(err)
	}
	c := openTwo(tb, all, other)
	e := c.sources[1].Engine
	e.turns = head
	if c, err = New([]Source{c.sources[0], {Engine: e, Foreign: true}}, c.opts); err != nil {
		tb.Fatal(err)
	}
	return c
}

// germanTurns have no word in common that would tell that one follows another.
var germanTurns = []string{
	german, "Mein Vermieter hat geschrieben, dass seine Tochter unsere Wohnung braucht.",
	"Zwei Gläser Rotwein schaden einem Erwachsenen kaum, sagen manche Ärzte.",
}

func TestATurnInAnotherLanguageIsOneRunOfItsModel(t *testing.T) {
	other := newFake()
	c := tellingTurns(t, newFake(), other)
	for i, turn := range germanTurns {
		text := &signal.Text{LastUser: turn, Before: germanTurns[:i]}
		for _, want := range []int{1, 1} { // the turnVector is known the second time, the domain is not
			other.calls = nil
			// Of the first turn nothing waits for the embedding, and its run may be ended: it is asked for.
			v := *extract(t, c, text, signal.MaskOf(signal.Domain, signal.Embedding)).Value(signal.Domain)
			if v.State != signal.Known || (v.Leans > .9) != (i > 0) || len(other.calls) != want {
				t.Errorf("turn %d: %+v after %d runs", i+1, v, len(other.calls))
			}
		}
	}
}

func TestATurnWhoseModelFailedIsNotRemembered(t *testing.T) {
	domain := signal.MaskOf(signal.Domain)
	for name, first := range map[string]string{"on the turn": german, "on the one before": "what is a lease"} {
		other := newFake()
		c := tellingTurns(t, newFake(), other)
		extract(t, c, user(first), domain)
		text := &signal.Text{LastUser: germanTurns[1], Before: []string{first}}
		fails := first == german // else the run of the turn before alone
		other.hook = func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
			if fails || len(other.calls) == 1 {
				return nil, overload{}
			}
			return out, nil
		}
		other.calls = nil
		if v := extract(t, c, text, domain).Value(signal.Domain); v.State != signal.Known || v.Leans > .9 {
			t.Errorf("%s, by words: %+v", name, v)
		}
		keys, err := digestsOf(t.Context(), []string{first, germanTurns[1]})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := c.subjects.Get(bounded.Key(keys[1])); ok {
			t.Errorf("%s: a turn that words alone have weighed is remembered", name)
		}
		other.hook = nil
		if v := extract(t, c, text, domain).Value(signal.Domain); v.Leans < .9 {
			t.Errorf("%s, later: %+v", name, v)
		}
	}
}

// waiting has the domain of a turn in another language, which waits for the vector of the turn.
func waiting(t *testing.T, c *Classifier, set *signal.Set) *gather {
	t.Helper()
	extract(t, c, user(german), signal.MaskOf(signal.Domain))
	req := newRequest(&signal.Text{LastUser: germanTurns[1], Before: germanTurns[:1]}, bestWindows, &c.opts)
	domain := signal.MaskOf(signal.Domain)
	g := &gather{c: c, req: req, set: set, open: domain | 1<<turnVector, history: c.open(t.Context(), req, domain)}
	g.put(signal.Domain, signal.Value{State: signal.Known, Labels: []string{"a", "b"}, Probs: []float32{.5, .5}})
	if set.Value(signal.Domain).State == signal.Known {
		t.Fatal("the domain did not wait")
	}
	return g
}

func TestAFailureReleasesWhatWaitsForTheVectorOfTheTurn(t *testing.T) {
	var set signal.Set
	g := waiting(t, tellingTurns(t, newFake(), newFake()), &set)
	g.fail(1<<turnVector, signal.ReasonInternal)
	if v := set.Value(signal.Domain); v.State != signal.Known {
		t.Errorf("after the failure: %+v", v)
	}
}

func TestAValueThatWaitsIsThereAtItsDeadline(t *testing.T) {
	var set signal.Set
	c := tellingTurns(t, newFake(), newFake())
	g := waiting(t, c, &set)
	g.expire(signal.MaskOf(signal.Domain), 1)
	if v := set.Value(signal.Domain); v.State != signal.Known || v.Leans > .9 {
		t.Errorf("at the deadline: %+v", v)
	}
	g.put(turnVector, signal.Value{State: signal.Known, Vector: []float32{1, 0, 0, 0}})
	g.finish()
	keys, err := digestsOf(t.Context(), germanTurns[:2])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.subjects.Get(bounded.Key(keys[1])); ok {
		t.Error("a turn that words alone have weighed is remembered")
	}
}
