package cache

import (
	"bytes"
	"slices"
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
		got, err := parseAnswer(appendAnswer(nil, Key{7}, a), Key{7})
		if d := cmp.Diff(a, got); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
}

// S12: bytes that nobody wrote are an error.
func FuzzParseAnswer(f *testing.F) {
	head := slices.Clip(append([]byte{version}, make([]byte, len(Key{}))...))
	f.Add(appendAnswer(nil, Key{}, &Answer{Model: "m", Data: []byte("abcdef"), Pieces: []Piece{{2, 5}, {6, 9}}, Made: time.UnixMilli(5)}))
	f.Add(appendAnswer(nil, Key{}, &Answer{Model: "m", Headers: []Header{{"a", "b"}}, Data: []byte("abcdef")}))
	f.Add(append(head, 0, 0, 0, 0, 0, 200))
	f.Add(append(head, 255, 255, 255, 255, 255, 255, 255, 255, 127))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAnswer(data, Key{})
		if err != nil {
			return
		}
		if n := len(a.Pieces); n > 0 && a.Pieces[n-1].End != len(a.Data) {
			t.Fatalf("pieces end at %d of %d", a.Pieces[n-1].End, len(a.Data))
		}
		again, err := parseAnswer(appendAnswer(nil, Key{7}, a), Key{7})
		if err != nil || !bytes.Equal(again.Data, a.Data) || len(again.Pieces) != len(a.Pieces) {
			t.Fatalf("written and read again: %+v, %v", again, err)
		}
	})
}

func FuzzParseNews(f *testing.F) {
	f.Add((&news{Key{1}, Question{Key{2}, "What is Go?", []float32{1, 0, -0.5}}, time.Minute}).encode())
	f.Add((&news{Key{}, Question{Key{}, "", []float32{1}}, 0}).encode())
	f.Add(append(make([]byte, 32), 255, 255, 255, 255, 255, 255, 255, 255, 127))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := parseNews(data)
		if err != nil {
			return
		}
		again, err := parseNews(n.encode())
		if err != nil || again.key != n.key || again.ttl != n.ttl || again.q.Part != n.q.Part || again.q.Text != n.q.Text || len(again.q.Vector) != len(n.q.Vector) {
			t.Fatalf("written and read again: %+v, was %+v, %v", again, n, err)
		}
		if key, ok := parseKey(n.key.String()); !ok || key != n.key {
			t.Fatalf("key %v, was %v", key, n.key)
		}
	})
}
