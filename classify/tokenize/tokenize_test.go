package tokenize

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var engines = []string{
	"default", "wordpiece_cased", "bytelevel_roberta", "bytelevel_split",
	"sentencepiece_bpe", "unigram_metaspace", "unigram_precompiled",
}

// TestAgreesWithTheParityFile checks the ids of the file that the training run wrote beside the bundle.
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

// hostile returns texts of n bytes that are expensive for one of the algorithms.
func hostile(n int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, n/len(s)+1)[:n/len(s)*len(s)] }
	random := func(alphabet string) string {
		r := rand.New(rand.NewPCG(1, 2))
		letters := []rune(alphabet)
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	return map[string]string{
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
	}
}

// TestTimeIsBounded tells linear from quadratic: the former takes at most 0.2 s for these sizes on
// one core, the latter minutes. The race detector makes times meaningless, so its builds run small
// texts without the limit. BenchmarkHostile measures.
func TestTimeIsBounded(t *testing.T) {
	size, limit := 1<<17, 5*time.Second
	if raceEnabled {
		size, limit = 1<<12, time.Hour
	}
	texts := hostile(size)
	for _, name := range engines {
		tok := load(t, name)
		var e Encoding
		for kind, text := range texts {
			start := time.Now()
			tok.Encode(text, &e)
			if took := time.Since(start); took > limit {
				t.Errorf("%s: %d bytes of %s took %v", name, len(text), kind, took)
			}
		}
	}
}

func FuzzEncode(f *testing.F) {
	g := readGolden(f)
	for _, text := range g.Texts {
		f.Add(text)
	}
	f.Add("\xff\xfe broken \xc3( utf-8 \xf0\x9f")
	toks := make([]*Tokenizer, len(engines))
	for i, name := range engines {
		toks[i] = load(f, name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var e Encoding
		for i, tok := range toks {
			tok.Encode(text, &e)
			if len(e.Start) != len(e.IDs) || len(e.End) != len(e.IDs) {
				t.Fatalf("%s: lengths %d %d %d", engines[i], len(e.IDs), len(e.Start), len(e.End))
			}
			last := int32(0)
			for k, id := range e.IDs {
				if id < 0 || int(id) >= tok.VocabSize() {
					t.Fatalf("%s: %q: id %d is outside [0,%d)", engines[i], text, id, tok.VocabSize())
				}
				if e.Start[k] < last || e.End[k] < e.Start[k] || int(e.End[k]) > len(text) {
					t.Fatalf("%s: %q: token %d is [%d,%d) after %d", engines[i], text, k, e.Start[k], e.End[k], last)
				}
				last = e.Start[k]
			}
		}
	})
}

func FuzzNew(f *testing.F) {
	for _, name := range engines[1:] {
		data, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Contiguous","invert":true}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		tok, err := New(data)
		if err != nil {
			return
		}
		var e Encoding
		for _, text := range []string{"", " ", "a b", "Ünï▁ 東 \u0301 👍🏽\r\n", "\xff"} {
			tok.Encode(text, &e)
		}
	})
}
