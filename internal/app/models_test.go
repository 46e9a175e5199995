package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/classify"
	"signalbox/classify/bundle"
	"signalbox/classify/tokenize"
	"signalbox/internal/config"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/internal/tensor"
	"signalbox/models"
)

// embedded is the embedded bundle, open as the product opens it.
type embedded struct {
	bundle     *bundle.Bundle
	session    session
	engine     *classify.Engine
	classifier *classify.Classifier
	cfg        *config.Config
}

// openModels opens the embedded bundle as the product does.
func openModels(tb testing.TB) *embedded {
	tb.Helper()
	needModels(tb)
	cfg, err := DemoConfig()
	if err != nil {
		tb.Fatal(err)
	}
	n, err := openNeural(tb.Context(), cfg, Options{Settings: flags(tb), RequireModels: true, Log: io.Discard}, telemetry.Discard())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := n.close(); err != nil {
			tb.Error(err)
		}
	})
	set, err := n.prepare(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	n.commit(set)
	placed, err := place(&cfg.Classify)
	if err != nil || len(forAll(placed)) != 1 {
		tb.Fatalf("placements %v, %v, want the embedded bundle", placed, err)
	}
	l := n.loaded[placed[0].key]
	return &embedded{bundle: placed[0].bundle, session: l.session, engine: l.engine, classifier: set.classifier, cfg: cfg}
}

func tokenizer(tb testing.TB, n *embedded) *tokenize.Tokenizer {
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

// How far the logits of the graph may be from those of PyTorch, which simulates the rounding of the
// layers as they were trained. Domain does not hold the tighter bound on seven of 218 texts, each
// time in the logit of a subject that is not the answer; see docs/adr/0007-one-base-pass.md.
const (
	maxLogitError  = 0.15 // jailbreak, injection, complexity, factcheck
	maxDomainError = 0.3
)

// TestInt8GraphAgreesWithPyTorch compares ids, labels and logits of the embedded graph with those
// of the model in PyTorch that training wrote beside it.
func TestInt8GraphAgreesWithPyTorch(t *testing.T) {
	n := openModels(t)
	tok := tokenizer(t, n)
	b, err := os.ReadFile("../../models/testdata/parity.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Text       string    `json:"text"`
		IDs        []int64   `json:"ids"`
		Domain     []float64 `json:"domain_logits"`
		Jailbreak  []float64 `json:"jailbreak_logits"`
		Complexity []float64 `json:"complexity_logits"`
		FactCheck  []float64 `json:"factcheck_logits"`
		Injection  []float64 `json:"injection_logits"`

		PII       []int     `json:"pii_labels"` // of every token
		Embedding []float64 `json:"embedding"`  // the first dimensions
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 200 {
		t.Fatalf("%d texts, want at least 200", len(rows))
	}
	var worst [5]float64
	tokens, equal := 0, 0
	bounds := [5]float64{maxDomainError, maxLogitError, maxLogitError, maxLogitError, maxLogitError}
	outputs := []string{
		"domain_logits", "jailbreak_logits", "complexity_logits", "factcheck_logits",
		"injection_logits",
		"pii_logits", "embedding",
	}
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
		out, err := n.session.Run(t.Context(), oneRow(ids), outputs)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range [][]float64{
			r.Domain, r.Jailbreak, r.Complexity, r.FactCheck,
			r.Injection,
		} {
			got := out[i].F32
			for j := range want {
				worst[i] = max(worst[i], math.Abs(float64(got[j])-want[j]))
			}
			near := lead(want) < 2*bounds[i]
			if !near && best(got) != best(want) {
				t.Errorf("%.40q: label %d of %s, PyTorch says %d", r.Text, best(got), out[i].Name, best(want))
			}
		}
		labels := len(out[5].F32) / len(ids)
		for j, want := range r.PII {
			tokens++
			if best(out[5].F32[j*labels:(j+1)*labels]) == want {
				equal++
			}
		}
		for j, want := range r.Embedding {
			if d := math.Abs(float64(out[6].F32[j]) - want); d > 0.02 {
				t.Errorf("%.40q: embedding[%d] differs by %.3f", r.Text, j, d)
			}
		}
	}
	t.Logf("%d texts, largest differences of a logit %.3f, %d of %d tokens with the same label", len(rows), worst, equal, tokens)
	if share := float64(equal) / float64(tokens); share < 0.99 {
		t.Errorf("only %.3f of the tokens have the same label", share)
	}
	for i, w := range worst {
		if w > bounds[i] {
			t.Errorf("a logit of %s differs by %.3f, want at most %.2f", outputs[i], w, bounds[i])
		}
	}
}

// lead is how far the best of v is above the second.
func lead(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)-1] - s[len(s)-2]
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
	n := openModels(b)
	classifier, cfg := n.classifier, n.cfg
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

// clients is how many requests are classified at once in BenchmarkClients.
const clients = 16

// throughput runs work n times from each of the clients at once and returns runs per second.
func throughput(b *testing.B, n int, work func() error) float64 {
	b.Helper()
	var group errgroup.Group
	start := time.Now()
	for range clients {
		group.Go(func() error {
			for range n {
				if err := work(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return float64(n*clients) / time.Since(start).Seconds()
}

// BenchmarkClients compares the throughput of many clients that classify with that of as many that
// run the same rows through the bare session, in turn, and reports the ratio of the medians: what
// lies between must not make them wait for each other.
func BenchmarkClients(b *testing.B) {
	m := openModels(b)
	tok := tokenizer(b, m)
	for _, tokens := range []int{16, 128} {
		b.Run(fmt.Sprintf("tokens=%d", tokens), func(b *testing.B) {
			text := prompt(b, tok, tokens)
			var enc tokenize.Encoding
			tok.Encode(text, &enc)
			in := oneRow(tok.AppendRow(nil, enc.IDs))
			request := &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
			need := signal.MaskOf(signal.Domain, signal.Jailbreak)
			bare := func() error {
				_, err := m.session.Run(b.Context(), in, []string{"domain_logits", "jailbreak_logits"})
				return err
			}
			whole := func() error {
				var set signal.Set
				m.classifier.Extract(b.Context(), request, need, &set)
				if set.Value(signal.Jailbreak).State != signal.Known {
					return errors.New(string(set.Value(signal.Jailbreak).Reason))
				}
				return nil
			}
			each := 640 / tokens
			var bares, wholes []float64
			for b.Loop() {
				bares = append(bares, throughput(b, each, bare))
				wholes = append(wholes, throughput(b, each, whole))
			}
			slices.Sort(bares)
			slices.Sort(wholes)
			b.ReportMetric(bares[len(bares)/2], "bare/s")
			b.ReportMetric(wholes[len(wholes)/2], "classify/s")
			b.ReportMetric(wholes[len(wholes)/2]/bares[len(bares)/2], "ratio")
		})
	}
}

func TestAllEmbeddedBundlesAreListed(t *testing.T) {
	t.Parallel()
	c := config.Default().Classify
	listed := embeddedBundle(&c)
	manifests, err := fs.Glob(models.FS, "*/"+bundle.ManifestFile)
	if err != nil || len(manifests) == 0 {
		t.Fatal(err)
	}
	if n := strings.Count(listed, ",") + 1; n != len(manifests) || !strings.Contains(listed, "signalbox-nli ") {
		t.Errorf("%q lists %d bundles of %q", listed, n, manifests)
	}
}
