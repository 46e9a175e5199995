package memory

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/memory/ledger"
)

// quoted is what escape has to give, by the library.
func quoted(tb testing.TB, text string) string {
	tb.Helper()
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b[1 : len(b)-1])
}

func TestTextIsEscapedAsTheLibraryDoes(t *testing.T) {
	t.Parallel()
	for r := range rune(0x2100) {
		for at := range 9 { // every place among the eight bytes that are looked at together
			text := strings.Repeat("x", at) + string(r) + strings.Repeat("\u00e9z", 5)
			if got, want := string(escape(nil, text)), quoted(t, text); got != want {
				t.Fatalf("%q became %s, want %s", text, got, want)
			}
		}
	}
}

// BenchmarkEscape compares with the library, which is what speaks for code of our own.
func BenchmarkEscape(b *testing.B) {
	text := prose("contract", contract)
	dst := make([]byte, 0, 2*len(text))
	for name, f := range map[string]func() ([]byte, error){
		"own":      func() ([]byte, error) { return escape(dst[:0], text), nil },
		"jsontext": func() ([]byte, error) { return jsontext.AppendQuote(dst[:0], text) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzCanonText(f *testing.F) {
	f.Add("plain", " more")
	f.Add("\"quoted\"\\ \u2028 \u0000 \U0001F600", "</script>")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, errA := canon(Content{Text: a})
		if errA == nil && string(x.fragment) != quoted(t, a) {
			t.Fatalf("%q became %s, want %s", a, x.fragment, quoted(t, a))
		}
		y, errB := canon(Content{Text: b})
		if errA != nil || errB != nil {
			t.Skip()
		}
		got, err := textOf(ledger.Text, [][]byte{x.fragment, y.fragment})
		if err != nil || got != a+b {
			t.Fatalf("%q and %q became %q, %v", a, b, got, err)
		}
		whole, err := canon(Content{Text: a + b})
		if err != nil || !bytes.Equal(whole.fragment, append(bytes.Clone(x.fragment), y.fragment...)) {
			t.Fatalf("%q and %q depend on where they were cut: %s", a, b, whole.fragment)
		}
	})
}

func FuzzCanonMessages(f *testing.F) {
	f.Add([]byte(`[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1.0}"}}]}]`))
	f.Add([]byte(`[{"role":"user","content":[{"type":"text","text":"x"}],"n":12345678901234567890}]`))
	f.Fuzz(func(t *testing.T, list []byte) {
		first, err := canon(Content{Messages: list})
		if err != nil {
			t.Skip()
		}
		again, err := canon(Content{Messages: append(append([]byte{'['}, first.fragment...), ']')})
		if err != nil || !bytes.Equal(first.fragment, again.fragment) || first.text != again.text {
			t.Fatalf("%s became %s and then %s, %v", list, first.fragment, again.fragment, err)
		}
	})
}
