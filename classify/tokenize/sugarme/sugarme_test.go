package sugarme

import (
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/classify/tokenize"
)

// files are the WordPiece files that the native engine is tested with.
var files = []string{
	"../../../models/default/tokenizer.json", "../testdata/layouts/bert/tokenizer.json",
	"../testdata/layouts/bert_cased/tokenizer.json", "../testdata/wordpiece_cased.json",
}

func both(tb testing.TB, path string, o tokenize.Options) (native *tokenize.Tokenizer, other *Engine) {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if native, err = tokenize.NewWith(data, o); err != nil {
		tb.Fatal(err)
	}
	if other, err = New(data, o); err != nil {
		tb.Fatal(err)
	}
	return native, other
}

func compare(tb testing.TB, native *tokenize.Tokenizer, other *Engine, text string) {
	tb.Helper()
	var want, got tokenize.Encoding
	native.Encode(text, &want)
	other.Encode(text, &got)
	if d := cmp.Diff(want, got, cmpopts.IgnoreUnexported(tokenize.Encoding{}), cmpopts.EquateEmpty()); d != "" {
		tb.Errorf("%q: tokens (-native +sugarme):\n%s", text, d)
	}
}

// texts cover the paths of the model: whole words, pieces, unknown and overlong words, many
// scripts.
func texts() []string {
	return []string{
		"", " ", "What is the derivative of x squared?", "unbelievably antidisestablishmentarianism",
		strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("é", 101), strings.Repeat("東", 200),
		"naïve café Ångström Łódź İstanbul straße", "Привет, мир! Ёлка", "Ελληνικά ΣΊΣΥΦΟΣ", "עִבְרִית العَرَبِيَّة हिन्दी ไทย 한국어 東京タワー",
		"emoji 😀 👍🏽 👨‍👩‍👧‍👦", "zero\u200bwidth \x00 \x1b[31m \ufffd \xff\xfe", "[CLS] a [SEP] b [UNK] [MASK]", "##ing a##b ##",
		"don't foo_bar 3.14159 https://example.org/a?b=c", "a\u0301\u0323\u0301 e\u0323", "\u1112\u1161\u11ab ㍿ ﷺ ﬁ",
	}
}

func TestAgreesWithTheNativeEngine(t *testing.T) {
	for _, path := range files {
		for _, o := range []tokenize.Options{{}, {SpecialTokens: true}} {
			native, other := both(t, path, o)
			for _, text := range texts() {
				compare(t, native, other, text)
			}
			if native.VocabSize() != other.VocabSize() || native.Specials() != other.Specials() {
				t.Errorf("%s: vocabulary %d or special tokens %d differ", path, other.VocabSize(), other.Specials())
			}
		}
	}
}

func TestReadsABoundedPartOfAText(t *testing.T) {
	_, other := both(t, files[1], tokenize.Options{})
	text := "a" + strings.Repeat("é", MaxBytes) // the bound falls inside a character
	var e tokenize.Encoding
	other.Encode(text, &e)
	end := int(e.End[e.Len()-1])
	if end > MaxBytes || end < MaxBytes-utf8.UTFMax || !utf8.ValidString(text[:end]) {
		t.Errorf("the last token ends at byte %d, want the last character before %d", end, MaxBytes)
	}
}

func TestRefusesOtherFiles(t *testing.T) {
	tests := map[string]struct{ file, want string }{
		"text that is no JSON":               {`{`, "unexpected end"},
		"a BPE model":                        {`{"model":{"type":"BPE","vocab":{},"merges":[]}}`, "only WordPiece"},
		"a vocabulary without unknown token": {`{"model":{"type":"WordPiece","unk_token":"u","vocab":{"a":0}}}`, "unk_token"},
		"an id that is no number":            {`{"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0.5}}}`, `token "u"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Alternative().New([]byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	if _, err := New([]byte(`{"model":{"type":"BPE"}}`), tokenize.Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("error %v, want ErrModel", err)
	}
}

func TestOpenTakesIt(t *testing.T) {
	data, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	e, err := tokenize.Open(Name, data, Alternative())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := e.(*Engine); !ok {
		t.Errorf("engine is %T", e)
	}
}

func FuzzAgreesWithTheNativeEngine(f *testing.F) {
	for _, text := range texts() {
		f.Add(text)
	}
	native, other := both(f, files[1], tokenize.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) <= MaxBytes {
			compare(t, native, other, text)
		}
	})
}
