package decisionlog

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// read returns every line; a line that is too long as "!".
func read(tb testing.TB, r io.Reader, most int) []string {
	tb.Helper()
	var out []string
	lines := NewLines(r, most)
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			if lines.Number() != len(out) {
				tb.Errorf("the last line is number %d, read were %d", lines.Number(), len(out))
			}
			return out
		case errors.Is(err, ErrLongLine):
			out = append(out, "!")
		case err != nil:
			tb.Fatal(err)
		default:
			out = append(out, string(line))
		}
	}
}

func TestLinesOfAnyLengthAreRead(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	for text, want := range map[string]string{
		"":                          "",
		"a":                         "a",
		"a\r\n\nb\n":                "a||b",
		"a\n" + long + "\nb":        "a|" + long + "|b",
		"a\n" + long + long + "\nb": "a|!|b",
		long + long:                 "!",
	} {
		if got := strings.Join(read(t, strings.NewReader(text), 300_000), "|"); got != want {
			t.Errorf("%.20q... is read as %.40q..., want %.40q...", text, got, want)
		}
	}
	failing := errors.New("gone")
	lines := NewLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(failing)), 10)
	if line, err := lines.Next(); string(line) != "a" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := lines.Next(); !errors.Is(err, failing) || lines.Read() != 3 {
		t.Errorf("error %v after %d bytes", err, lines.Read())
	}
}

// The lines of a log do not depend on the pieces in which it arrives, and all of it is read.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\r\n\n\rccc"), 2)
	f.Add([]byte(strings.Repeat("x", 70_000)+"\n{}"), 65_536)
	f.Fuzz(func(t *testing.T, log []byte, most int) {
		most = 1 + most&0x1ffff
		var want []string
		for l := range bytes.Lines(log) {
			if len(l) > most {
				want = append(want, "!")
				continue
			}
			want = append(want, string(bytes.TrimRight(l, "\r\n")))
		}
		for name, r := range map[string]io.Reader{
			"whole": bytes.NewReader(log), "halves": iotest.HalfReader(bytes.NewReader(log)), "with its end": iotest.DataErrReader(bytes.NewReader(log)),
		} {
			if got := read(t, r, most); strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != len(want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	})
}
