package classify

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

// endsAfter is a session that works for so many runs, and ends the request at the next one.
type endsAfter struct {
	Session
	left int
	end  context.CancelCauseFunc
	rows int
}

func (s *endsAfter) Run(ctx context.Context, in []tensor.Tensor, outputs []string) ([]tensor.Tensor, error) {
	if s.left--; s.left < 0 {
		s.end(context.DeadlineExceeded)
		return nil, context.DeadlineExceeded
	}
	s.rows += int(in[0].Shape[0])
	return s.Session.Run(ctx, in, outputs)
}

func TestALongTextIsReadOnWhereTheTimeWasUp(t *testing.T) {
	t.Parallel()
	long := &signal.Text{Segments: []signal.Segment{
		{Role: "tool", Origin: signal.OriginData, Text: words(190) + " attack ann@example.com"},
		{Role: "user", Origin: signal.OriginUser, Text: words(190) + " math " + attackTwice},
	}}
	for _, test := range []struct {
		kind         signal.Kind
		whole, parts *Classifier
	}{
		{signal.PII, openPersons(t, new(graph)), openPersons(t, new(graph))},
		{
			signal.Jailbreak, openAttacks(t, newFake(), DefaultOptions()),
			openAttacks(t, newFake(), DefaultOptions()),
		},
	} {
		t.Run(fmt.Sprint(test.kind), func(t *testing.T) {
			t.Parallel()
			set := new(signal.Set)
			test.whole.ExtractAll(t.Context(), long, signal.MaskOf(test.kind), set)
			want := *set.Value(test.kind)

			c := test.parts
			e := c.sources[0].Engine
			s := &endsAfter{Session: e.session}
			e.session = s
			var v signal.Value
			tries := 0
			for v.State != signal.Known && tries < 50 {
				tries++
				ctx, cancel := context.WithCancelCause(t.Context())
				s.left, s.end = 2, cancel
				set = new(signal.Set)
				c.ExtractAll(ctx, long, signal.MaskOf(test.kind), set)
				cancel(nil)
				v = *set.Value(test.kind)
				if v.State == signal.Unknown && v.Reason != signal.ReasonTimeout {
					t.Fatalf("unknown for %s", v.Reason)
				}
			}
			v.Elapsed, want.Elapsed = 0, 0
			if d := cmp.Diff(want, v, approximately); d != "" || tries < 2 {
				t.Errorf("after %d tries (-read at once +read on):\n%s", tries, d)
			}
			if s.rows > want.Read {
				t.Errorf("%d rows for %d windows", s.rows, want.Read)
			}
			if n := e.memo.parts.recent.Len(); n != 0 || e.memo.parts.bytes != 0 {
				t.Errorf("%d parts are kept of a text that was read", n)
			}
		})
	}
}

func TestPartsAreBounded(t *testing.T) {
	t.Parallel()
	var s lru[partKey, *part]
	key := func(i int) partKey { return partKey{digest{byte(i)}, signal.PII} }
	out := &part{make([]float32, 10)}
	room := 3 * (partBytes + 40)
	for i := range 8 {
		s.put(key(i), out, math.MaxInt, room)
		s.get(key(0))
	}
	var got []int
	for i := range 8 {
		if _, ok := s.get(key(i)); ok {
			got = append(got, i)
		}
	}
	if d := cmp.Diff([]int{0, 6, 7}, got); d != "" || s.bytes != room || len(s.byKey) != 3 {
		t.Errorf("kept, with %d bytes (-want +got):\n%s", s.bytes, d)
	}
	if s.put(key(9), &part{make([]float32, room)}, math.MaxInt, room); s.bytes > room {
		t.Errorf("%d bytes with a part larger than all", s.bytes)
	}
}
