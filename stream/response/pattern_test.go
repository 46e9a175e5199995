package response

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPattern checks that a chunk read by the pattern of the previous one equals the chunk read by
// itself, also after a change, for any text.
func FuzzPattern(f *testing.F) {
	names, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(names) == 0 {
		f.Fatalf("no streams, %v", err)
	}
	for _, name := range names {
		stream, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(stream) {
			if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok {
				for _, inside := range []string{"a", "", `\n\ud83d`, "\xff\u00e9", `"`, `\`, `\"`, `x","role":"user`, "\n"} {
					f.Add(data, []byte(inside))
				}
			}
		}
	}
	f.Add([]byte(`{"choices":[{"delta":{"content":"a"}}],"id":"c","usage":null}`), []byte("longer"))
	f.Fuzz(func(t *testing.T, first, inside []byte) {
		var fast, slow Reader
		fast.Read(first)
		e := fast.Read(first)
		if slow.Read(first); len(e.Deltas) == 0 {
			t.Skip("no text")
		}
		at := e.Deltas[0].At
		second := slices.Concat(first[:at.Start], inside, first[at.End:])
		slow.pattern.before = nil
		got, want := fast.Read(second), slow.Read(second)
		if diff := cmp.Diff(spelled(want), spelled(got)); diff != "" {
			t.Fatalf("%q behind %q (-by itself +by the pattern):\n%s", second, first, diff)
		}
		if diff := cmp.Diff(string(slow.AppendFinish(nil, 0, "stop", nil)), string(fast.AppendFinish(nil, 0, "stop", nil))); diff != "" {
			t.Fatalf("ended (-by itself +by the pattern):\n%s", diff)
		}
	})
}

// spelled returns everything known of an event, and the results of changes to it.
func spelled(e *Event) []any {
	out := []any{e.Shape, e.Why, string(e.Type), e.Failed, e.Usage, e.HasUsage, e.Unread, e.Extension, e.Bare(), e.Spelled()}
	for i := range e.Deltas {
		d := &e.Deltas[i]
		out = append(out, d.Choice, d.Part, d.Kind, d.Whole, string(d.Text), d.At, d.twin)
		out = append(out, string(e.Append(nil, Rewrite{Changes: []Change{{Delta: i, From: 1, To: 2, Text: []byte("y")}}, Extension: []byte("{}")})))
	}
	for _, at := range e.layout.head {
		out = append(out, string(e.data[at.Start:at.End]))
	}
	for _, f := range e.Finishes {
		out = append(out, f.Choice, string(f.Reason))
	}
	return out
}

func TestChunksThatAreAlikeAreReadByTheirPattern(t *testing.T) {
	t.Parallel()
	var r Reader
	r.Read([]byte(`{"id":"c","choices":[{"index":0,"delta":{"content":"one"},"finish_reason":null}]}`))
	if !r.follow([]byte(`{"id":"c","choices":[{"index":0,"delta":{"content":"three"},"finish_reason":null}]}`)) {
		t.Error("another text does not follow")
	}
	for _, data := range []string{
		`{"id":"c","choices":[{"index":1,"delta":{"content":"one"},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"one"},"finish_reason":"stop"}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`,
		`{"id":"c","choices":[{"index":0,"delta":{"content":"a","content":"b"},"finish_reason":null}]}`,
	} {
		if r.follow([]byte(data)) {
			t.Errorf("%s follows", data)
		}
	}
}
