package classify

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

func TestATurnOfAConversationCostsItsNewText(t *testing.T) {
	f := newFake()
	c := openAttacks(t, f, DefaultOptions())
	text := new(signal.Text)
	for turn := range 20 {
		text.Segments = append(text.Segments,
			signal.Segment{
				Role: "user", Origin: signal.OriginUser,
				Text: fmt.Sprintf("w%d math", turn),
			},
			signal.Segment{
				Role: "tool", Origin: signal.OriginData,
				Text: fmt.Sprintf("w%d attack", turn),
			})
		f.calls = nil
		set := extract(t, c, text, attacks)
		if n := rowsOf(f); n != 2 {
			t.Fatalf("turn %d: %d rows, want those of two new texts", turn, n)
		}
		o := DefaultOptions()
		o.Memo = 0
		fresh := extract(t, openAttacks(t, newFake(), o), text, attacks)
		if d := cmp.Diff(fresh, set, approximately); d != "" && turn < 5 {
			t.Fatalf("turn %d (-without memo +with):\n%s", turn, d)
		}
	}
	f.calls = nil
	if extract(t, c, text, attacks); len(f.calls) != 0 {
		t.Errorf("%d runs for what was read before", len(f.calls))
	}
}

func TestPersonalDataIsRememberedBySegment(t *testing.T) {
	g := new(graph)
	c := openPersons(t, g)
	text := &signal.Text{Segments: []signal.Segment{
		{Role: "user", Text: "word attack"},
		{Role: "tool", Text: "math ann@example.com"},
	}}
	first := extract(t, c, text, signal.MaskOf(signal.PII))
	runs := g.runs
	text = &signal.Text{Segments: append([]signal.Segment{{Role: "system", Text: ""}},
		text.Segments...)}
	v := *extract(t, c, text, signal.MaskOf(signal.PII)).Value(signal.PII)
	if g.runs != runs {
		t.Errorf("%d more runs", g.runs-runs)
	}
	if d := cmp.Diff([]string{"1:attack:PERSON", "2:ann@example.com:EMAIL_ADDRESS"},
		found(text, &v)); d != "" || len(first.Value(signal.PII).Spans) != 2 {
		t.Errorf("spans (-want +got):\n%s", d)
	}
}

func TestWhatWasNotReadInFullIsNotRemembered(t *testing.T) {
	f := newFake()
	c := openAttacks(t, f, DefaultOptions())
	long := user(words(400) + " " + attackTwice)
	some := *extract(t, c, long, attacks).Value(signal.Jailbreak)
	set := new(signal.Set)
	c.ExtractAll(t.Context(), long, attacks, set)
	if v := set.Value(signal.Jailbreak); v.Read != v.Windows || some.Read >= some.Windows {
		t.Errorf("%d of %d windows, after %d of %d", v.Read, v.Windows, some.Read, some.Windows)
	}
	if again := *extract(t, c, long, attacks).Value(signal.Jailbreak); again.Read != some.Read ||
		again.Windows != some.Windows {
		t.Errorf("%d of %d windows, want the selection again", again.Read, again.Windows)
	}
}

func TestAFaultIsNotRemembered(t *testing.T) {
	f := newFake()
	o := DefaultOptions()
	o.Timeouts[signal.Jailbreak] = 1
	c := openAttacks(t, f, o)
	extract(t, c, user("attack"), signal.MaskOf(signal.Jailbreak))
	c.opts.Timeouts[signal.Jailbreak] = 0
	if v := extract(t, c, user("attack"),
		signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak); v.State != signal.Known ||
		v.Label != "jailbreak" {
		t.Errorf("jailbreak is %+v", v)
	}
}

func TestAMemoForgetsWhatWasNotUsedLongest(t *testing.T) {
	var m memo
	key := func(i int) *memoKey {
		k := memoKey{kind: signal.Jailbreak}
		k.text[0] = byte(i)
		return &k
	}
	for i := range 10 {
		m.put(key(i), &memory{windows: i}, 4)
		m.get(key(0))
	}
	var got []int
	for i := range 10 {
		if v, ok := m.get(key(i)); ok {
			got = append(got, v.windows)
		}
	}
	if d := cmp.Diff([]int{0, 7, 8, 9}, got); d != "" || m.whole.bytes != 4*memoryBytes {
		t.Errorf("remembered, with %d bytes (-want +got):\n%s", m.whole.bytes, d)
	}
	large := memory{probs: make([]float32, 1000)}
	if m.put(key(50), &large, 4); m.whole.bytes != 4*memoryBytes {
		t.Errorf("%d bytes with a memory that is larger than all", m.whole.bytes)
	}
	if m.put(key(51), &memory{}, 0); len(m.whole.byKey) != 4 {
		t.Error("a memo of no entries remembers")
	}
}

func TestAMemoIsSharedByRequests(t *testing.T) {
	c := openAttacks(t, newFake(), Options{MaxBatch: 8, Windows: 12, Memo: 7})
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for i := range 200 {
				attack := (i+n)%3 == 0
				text := fmt.Sprintf("w%d math w%d", n, i%11)
				if attack {
					text += strings.Repeat(" attack", 3)
				}
				if v := extract(t, c, user(text),
					attacks).Value(signal.Jailbreak); v.State != signal.Known ||
					(v.Label == "jailbreak") != attack {
					t.Errorf("%q is %q", text, v.Label)
				}
			}
		})
	}
	group.Wait()
}
