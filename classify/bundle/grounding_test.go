//go:build cgo

package bundle_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/gpu"
	"signalbox/internal/tensor"
	"signalbox/models"
)

// judgedFolder is one folder of expected.json, which training/fixtures/graphs.py writes.
type judgedFolder struct {
	Folder   string          `json:"folder"`
	Template bundle.Template `json:"template"`
	Cases    []judgedCase    `json:"cases"`
}

// judgedCase is what the reference makes of an answer: for each of its tokens, the bytes and the
// probability that nothing supports it.
type judgedCase struct {
	Evidence []string  `json:"evidence"`
	Question string    `json:"question"`
	Answer   string    `json:"answer"`
	Spans    [][2]int  `json:"spans"`
	Probs    []float64 `json:"probs"`
}

func readJudged(tb testing.TB) []judgedFolder {
	tb.Helper()
	data, err := os.ReadFile("testdata/grounding/expected.json")
	if err != nil {
		tb.Fatal(err)
	}
	var out []judgedFolder
	if err := json.Unmarshal(data, &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

// openJudge makes a classifier of a folder.
func openJudge(tb testing.TB, folder string, o bundle.OpenOptions) *classify.Classifier {
	tb.Helper()
	b, err := bundle.Open(os.DirFS("testdata/grounding/"+folder), o)
	if err != nil {
		tb.Fatal(err)
	}
	return classifierOf(tb, b, openGraph(tb, b, folder))
}

// openGraph opens the first graph of a bundle. Where ONNX Runtime is missing the test is skipped,
// except in CI.
func openGraph(tb testing.TB, b *bundle.Bundle, name string) *gpu.Session {
	tb.Helper()
	model, err := b.Graph("")
	if err != nil {
		tb.Fatal(err)
	}
	native := gpu.DefaultOptions()
	native.LibrarySHA256 = os.Getenv("SIGNALBOX_ORT_SHA256")
	r, err := gpu.Open(native)
	if errors.Is(err, gpu.ErrUnavailable) && os.Getenv("CI") == "" {
		tb.Skipf("shared library of ONNX Runtime (make onnxruntime): %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Errorf("close runtime: %v", err)
		}
	})
	s, err := r.NewSession(tb.Context(), model, gpu.SessionOptions{Name: name})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("close session: %v", err)
		}
	})
	return s
}

func classifierOf(tb testing.TB, b *bundle.Bundle, s *gpu.Session) *classify.Classifier {
	tb.Helper()
	e, err := classify.OpenEngine(b, s)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := classify.New([]classify.Source{{Engine: e}}, classify.DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestJudgesOfAnswersSayWhatTheReferenceSays asks for the marks at several thresholds, which shows
// many of the probabilities of the reference, and with them that rows are laid out as there.
func TestJudgesOfAnswersSayWhatTheReferenceSays(t *testing.T) {
	const apart = 1e-3 // probabilities that close may change places
	for _, f := range readJudged(t) {
		t.Run(f.Folder, func(t *testing.T) {
			seen := 0
			for _, threshold := range []float64{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8} {
				c := openJudge(t, f.Folder, bundle.OpenOptions{Task: "grounding", Template: f.Template, Threshold: threshold})
				for _, e := range f.Cases {
					got, err := c.MarkTokens(t.Context(), "grounding", e.Evidence, e.Question, e.Answer)
					if err != nil {
						t.Fatal(err)
					}
					want, sure := e.marks(threshold, apart)
					if !sure {
						continue
					}
					seen += len(want)
					near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < apart })
					if d := cmp.Diff(want, got, near); d != "" {
						t.Errorf("%q from %v on (-want +got):\n%s", e.Answer, threshold, d)
					}
				}
			}
			if seen < 10 {
				t.Errorf("only %d marks were compared", seen)
			}
		})
	}
}

// marks are those of the reference, and whether no token is so near the threshold that they may
// differ.
func (c *judgedCase) marks(threshold, apart float64) (out []classify.Mark, sure bool) {
	open := false
	for i, p := range c.Probs {
		start, end := c.Spans[i][0], c.Spans[i][1]
		for start < end && c.Answer[start] == ' ' {
			start++
		}
		switch {
		case math.Abs(p-threshold) < apart:
			return nil, false
		case start == end:
		case p < threshold:
			open = false
		case open:
			last := &out[len(out)-1]
			last.End, last.Score = end, max(last.Score, p)
		default:
			out, open = append(out, classify.Mark{Start: start, End: end, Score: p}), true
		}
	}
	return out, true
}

func TestJudgesOfAnswersAreUnderstoodUnmodified(t *testing.T) {
	want := map[string]bundle.Task{
		"modernbert-passages": {Template: bundle.Passages, Window: bundle.Window{Tokens: 1024, Stride: 768, Combine: bundle.Mean}},
		"bert-separated":      {Template: bundle.Separated, Window: bundle.Window{Tokens: 128, Stride: 96, Combine: bundle.Mean}},
	}
	for _, f := range readJudged(t) {
		b, err := bundle.Open(os.DirFS("testdata/grounding/"+f.Folder), bundle.OpenOptions{Task: "grounding", Template: f.Template})
		if err != nil {
			t.Fatal(err)
		}
		w := want[f.Folder]
		w.Name, w.Kind, w.Output, w.Temperature, w.Threshold = "grounding", bundle.Token, "logits", 1, 0.5
		w.Labels, w.Positive = []string{"supported", "unsupported"}, "unsupported"
		if d := cmp.Diff(w, b.Manifest.Tasks[0]); d != "" {
			t.Errorf("%s (-want +got):\n%s", f.Folder, d)
		}
	}
}

// BenchmarkPairs compares two pairs of a premise and a claim, 96 tokens each, with a bare run of
// the same rows. The graph is the embedded one, as if one of its heads were for pairs: the work of
// a trunk of that size is what counts.
func BenchmarkPairs(b *testing.B) {
	sub, err := fs.Sub(models.FS, "default")
	if err != nil {
		b.Fatal(err)
	}
	m, err := bundle.Load(sub)
	if err != nil {
		b.Fatal(err)
	}
	task, _ := m.Manifest.Task("complexity")
	pair := *task
	pair.Name, pair.Kind, pair.Positive = "nli", bundle.Pair, ""
	m.Manifest.Tasks, m.Manifest.Canary.Expect = []bundle.Task{pair}, nil
	session := openGraph(b, m, "pairs")
	c := classifierOf(b, m, session)
	text := strings.TrimSpace(strings.Repeat("time ", 47))
	pairs := []classify.Pair{{First: text[:len(text)-5], Second: text}, {First: text, Second: text[:len(text)-5]}}
	rows := tensor.Tensor{Shape: []int64{2, 96}, I64: make([]int64, 2*96)}
	mask := tensor.Tensor{Name: "attention_mask", Shape: rows.Shape, I64: slices.Repeat([]int64{1}, 2*96)}
	for i := range rows.I64 {
		rows.I64[i] = 2051
	}
	rows.Name = "input_ids"
	b.Run("classify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.ClassifyPairs(b.Context(), "nli", pairs); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare session", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := session.Run(b.Context(), []tensor.Tensor{rows, mask}, []string{pair.Output}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
