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
			v := *extract(t, c, text, signal.MaskOf(signal.Domain)).Value(signal.Domain)
			if v.State != signal.Known || (v.Leans > .9) != (i > 0) || len(other.calls) != want {
				t.Errorf("turn %d: %+v after %d runs", i+1, v, len(other.calls))
			}
		}
	}
}

func TestATurnWhoseModelFailedIsNotRemembered(t *testing.T) {
	other := newFake()
	c := tellingTurns(t, newFake(), other)
	domain := signal.MaskOf(signal.Domain)
	extract(t, c, user(german), domain)
	text := &signal.Text{LastUser: germanTurns[1], Before: germanTurns[:1]}
	other.hook = func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) {
		return nil, overload{}
	}
	if v := extract(t, c, text, domain).Value(signal.Domain); v.State != signal.Known || v.Leans > .9 {
		t.Errorf("by words: %+v", v)
	}
	keys, err := digestsOf(t.Context(), germanTurns[:2])
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.subjects.Get(bounded.Key(keys[1])); ok {
		t.Error("a turn that words alone have weighed is remembered")
	}
	other.hook = nil
	if v := extract(t, c, text, domain).Value(signal.Domain); v.Leans < .9 {
		t.Errorf("later: %+v", v)
	}
}
