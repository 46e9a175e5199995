package tokenize

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

// layouts are the folders of testdata/layouts; training/fixtures/layouts.py makes them and
// describes golden.gz.
var layouts = []string{
	"bert", "bert_cased", "roberta", "modernbert", "qwen2", "qwen3_embedding", "llama3", "gemma", "mmbert", "xlmr", "bge_m3",
}

// goldenPairs is the number of texts for which golden.gz holds rows.
const goldenPairs = 100

// markers are the spellings of special tokens that layouts.py looks for.
var markers = []string{
	"[CLS]", "[SEP]", "[MASK]", "[PAD]", "[UNK]", "<s>", "</s>", "<unk>", "<pad>", "<mask>", "<bos>", "<eos>",
	"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<start_of_turn>",
}

func spellsSpecial(text string) bool {
	for _, m := range markers {
		if strings.Contains(text, m) {
			return true
		}
	}
	return false
}

func unzip(tb testing.TB, path string) []byte {
	tb.Helper()
	f, err := os.Open(filepath.Clean(path))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func layoutStrings(tb testing.TB) []string {
	tb.Helper()
	var texts []string
	if err := json.Unmarshal(unzip(tb, "testdata/layouts/strings.json.gz"), &texts); err != nil {
		tb.Fatal(err)
	}
	if len(texts) < 2000 {
		tb.Fatalf("%d texts, want at least 2000", len(texts))
	}
	return texts
}

// goldenReader reads the varints of golden.gz.
type goldenReader struct {
	tb   testing.TB
	data []byte
}

func (r *goldenReader) next() uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 {
		r.tb.Fatal("golden.gz is cut off")
	}
	r.data = r.data[n:]
	return v
}

func (r *goldenReader) ids() []int32 {
	out := make([]int32, r.next())
	for i := range out {
		out[i] = int32(r.next())
	}
	return out
}

func offsetSum(e *Encoding) uint32 {
	var raw []byte
	for i := range e.IDs {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(e.Start[i]))
		raw = binary.LittleEndian.AppendUint32(raw, uint32(e.End[i]))
	}
	return crc32.ChecksumIEEE(raw)
}

// faults are texts for which the offsets of the reference are wrong: its charsmap step forgets
// characters that it removes from the start of the text, so every offset after them is too small.
var faults = map[string][]string{
	"\x01\x02 \abell \x1b[31m":    {"xlmr", "bge_m3"},
	"\x7fdel \u0085nel \u009fapc": {"xlmr", "bge_m3"},
}

// TestLayoutsAgreeWithTheReference compares ids and offsets of every text, rows and pairs.
func TestLayoutsAgreeWithTheReference(t *testing.T) {
	texts := layoutStrings(t)
	for _, name := range layouts {
		t.Run(name, func(t *testing.T) {
			r := goldenReader{t, unzip(t, filepath.Join("testdata/layouts", name, "golden.gz"))}
			tok := load(t, name)
			for i, text := range texts {
				if testkit.Race && i%4 > 0 {
					r.ids()
					r.next()
					continue
				}
				compareText(t, tok, name, text, &r)
			}
			for i := range goldenPairs {
				comparePair(t, tok, texts[i], texts[i+1], &r)
			}
			plain := open(t, name)
			for _, text := range texts {
				if spellsSpecial(text) {
					compareLiteral(t, plain, text, &r)
				}
			}
			if len(r.data) > 0 {
				t.Errorf("%d bytes of golden.gz are left", len(r.data))
			}
		})
	}
}

func compareText(t *testing.T, tok *Tokenizer, name, text string, r *goldenReader) {
	t.Helper()
	want, sum := r.ids(), uint32(r.next())
	var e Encoding
	tok.Encode(text, &e)
	if d := cmp.Diff(want, append([]int32{}, e.IDs...)); d != "" {
		t.Errorf("%q: ids (-reference +got):\n%s", text, d)
		return
	}
	if same, fault := sum == offsetSum(&e), slices.Contains(faults[text], name); same == fault {
		t.Errorf("%q: offsets %v %v: equal to the reference %v, want %v", text, e.Start, e.End, same, !fault)
	}
}

func comparePair(t *testing.T, tok *Tokenizer, first, second string, r *goldenReader) {
	t.Helper()
	var a, b Encoding
	tok.Encode(first, &a)
	tok.Encode(second, &b)
	row := r.ids()
	if d := cmp.Diff(row, narrow(tok.AppendRow(nil, a.IDs))); d != "" {
		t.Errorf("%q: row (-reference +got):\n%s", first, d)
	}
	if got := a.Len() + tok.Specials(); got != len(row) {
		t.Errorf("%q: row has %d tokens, Specials says %d", first, len(row), got)
	}
	ids, types := make([]int32, r.next()), []int32{}
	for i := range ids {
		ids[i] = int32(r.next())
		types = append(types, int32(r.next()))
	}
	gotIDs, gotTypes := tok.AppendPair(nil, nil, a.IDs, b.IDs)
	if d := cmp.Diff(ids, narrow(gotIDs)); d != "" {
		t.Errorf("%q and %q: pair (-reference +got):\n%s", first, second, d)
	}
	if d := cmp.Diff(types, narrow(gotTypes)); d != "" {
		t.Errorf("%q and %q: segments (-reference +got):\n%s", first, second, d)
	}
	if got := a.Len() + b.Len() + tok.PairSpecials(); got != len(ids) {
		t.Errorf("%q and %q: pair has %d tokens, PairSpecials says %d", first, second, len(ids), got)
	}
}

// compareLiteral compares with the reference told to read special tokens as text. Its Unigram model
// still finds them in the vocabulary; ours must not, so there only their absence is checked.
func compareLiteral(t *testing.T, tok *Tokenizer, text string, r *goldenReader) {
	t.Helper()
	want := r.ids()
	var e Encoding
	tok.Encode(text, &e)
	u, isUnigram := tok.model.(*unigram)
	if !isUnigram {
		if d := cmp.Diff(want, append([]int32{}, e.IDs...)); d != "" {
			t.Errorf("%q read as text: ids (-reference +got):\n%s", text, d)
		}
		return
	}
	for i, id := range e.IDs {
		if id != u.unknown && slices.ContainsFunc(slices.Concat(tok.single, tok.pair), func(s slot) bool { return s.text == 0 && s.id == id }) {
			t.Errorf("%q: token %d is special token %d", text, i, id)
		}
	}
}

func narrow(ids []int64) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}
