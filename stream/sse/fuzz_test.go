package sse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzPieces: however a stream is cut into pieces, the units and the output are the same; the
// events are those of the reference, and a client reads the output as the input, but for the list
// in the package's comment.
func FuzzPieces(f *testing.F) {
	for _, c := range streams {
		f.Add([]byte(c.in), []byte{3, 1, 60})
	}
	for _, s := range []string{text + failure, complete, strings.Repeat("\r", 5) + "\n\n", "data\r\r\n\ndata:\r\n\r", "\xef\xbb", "\xef\xbb\xbf\xef", "event\rdata\r\revent:error\ndata: \n\ndata:x\n\n"} {
		f.Add([]byte(s), []byte{1})
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		if len(stream) > 1<<16 {
			t.Skip("longer than needed")
		}
		sizes := []int{5}
		for _, c := range cuts {
			sizes = append(sizes, int(c))
		}
		units, out, state, err := cut(stream, 0, len(stream)+1)
		if err != nil {
			t.Fatal(err)
		}
		for _, sizes := range [][]int{{1}, sizes} {
			gotUnits, gotOut, gotState, err := cut(stream, 0, sizes...)
			if err != nil || gotState != state {
				t.Fatalf("pieces of %v: state %v, error %v; whole: %v", sizes, gotState, err, state)
			}
			if diff := cmp.Diff(units, gotUnits); diff != "" {
				t.Fatalf("pieces of %v: units (-whole +pieces):\n%s", sizes, diff)
			}
			if gotOut != out {
				t.Fatalf("pieces of %v: output\n%q\nwhole\n%q", sizes, gotOut, out)
			}
		}
		checkRaw(t, string(stream), units)
		want := reference(string(stream))
		if diff := cmp.Diff(want, messages(units)); diff != "" {
			t.Fatalf("events (-reference +got):\n%s", diff)
		}
		want = passed(want)
		if n := len(units); n > 0 && units[n-1].Cut && strings.HasPrefix(units[n-1].Data, "[DONE]") &&
			(len(want) == 0 || !strings.HasPrefix(want[len(want)-1].Data, "[DONE]")) {
			want = append(want, message{Data: "[DONE]"})
		}
		if diff := cmp.Diff(want, reference(out)); diff != "" {
			t.Fatalf("what a client reads of %q (-want +got):\n%s", out, diff)
		}
		if strings.Contains(strings.ReplaceAll(out, "\r\n", ""), "\r") {
			t.Fatalf("a bare CR in %q", out)
		}
	})
}

// checkRaw: the units are the stream, piece by piece.
func checkRaw(t *testing.T, stream string, units []copied) {
	t.Helper()
	for strings.HasPrefix(stream, "\ufeff") {
		stream = stream[len("\ufeff"):]
	}
	for i, u := range units {
		if i > 0 && strings.HasSuffix(units[i-1].Raw, "\r\r") {
			stream = strings.TrimPrefix(stream, "\n") // belongs to no unit
		}
		rest, ok := strings.CutPrefix(stream, u.Raw)
		if !ok {
			t.Fatalf("unit %d is %q, the stream goes on with %q", i, u.Raw, stream)
		}
		stream = rest
		if u.At >= 0 && u.Raw[u.At:u.At+len(u.Data)] != u.Data {
			t.Fatalf("unit %d: data %q is not at %d of %q", i, u.Data, u.At, u.Raw)
		}
	}
	if stream != "" && stream != "\n" {
		t.Fatalf("left over: %q", stream)
	}
}
