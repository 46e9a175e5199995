package memory

import (
	"bytes"
	"testing"

	"signalbox/memory/ledger"
)

func FuzzCanonText(f *testing.F) {
	f.Add("plain", " more")
	f.Add("\"quoted\"\\ \u2028 \u0000 \U0001F600", "</script>")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, errA := canon(Content{Text: a})
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
