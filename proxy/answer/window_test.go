package answer

import (
	"testing"
)

func TestEventsEndWhereTheirBlankLineEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"data: x\n", 0},
		{"data: x\n\n", 9},
		{"data: x\n\ndata: y", 9},
		{"data: x\r\n\r\nrest", 11},
		{"data: x\r\n\r", 0},
		{"data: x\r\rrest", 9},
		{"data: x\n\r\n", 10},
		{"\n\n", 2},
		{"a\n\nb\n\nc\n", 6},
	}
	for _, tt := range tests {
		if got := eventsEnd([]byte(tt.in), 0); got != tt.want {
			t.Errorf("%q ends at %d, want %d", tt.in, got, tt.want)
		}
	}
}

// The fast search must agree with a plain one, whatever the text and wherever it starts.
func FuzzEventsEnd(f *testing.F) {
	for _, s := range []string{"data: x\n\ndata: y\n\n", "a\r\n\r\nb", "\r\r\n\n", "x\n\r\n\r", "\n\n\n", "\r\n\r\r\n"} {
		f.Add([]byte(s), 0)
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, s []byte, from int) {
		if from < 0 || from > len(s) {
			return
		}
		want := 0
		for i := from + 1; i < len(s); i++ {
			if s[i] == '\n' && (s[i-1] == '\n' || i > 1 && s[i-1] == '\r' && s[i-2] == '\n') || s[i] == '\r' && s[i-1] == '\r' {
				want = i + 1
			}
		}
		if got := eventsEnd(s, from); got != want {
			t.Errorf("%q from %d: %d, want %d", s, from, got, want)
		}
	})
}
