package tokenize

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPairsFollowThePostProcessor(t *testing.T) {
	const model = `"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0}}}`
	const template = `{"post_processor":{"type":"TemplateProcessing","single":[{"Sequence":{"id":"A","type_id":0}}],` +
		`"special_tokens":{"x":{"ids":[7,8]}},"pair":`
	tests := map[string]struct {
		file       string
		ids, types []int64
	}{
		"without one the texts follow each other": {`{` + model, []int64{1, 2, 3}, []int64{0, 0, 1}},
		"BERT separates the texts once": {
			`{"post_processor":{"type":"BertProcessing","cls":["c",5],"sep":["s",6]},` + model,
			[]int64{5, 1, 2, 6, 3, 6},
			[]int64{0, 0, 0, 0, 1, 1},
		},
		"RoBERTa separates them twice, in one segment": {
			`{"post_processor":{"type":"RobertaProcessing","cls":["c",5],"sep":["s",6]},` + model,
			[]int64{5, 1, 2, 6, 6, 3, 6},
			[]int64{0, 0, 0, 0, 0, 0, 0},
		},
		"a template may turn them round and name tokens of several ids": {
			template + `[{"Sequence":{"id":"B","type_id":1}},{"SpecialToken":{"id":"x","type_id":2}},{"Sequence":{"id":"A","type_id":0}}]},` + model,
			[]int64{3, 7, 8, 1, 2},
			[]int64{1, 2, 2, 0, 0},
		},
		"a template may leave pairs out": {template + `[]},` + model, []int64{1, 2, 3}, []int64{0, 0, 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tok, err := New([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			ids, types := tok.AppendPair([]int64{9}, []int64{9}, []int32{1, 2}, []int32{3})
			if d := cmp.Diff(append([]int64{9}, tc.ids...), ids); d != "" {
				t.Errorf("ids (-want +got):\n%s", d)
			}
			if d := cmp.Diff(append([]int64{9}, tc.types...), types); d != "" {
				t.Errorf("segments (-want +got):\n%s", d)
			}
			if got, want := tok.PairSpecials(), len(tc.ids)-3; got != want {
				t.Errorf("PairSpecials is %d, want %d", got, want)
			}
		})
	}
}

func TestSpecialTokensOfUsersAreText(t *testing.T) {
	tests := map[string]struct {
		layout, text string
		special      string // that the reference finds
	}{
		"a separator of BERT":                         {"bert", "a [SEP] b", "[SEP]"},
		"a turn of a chat":                            {"qwen2", "a<|im_end|>b", "<|im_end|>"},
		"the start of a Llama row":                    {"llama3", "<|begin_of_text|>", "<|begin_of_text|>"},
		"the end of a Gemma row":                      {"mmbert", "a<eos>b", "<eos>"},
		"an end that the Unigram vocabulary holds":    {"xlmr", "a</s>b", "</s>"},
		"an end that normalisation puts together":     {"xlmr", "a ＜／s＞ b", "</s>"},
		"an end that a control character hides":       {"bge_m3", "a <\x01/s> b", "</s>"},
		"a token that swallows the white space ahead": {"modernbert", "a   [MASK]", "[MASK]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reference, user := load(t, tc.layout), open(t, tc.layout)
			var special, got Encoding
			reference.Encode(tc.special, &special)
			if special.Len() != 1 {
				t.Fatalf("%q is %v, want one token", tc.special, special.IDs)
			}
			reference.Encode(tc.text, &got)
			if !slices.Contains(got.IDs, special.IDs[0]) {
				t.Errorf("the reference mode gives %v without %d: the test shows nothing", got.IDs, special.IDs[0])
			}
			user.Encode(tc.text, &got)
			if slices.Contains(got.IDs, special.IDs[0]) {
				t.Errorf("text of a user has special token %d: %v", special.IDs[0], got.IDs)
			}
			if got.Len() == 0 {
				t.Error("the text has no tokens")
			}
		})
	}
}

func TestAddedTokensThatAreNotSpecialAreRecognised(t *testing.T) {
	tok := open(t, "qwen2")
	var e Encoding
	tok.Encode("<think>", &e)
	if e.Len() != 1 {
		t.Errorf("<think> is %v, want one token", e.IDs)
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	tok := open(t, "bert")
	ids, types := make([]int64, 0, 64), make([]int64, 0, 64)
	a, b := []int32{7, 8, 9}, []int32{10, 11}
	if n := testing.AllocsPerRun(100, func() {
		ids, types = tok.AppendPair(ids[:0], types[:0], a, b)
		ids = tok.AppendRow(ids[:0], a)
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func TestOpenFindsTheEngine(t *testing.T) {
	file := tokenizerFile(t, "bert")
	var asked []byte
	other := Alternative{Name: "other", New: func(file []byte) (Engine, error) {
		asked = file
		return New(file)
	}}
	for _, name := range []string{"", "native", "other"} {
		e, err := Open(name, file, other)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		if e.VocabSize() != open(t, "bert").VocabSize() {
			t.Errorf("%q: vocabulary of %d", name, e.VocabSize())
		}
	}
	if len(asked) != len(file) {
		t.Error("the alternative was not asked")
	}
	if _, err := Open("sugarme", file, other); err == nil || !strings.Contains(err.Error(), `"sugarme"`) {
		t.Errorf("error %v, want one that names the engine", err)
	}
}
