package tokenize

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

var engines = []string{
	"default", "wordpiece_cased", "bytelevel_roberta", "bytelevel_split",
	"sentencepiece_bpe", "unigram_metaspace", "unigram_precompiled",
}

// TestAgreesWithTheParityFile checks the ids of the file that the training run wrote beside the
// bundle.
func TestAgreesWithTheParityFile(t *testing.T) {
	data, err := os.ReadFile("../../models/testdata/parity.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text string
		IDs  []int64
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) == 0 {
		t.Fatal("parity.json is empty")
	}
	tok := load(t, "default")
	var e Encoding
	for _, r := range rows {
		tok.Encode(r.Text, &e)
		from, to := tok.Windows(e.Len(), 256, 192).At(0)
		if d := cmp.Diff(r.IDs, tok.AppendRow(nil, e.IDs[from:to])); d != "" {
			t.Errorf("%q: row (-training +got):\n%s", r.Text, d)
		}
	}
}

func TestWindowsCoverTheText(t *testing.T) {
	tok := load(t, "default") // two special tokens
	tests := map[string]struct {
		n, size, stride int
		want            [][2]int
	}{
		"an empty text has one empty window":             {0, 10, 4, [][2]int{{0, 0}}},
		"a text that fits has one window":                {8, 10, 4, [][2]int{{0, 8}}},
		"one token more needs a second window":           {9, 10, 4, [][2]int{{0, 8}, {4, 9}}},
		"windows start a stride apart":                   {20, 10, 6, [][2]int{{0, 8}, {6, 14}, {12, 20}}},
		"a stride wider than the room leaves no gap":     {20, 10, 9, [][2]int{{0, 8}, {8, 16}, {16, 20}}},
		"a stride of zero means no overlap":              {16, 10, 0, [][2]int{{0, 8}, {8, 16}}},
		"a size below the special tokens holds one text": {2, 1, 1, [][2]int{{0, 1}, {1, 2}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := tok.Windows(tc.n, tc.size, tc.stride)
			var got [][2]int
			for i := range w.Len() {
				from, to := w.At(i)
				got = append(got, [2]int{from, to})
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("windows (-want +got):\n%s", d)
			}
		})
	}
}

func TestRowAddsSpecialTokens(t *testing.T) {
	if d := cmp.Diff([]int64{7, 101, 5, 6, 102}, load(t, "default").AppendRow([]int64{7}, []int32{5, 6})); d != "" {
		t.Errorf("row (-want +got):\n%s", d)
	}
}

