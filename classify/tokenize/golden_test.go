package tokenize

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// defaultTokenizer is the file of the embedded bundle.
const defaultTokenizer = "../../models/default/tokenizer.json"

type golden struct {
	Texts      []string
	Tokenizers map[string][]struct {
		IDs     []int32
		Offsets []int32 // start and end of each token
	}
}

// tokenizerFile reads a file of testdata, or the default tokenizer.
func tokenizerFile(tb testing.TB, name string) []byte {
	tb.Helper()
	path := filepath.Join("testdata", name+".json")
	switch {
	case name == "default":
		path = defaultTokenizer
	case slices.Contains(layouts, name):
		path = filepath.Join("testdata/layouts", name, "tokenizer.json")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// open reads a tokenizer for text of users, load one that treats special tokens as the reference
// does.
func open(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	return with(tb, name, Options{})
}

func load(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	return with(tb, name, Options{SpecialTokens: true})
}

func with(tb testing.TB, name string, o Options) *Tokenizer {
	tb.Helper()
	tok, err := NewWith(tokenizerFile(tb, name), o)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return tok
}

func readGolden(tb testing.TB) golden {
	tb.Helper()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		tb.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		tb.Fatal(err)
	}
	return g
}

// TestAgreesWithTheReference compares ids and byte offsets with testdata/golden.json, which
// testdata/gen_golden.py wrote with the reference implementation.
func TestAgreesWithTheReference(t *testing.T) {
	g := readGolden(t)
	if len(g.Tokenizers) != 7 {
		t.Fatalf("golden.json has %d tokenizers, want 7", len(g.Tokenizers))
	}
	for name, want := range g.Tokenizers {
		t.Run(name, func(t *testing.T) {
			tok := load(t, name)
			var e Encoding
			for i, text := range g.Texts {
				tok.Encode(text, &e)
				offsets := make([]int32, 0, 2*e.Len())
				for k := range e.IDs {
					offsets = append(offsets, e.Start[k], e.End[k])
				}
				if d := cmp.Diff(want[i].IDs, append([]int32{}, e.IDs...)); d != "" {
					t.Errorf("%q: ids (-reference +got):\n%s", text, d)
				} else if d := cmp.Diff(want[i].Offsets, offsets); d != "" {
					t.Errorf("%q: offsets (-reference +got):\n%s", text, d)
				}
			}
		})
	}
}
