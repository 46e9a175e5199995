package response_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"signalbox/internal/openai"
	"signalbox/stream/response"
)

// numberedAs returns the outgoing numbers of a stream's deltas. own are the positions of deltas
// before which an event is inserted.
func numberedAs(tb testing.TB, stream string, own ...int) (left []string, changed bool) {
	tb.Helper()
	const told = `"sequence_number":`
	s := response.NewStream()
	s.Reset(response.StreamOptions{API: openai.Response})
	s.Feed([]byte(stream))
	var n response.Numbering
	put := func(c *response.Chunk) {
		n.Number(c)
		_, behind, ok := strings.Cut(string(c.Data), told)
		if !ok {
			behind = "?}"
		}
		left = append(left, behind[:strings.IndexAny(behind, ",}")])
	}
	at := 0
	for c := s.Next(); c != nil; c = s.Next() {
		if slices.Contains(own, at) {
			var added response.Chunk
			r := c.Reader()
			added.Build(r.DeltaName(), r.AppendDelta(nil, response.Delta{}, []byte("x")), r)
			put(&added)
		}
		raw := string(c.Raw)
		put(c)
		changed = changed || raw != string(c.Raw)
		at++
	}
	return left, changed
}

func TestEventsAreNumberedOnFromOneOfOurOwn(t *testing.T) {
	t.Parallel()
	numbers := func(list ...string) (stream string) {
		for _, n := range list {
			stream += `data: {"type":"response.output_text.delta","delta":"a",` + n + "\"item_id\":\"i\"}\n\n"
		}
		return stream
	}
	const told = `"sequence_number":`
	for name, c := range map[string]struct {
		stream string
		own    []int
		want   string
		change bool
	}{
		"nothing of our own":  {numbers(told+"4,", told+" 9,", told+"9,"), nil, "4  9 9", false},
		"one":                 {numbers(told+"4,", told+"5,", told+"6,"), []int{1}, "4 5 6 7", true},
		"two":                 {numbers(told+"4,", told+"7,", told+"8,"), []int{1, 2}, "4 5 6 7 8", true},
		"no numbers are told": {numbers("", "", ""), []int{1}, "? ? ? ?", false},
		"no number at first":  {numbers("", told+"0,", told+"1,"), []int{1}, "? 1 2 3", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, changed := numberedAs(t, c.stream, c.own...)
			if got := strings.Join(left, " "); got != c.want || changed != c.change {
				t.Errorf("numbers %q, changed %v; want %q", got, changed, c.want)
			}
		})
	}
}

func TestEventsAreNumberedOnFromBehindOneThatWasLeftOut(t *testing.T) {
	t.Parallel()
	var (
		n    response.Numbering
		left []string
	)
	s := response.NewStream()
	s.Reset(response.StreamOptions{API: openai.Response})
	for _, number := range []string{"4", "5", "9", "10"} {
		s.Feed([]byte(`data: {"type":"response.output_text.delta","delta":"a","sequence_number":` + number + "}\n\n"))
		c := s.Next()
		c.LeftOut = number == "9"
		n.Number(c)
		left = append(left, strings.TrimSuffix(string(c.Data[bytes.LastIndexByte(c.Data, ':')+1:]), "}"))
	}
	if got := strings.Join(left, " "); got != "4 5 6 7" {
		t.Errorf("numbers %q", got)
	}
}

func TestNumberingCostsNoAllocation(t *testing.T) {
	var (
		r       response.Reader
		n       response.Numbering
		c, more response.Chunk
	)
	data := []byte(`{"type":"response.output_text.delta","delta":"a","sequence_number":7}`)
	one := func() {
		more.Build("", data, &r)
		n.Number(&more)
		c.Build("", data, &r)
		n.Number(&c)
	}
	one()
	if got := testing.AllocsPerRun(100, one); got != 0 {
		t.Errorf("%v allocations", got)
	}
}
