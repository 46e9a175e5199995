package app

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/classify/tokenize"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/tensor"
)

// openModels opens the embedded bundle as the product does.
func openModels(tb testing.TB) (*neural, *config.Config) {
	tb.Helper()
	needModels(tb)
	cfg, err := DemoConfig()
	if err != nil {
		tb.Fatal(err)
	}
	n, err := openNeural(tb.Context(), cfg, Options{Settings: settings(tb), RequireModels: true, Log: io.Discard}, telemetry.Discard())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.close(); err != nil {
			tb.Error(err)
		}
	})
	return n, cfg
}

func tokenizer(tb testing.TB, n *neural) *tokenize.Tokenizer {
	tb.Helper()
	data, err := n.bundle.Tokenizer()
	if err != nil {
		tb.Fatal(err)
	}
	tok, err := tokenize.New(data)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// oneRow is a batch of one row that is not padded.
func oneRow(ids []int64) []tensor.Tensor {
	shape := []int64{1, int64(len(ids))}
	return []tensor.Tensor{
		{Name: "input_ids", Shape: shape, I64: ids},
		{Name: "attention_mask", Shape: shape, I64: slices.Repeat([]int64{1}, len(ids))},
	}
}

// maxLogitError is what int8 weights and activations may cost against the fp32 model in PyTorch.
const maxLogitError = 0.15

// TestInt8GraphAgreesWithPyTorch compares ids, labels and logits of the embedded graph with those
// of the fp32 model that training wrote beside it.
func TestInt8GraphAgreesWithPyTorch(t *testing.T) {
	n, _ := openModels(t)
	tok := tokenizer(t, n)
	b, err := os.ReadFile("../../models/testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text      string    `json:"text"`
		IDs       []int64   `json:"ids"`
		Domain    []float64 `json:"domain_logits"`
		Jailbreak []float64 `json:"jailbreak_logits"`
		Embedding []float64 `json:"embedding"` // the first dimensions
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 200 {
		t.Fatalf("%d texts, want at least 200", len(rows))
	}
	worst := 0.0
	var enc tokenize.Encoding
	for _, r := range rows {
		enc.Reset()
		tok.Encode(r.Text, &enc)
		_, to := tok.Windows(enc.Len(), n.bundle.Manifest.MaxTokens, n.bundle.Manifest.MaxTokens).At(0)
		ids := tok.AppendRow(nil, enc.IDs[:to])
		if !slices.Equal(ids, r.IDs) {
			t.Errorf("%.40q: ids %v, want %v", r.Text, ids, r.IDs)
			continue
		}
		out, err := n.session.Run(t.Context(), oneRow(ids), []string{"domain_logits", "jailbreak_logits", "embedding"})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float64{r.Domain, r.Jailbreak} {
			got := out[i].F32
			if best(got) != best(want) {
				t.Errorf("%.40q: label %d of %s, PyTorch says %d", r.Text, best(got), out[i].Name, best(want))
			}
			for j := range want {
				worst = max(worst, math.Abs(float64(got[j])-want[j]))
			}
		}
		for j, want := range r.Embedding {
			if d := math.Abs(float64(out[2].F32[j]) - want); d > 0.02 {
				t.Errorf("%.40q: embedding[%d] differs by %.3f", r.Text, j, d)
			}
		}
	}
	t.Logf("%d texts, largest difference of a logit %.3f", len(rows), worst)
	if worst > maxLogitError {
		t.Errorf("a logit differs by %.3f, want at most %.2f", worst, maxLogitError)
	}
}

func best[F float32 | float64](v []F) int {
	at := 0
	for i := range v {
		if v[i] > v[at] {
			at = i
		}
	}
	return at
}

// prompt returns a text of exactly tokens tokens, special tokens included.
func prompt(tb testing.TB, tok *tokenize.Tokenizer, tokens int) string {
	tb.Helper()
	words := strings.Fields(strings.Repeat("please explain how the area under a curve follows from its integral and when a limit does not exist ", 20))
	var enc tokenize.Encoding
	for n := 1; n <= len(words); n++ {
		text := strings.Join(words[:n], " ")
		enc.Reset()
		tok.Encode(text, &enc)
		if enc.Len()+tok.Specials() == tokens {
			return text
		}
	}
	tb.Fatalf("no prefix has %d tokens", tokens)
	return ""
}

// BenchmarkDecision compares a whole decision (tokenise, one neural pass, rules) with the bare run
// of the same input, alternating, and reports medians and their ratio. Run it with -cpu 1.
func BenchmarkDecision(b *testing.B) {
	n, cfg := openModels(b)
	classifier, err := n.classifier(cfg)
	if err != nil {
		b.Fatal(err)
	}
	tok := tokenizer(b, n)
	for _, tokens := range []int{16, 128} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			text := prompt(b, tok, tokens)
			var enc tokenize.Encoding
			tok.Encode(text, &enc)
			in := oneRow(tok.AppendRow(nil, enc.IDs))
			outputs := []string{"domain_logits", "jailbreak_logits"}
			request := &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
			var bare, whole []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := n.session.Run(b.Context(), in, outputs); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, time.Since(start))
				start = time.Now()
				var set signal.Set
				set.Facts.Model = "auto"
				for {
					d, need := cfg.Program.Step(&set)
					if need == 0 {
						if d.Route == "" {
							b.Fatal("no decision")
						}
						break
					}
					classifier.Extract(b.Context(), request, need, &set)
				}
				whole = append(whole, time.Since(start))
			}
			mb, mw := median(bare), median(whole)
			b.ReportMetric(float64(mb.Microseconds()), "bare-us")
			b.ReportMetric(float64(mw.Microseconds()), "decision-us")
			b.ReportMetric(float64(mw)/float64(mb), "ratio")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
