package cache

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnAnswerSurvivesItsEncodedForm(t *testing.T) {
	t.Parallel()
	made := time.UnixMilli(1_700_000_000_123)
	for name, a := range map[string]*Answer{
		"a body":   {Model: "m", Route: "r", ContentType: "application/json", Data: []byte(`{"a":1}`), Made: made, Took: time.Second},
		"headers":  {Model: "m", Headers: []Header{{"X-A", "1"}, {"X-B", ""}}, Data: []byte("x"), Made: made},
		"a stream": {Model: "m", Data: []byte("abcdef"), Pieces: []Piece{{2, time.Second}, {6, 3 * time.Second}}, Made: made},
	} {
		got, err := parseAnswer(appendAnswer(nil, a))
		if d := cmp.Diff(a, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(appendAnswer(nil, &Answer{Model: "m", Data: []byte("abcdef"), Pieces: []Piece{{2, 5}, {6, 9}}, Made: time.UnixMilli(5)}))
	f.Add(appendAnswer(nil, &Answer{Model: "m", Headers: []Header{{"a", "b"}}, Data: []byte("abcdef")}))
	f.Add([]byte{version, 0, 0, 0, 0, 0, 200})
	f.Add([]byte{version, 255, 255, 255, 255, 255, 255, 255, 255, 127})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAnswer(data)
		if err != nil {
			return
		}
		if n := len(a.Pieces); n > 0 && a.Pieces[n-1].End != len(a.Data) {
			t.Fatalf("pieces end at %d of %d", a.Pieces[n-1].End, len(a.Data))
		}
		again, err := parseAnswer(appendAnswer(nil, a))
		if err != nil || !bytes.Equal(again.Data, a.Data) || len(again.Pieces) != len(a.Pieces) {
			t.Fatalf("written and read again: %+v, %v", again, err)
		}
	})
}