func TestNewRefusesWhatItCannotUse(t *testing.T) {
	const wp = `"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1}}`
	tests := map[string]struct{ file, want string }{
		"text that is no JSON":                {`{`, "unexpected end"},
		"a model type that is unknown":        {`{"model":{"type":"WordLevel","vocab":{}}}`, `model.type: "WordLevel"`},
		"a vocabulary that is missing":        {`{"model":{"type":"WordPiece","unk_token":"x"}}`, "model.vocab"},
		"an id below zero":                    {`{"model":{"type":"WordPiece","unk_token":"x","vocab":{"x":-1}}}`, "has id -1"},
		"an unknown token out of vocabulary":  {`{"model":{"type":"WordPiece","unk_token":"y","vocab":{"x":1}}}`, "model.unk_token"},
		"a WordPiece without unknown token":   {`{"model":{"type":"WordPiece","vocab":{"x":1}}}`, "model.unk_token: missing"},
		"a merge of tokens that do not exist": {`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, "model.merges[0]"},
		"a merge of one token":                {`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`, "model.merges[0]"},
		"a unigram row without score":         {`{"model":{"type":"Unigram","vocab":[["a","b"]]}}`, "model.vocab[0]"},
		"a unigram without tokens":            {`{"model":{"type":"Unigram","vocab":[]}}`, "model.vocab: empty"},
		"an unknown id out of range":          {`{"model":{"type":"Unigram","unk_id":7,"vocab":[["a",-1]]}}`, "model.unk_id"},
		"a normalizer that is unknown":        {`{"normalizer":{"type":"Rot13"},` + wp + `}`, "normalizer: Rot13"},
		"a charsmap that is no base64":        {`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"!"},` + wp + `}`, "Precompiled: illegal base64"},
		"a charsmap that is cut off":          {`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////wAAAAA="},` + wp + `}`, "size of the trie"},
		"a pattern that does not compile":     {`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"},` + wp + `}`, "Split: pattern"},
		"a pattern with lookbehind":           {`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?<=a)b"},"behavior":"Isolated"},` + wp + `}`, "Split: pattern"},
		"a behaviour that is unknown":         {`{"pre_tokenizer":{"type":"Split","pattern":{"String":" "},"behavior":"Eaten"},` + wp + `}`, "behavior"},
		"a template without the text":         {`{"post_processor":{"type":"TemplateProcessing","single":[],"special_tokens":{}},` + wp + `}`, "want one Sequence"},
		"a template with a nameless token":    {`{"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}],"special_tokens":{}},` + wp + `}`, "special_tokens"},
		"two processors that build rows":      {`{"post_processor":{"type":"Sequence","processors":[{"type":"BertProcessing","sep":["s",0],"cls":["c",1]},{"type":"BertProcessing","sep":["s",0],"cls":["c",1]}]},` + wp + `}`, "two processors"},
		"a pair template with one text":       {`{"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}],"pair":[{"Sequence":{"id":"A"}}],"special_tokens":{}},` + wp + `}`, "pair: want one Sequence for each of 2 texts"},
		"an added token with a wild id":       {`{"added_tokens":[{"id":99999999,"content":"x"}],` + wp + `}`, "added_tokens[0]"},
		"a special token with a wild id":      {`{"post_processor":{"type":"BertProcessing","sep":["s",-5],"cls":["c",1]},` + wp + `}`, "special token id"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New([]byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestConcurrentEncodeGivesTheSameTokens(t *testing.T) {
	g := readGolden(t)
	for _, name := range engines {
		t.Run(name, func(t *testing.T) {
			tok := load(t, name)
			var group sync.WaitGroup
			for range 4 {
				group.Go(func() {
					var e Encoding
					for i, text := range g.Texts {
						tok.Encode(text, &e)
						if d := cmp.Diff(g.Tokenizers[name][i].IDs, append([]int32{}, e.IDs...)); d != "" {
							t.Errorf("%q: ids (-want +got):\n%s", text, d)
						}
					}
				})
			}
			group.Wait()
		})
	}
}

// hostile makes texts of about n bytes that are expensive for one of the algorithms.
func hostile(n int) map[string]func() string {
	fill := func(s string) func() string {
		return func() string { return strings.Repeat(s, n/len(s)) }
	}
	random := func(alphabet string) func() string {
		return func() string {
			r := rand.New(rand.NewPCG(1, 2))
			letters := []rune(alphabet)
			var b strings.Builder
			for b.Len() < n {
				b.WriteRune(letters[r.IntN(len(letters))])
			}
			return b.String()
		}
	}
	return map[string]func() string{
		"one letter without a space":   fill("a"),
		"two letters without a space":  random("ab"),
		"random letters":               random("abcdefghijklmnopqrstuvwxyz"),
		"random words":                 random("etaoin shrdlu"),
		"spaces":                       fill(" "),
		"line breaks":                  fill("\n"),
		"punctuation":                  fill("!"),
		"single letters and spaces":    fill("a "),
		"digits and signs":             random("0123456789+-. "),
		"opening angles":               fill("<"),
		"opening brackets":             fill("[CLS"),
		"combining marks":              fill("\u0301"),
		"zalgo":                        fill("a" + strings.Repeat("\u0301\u0323", 40)),
		"precomposed letters":          fill("é"),
		"Hangul":                       fill("각"),
		"Han":                          random("東京大阪信号所線路"),
		"emoji joined to one cluster":  fill("👨\u200d"),
		"zero-width characters":        fill("\u200b"),
		"unassigned planes":            fill("\U000e0041"),
		"a metaspace in every place":   fill("▁"),
		"wide compatibility character": fill("\ufdfa"),
		"squared words":                random("㌀㌁㌂㌃㌄㌅㌆㌇㍿㏿㎯ﷺﷲﷴ"),
		"Kana with voiced marks":       fill("ｶﾞ"),
		"marks out of order":           fill("a" + strings.Repeat("\u0301\u0323\u05b0", 200)),
		"emoji families":               fill("👨‍👩‍👧‍👦"),
		"growing words":                func() string { return growing(n) },
		"random bytes":                 func() string { return randomBytes(n) },
		"special tokens":               fill("[SEP]</s><|im_end|><eos>"),
		"long runs of spaces":          fill("a" + strings.Repeat(" ", 33)),
		"control characters":           fill("a\x01\x02"),
	}
}

// growing is words of one letter more each.
func growing(n int) string {
	var b strings.Builder
	for k := 1; b.Len() < n; k++ {
		b.WriteString(strings.Repeat("e", k))
		b.WriteByte(' ')
	}
	return b.String()[:n]
}

func randomBytes(n int) string {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return string(b)
}

// TestWorkIsLinear counts the steps of the models and the bytes allocated for texts of two sizes.
func TestWorkIsLinear(t *testing.T) {
	small, large := 1<<13, 1<<15
	if testkit.Race {
		small, large = 1<<12, 1<<14
	}
	shorter, longer := hostile(small), hostile(large)
	names := append([]string{"unigram_metaspace", "sentencepiece_bpe"}, layouts...)
	if testkit.Race {
		names = []string{"unigram_metaspace", "sentencepiece_bpe", "bert", "modernbert", "llama3"} // an engine each
	}
	for _, name := range names {
		tok := open(t, name)
		for kind := range shorter {
			var few, many Encoding
			tok.Encode(shorter[kind](), &few)
			text := longer[kind]()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			tok.Encode(text, &many)
			runtime.ReadMemStats(&after)
			if limit := 5*few.steps + 1000; many.steps > limit {
				t.Errorf("%s: %s: %d steps for %d bytes, %d for %d", name, kind, few.steps, small, many.steps, large)
			}
			if many.steps > 100*large {
				t.Errorf("%s: %s: %d steps for %d bytes", name, kind, many.steps, large)
			}
			if n := after.TotalAlloc - before.TotalAlloc; !testkit.Race && n > uint64(200*large) {
				t.Errorf("%s: %s: %d bytes allocated for %d bytes of text", name, kind, n, large)
			}
		}
	}
}

// TestMegabyteFitsInMemory takes the texts that need most for each engine.
func TestMegabyteFitsInMemory(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector allocates too")
	}
	texts := hostile(1 << 20)
	tests := map[string]string{
		"bert": "punctuation", "qwen2": "random bytes", "sentencepiece_bpe": "random bytes", "mmbert": "spaces",
		"xlmr": "wide compatibility character", "unigram_metaspace": "wide compatibility character",
	}
	for name, kind := range tests {
		t.Run(name+" with "+kind, func(t *testing.T) {
			tok, text := open(t, name), texts[kind]()
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var e Encoding
			tok.Encode(text, &e)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 200e6 {
				t.Errorf("%d bytes allocated for a megabyte", n)
			}
		})
	}
}

// fuzzEncode checks what holds for every text and every tokenizer.
func fuzzEncode(f *testing.F, names ...string) {
	f.Helper()
	for _, text := range layoutStrings(f) {
		if len(text)%16 == 0 {
			f.Add(text)
		}
	}
	f.Add("\xff\xfe broken \xc3( utf-8 \xf0\x9f")
	var toks []*Tokenizer
	for _, name := range names {
		toks = append(toks, open(f, name), load(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var e Encoding
		for i, tok := range toks {
			tok.Encode(text, &e)
			checkEncoding(t, names[i/2], tok, text, &e)
		}
	})
}

func checkEncoding(t *testing.T, name string, tok *Tokenizer, text string, e *Encoding) {
	t.Helper()
	if len(e.Start) != len(e.IDs) || len(e.End) != len(e.IDs) {
		t.Fatalf("%s: lengths %d %d %d", name, len(e.IDs), len(e.Start), len(e.End))
	}
	if e.steps > 200*(len(text)+64) {
		t.Fatalf("%s: %q: %d steps", name, text, e.steps)
	}
	last := int32(0)
	for k, id := range e.IDs {
		if id < 0 || int(id) >= tok.VocabSize() {
			t.Fatalf("%s: %q: id %d is outside [0,%d)", name, text, id, tok.VocabSize())
		}
		if e.Start[k] < last || e.End[k] < e.Start[k] || int(e.End[k]) > len(text) {
			t.Fatalf("%s: %q: token %d is [%d,%d) after %d", name, text, k, e.Start[k], e.End[k], last)
		}
		last = e.Start[k]
	}
}

func FuzzWordPiece(f *testing.F) { fuzzEncode(f, "bert", "bert_cased") }

func FuzzByteLevelBPE(f *testing.F) { fuzzEncode(f, "roberta", "modernbert", "qwen2", "llama3") }

func FuzzSentencePieceBPE(f *testing.F) { fuzzEncode(f, "gemma", "mmbert", "sentencepiece_bpe") }

func FuzzUnigram(f *testing.F) {
	fuzzEncode(f, "xlmr", "bge_m3", "unigram_metaspace", "unigram_precompiled")
}

func FuzzNew(f *testing.F) {
	for _, name := range engines[1:] {
		f.Add(tokenizerFile(f, name))
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Contiguous","invert":true}}`))
	f.Add([]byte(`{"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}},{"Sequence":{"id":"A","type_id":0}}],"special_tokens":{}},"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["a",-1],["b",-2]]},"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Strip"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":"x"}]}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, o := range []Options{{}, {SpecialTokens: true}} {
			tok, err := NewWith(data, o)
			if err != nil {
				return
			}
			var e Encoding
			for _, text := range []string{"", " ", "a b", "Ünï▁ 東 \u0301 👍🏽\r\n", "\xff"} {
				tok.Encode(text, &e)
			}
			tok.AppendPair(nil, tok.AppendRow(nil, e.IDs), e.IDs, e.IDs)
		}
	})
}

// A special token that no text leads to does not count: EmbeddingGemma's tokenizer has one for images
// that its table of embeddings has no row for.
func TestTheVocabularyHoldsWhatCanBeGiven(t *testing.T) {
	const file = `{"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1}},
		"added_tokens":[{"id":2,"content":"<word>","special":false},{"id":3,"content":"<image>","special":true}]}`
	for _, c := range []struct {
		o    Options
		want int
	}{{Options{}, 3}, {Options{SpecialTokens: true}, 4}} {
		tok, err := NewWith([]byte(file), c.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.VocabSize(); got != c.want {
			t.Errorf("%+v: %d ids, want %d", c.o, got, c.want)
		}
	}
}
