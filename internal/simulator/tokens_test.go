package simulator

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func pieces(text string) []string {
	var out []string
	for text != "" {
		n := pieceLen(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

func TestTokensOfText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"nothing", "", nil},
		{"white space goes with the word after it", "a  big\ndog", []string{"a", "  big", "\ndog"}},
		{"white space at the end is a token", "a \n", []string{"a", " \n"}},
		{"punctuation stands alone", "wait... what?", []string{"wait", ".", ".", ".", " what", "?"}},
		{"a long word is cut after seven bytes", "internationalization", []string{"interna", "tionali", "zation"}},
		{"a token never cuts a character", "漢字漢字é漢", []string{"漢字", "漢字", "é漢"}},
		{"an emoji is one token", "ok🙂ok", []string{"ok", "🙂", "ok"}},
		{"a byte that is not UTF-8 is one token", "a\xffb", []string{"a", "\xff", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, pieces(c.text)); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
			if n := CountTokens(c.text); n != len(c.want) {
				t.Errorf("CountTokens = %d, want %d", n, len(c.want))
			}
		})
	}
}

func FuzzTokensJoinToTheText(f *testing.F) {
	for _, seed := range []string{"", " ", "Hello, world", "漢字\n\n🙂e\u0301", "a\xff\xc3", strings.Repeat("x", 40)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := pieces(text)
		if joined := strings.Join(tokens, ""); joined != text {
			t.Fatalf("tokens join to %q, want %q", joined, text)
		}
		for _, token := range tokens {
			if token == "" || utf8.ValidString(text) && !utf8.ValidString(token) {
				t.Fatalf("token %q of %q", token, text)
			}
			if id := tokenID(token); id < 0 || id >= 128000 {
				t.Fatalf("id %d", id)
			}
		}
	})
}
