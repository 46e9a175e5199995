package classify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"signalbox/classify/lexical"
	"signalbox/internal/signal"
	"signalbox/internal/tensor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const all = 1<<signal.Keyword | 1<<signal.Domain | 1<<signal.Jailbreak | 1<<signal.Embedding

func user(text string) *signal.Text {
	return &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
}

func extract(tb testing.TB, c *Classifier, text *signal.Text, need signal.Mask) *signal.Set {
	tb.Helper()
	set := new(signal.Set)
	c.Extract(tb.Context(), text, need, set)
	return set
}

func soft(t float64, logits ...float64) []float64 {
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(l / t)
	}
	out := make([]float64, len(logits))
	for i, l := range logits {
		out[i] = math.Exp(l/t) / sum
	}
	return out
}

func f32(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

var approximately = cmp.Options{
	cmp.AllowUnexported(signal.Set{}), cmpopts.EquateApprox(0, 1e-6),
	cmpopts.IgnoreFields(signal.Value{}, "Elapsed"),
}

func TestShortPromptIsOneRowAndOneRun(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	set := extract(t, c, user("math word math"), all)
	want := []call{{rows: [][]int64{{clsID, mathID, wordID, mathID, sepID}}, width: 5, outputs: []string{"d", "j", "e"}}}
	if d := cmp.Diff(want, f.calls, cmp.AllowUnexported(call{})); d != "" {
		t.Errorf("runs (-want +got):\n%s", d)
	}
	domain, jailbreak := soft(2, 2, 0, 1), soft(1, 1, 0)
	norm := math.Sqrt(4 + 1 + 1)
	values := map[string]signal.Value{
		"keyword": {State: signal.Known, Source: "lexical"},
		"domain": {
			State: signal.Known, Label: "math", Score: domain[0], Labels: []string{"math", "law", "other"}, Probs: f32(domain),
			Source: "test", Provider: "test", Windows: 1, Read: 1,
		},
		"jailbreak": {
			State: signal.Known, Label: "benign", Score: jailbreak[1], Labels: []string{"benign", "jailbreak"}, Probs: f32(jailbreak),
			Source: "test", Provider: "test", Windows: 1, Read: 1,
			Verdicts: []signal.Verdict{{
				Score: jailbreak[1], Windows: 1, Read: 1,
				End: len("math word math"),
			}},
		},
		"embedding": {
			State: signal.Known, Vector: f32([]float64{2 / norm, 0, 1 / norm, 1 / norm}),
			Source: "test", Provider: "test", Windows: 1, Read: 1,
		},
	}
	for name, v := range values {
		k, _ := signal.ParseKind(name)
		if d := cmp.Diff(v, *set.Value(k), approximately); d != "" {
			t.Errorf("%s (-want +got):\n%s", k, d)
		}
	}
}

func TestRowsAreSharedWhereTokensAreEqual(t *testing.T) {
	tests := map[string]struct {
		text *signal.Text
		need signal.Mask
		rows int
		runs int
	}{
		"a single message": {user("math"), all, 1, 1},
		"segments that differ by white space only": {&signal.Text{
			LastUser: "math",
			Segments: []signal.Segment{
				{Role: "system", Text: " "},
				{Role: "user", Text: " math\n"},
			},
		}, all, 1, 1},
		"a system prompt beside it": {&signal.Text{
			LastUser: "math",
			Segments: []signal.Segment{
				{Role: "system", Text: "word"},
				{Role: "user", Text: "math"},
			},
		}, all, 2, 1},
		"the safety signals alone": {&signal.Text{
			LastUser: "math",
			Segments: []signal.Segment{
				{Role: "system", Text: "word"},
				{Role: "user", Text: "math"},
			},
		}, signal.MaskOf(signal.Jailbreak), 2, 1},
		"a long single message, as a whole and in four windows": {user(words(26)), all, 5, 2},
		"the same words over and over":                          {user(strings.Repeat("word ", 26)), all, 2, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			c := open(t, f, DefaultOptions())
			set := extract(t, c, tc.text, tc.need)
			rows := 0
			for _, r := range f.calls {
				rows += len(r.rows)
			}
			if rows != tc.rows || len(f.calls) != tc.runs {
				t.Errorf("%d rows in %d runs, want %d in %d: %v", rows, len(f.calls), tc.rows, tc.runs, f.calls)
			}
			for _, k := range tc.need.Kinds() {
				if set.Value(k).State != signal.Known {
					t.Errorf("%s is %+v", k, set.Value(k))
				}
			}
		})
	}
}

func TestJailbreakReadsEverySegmentAndEveryWindow(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{
		{Role: "system", Text: words(20)},
		{Role: "tool", Text: words(40) + " attack word attack " + words(20)},
		{Role: "user", Text: "math"},
	}}
	v := *extract(t, c, text, signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
	want := signal.Value{
		State: signal.Known, Label: "jailbreak", Score: soft(1, 1, 4)[1], Labels: []string{"benign", "jailbreak"}, Probs: f32(soft(1, 1, 4)),
		Source: "test", Provider: "test", Coverage: signal.Windowed, Windows: 15, Read: 15,
		Verdicts: []signal.Verdict{{
			Score: soft(1, 1, 4)[1], Windows: 15, Read: 15, Segment: 1,
			Start: 134, End: 171,
		}},
	}
	if d := cmp.Diff(want, v, approximately); d != "" {
		t.Errorf("jailbreak (-want +got):\n%s", d)
	}
	if len(f.calls) != 2 {
		t.Errorf("%d runs of at most 8 rows for 15 windows, want 2", len(f.calls))
	}
}

func TestLongTopicsAreReadAsASkeleton(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	for name, text := range map[string]string{
		"a little too long":          words(33),
		"far too long to be counted": strings.Repeat(words(numbered)+". ", 40),
	} {
		f.calls = nil
		set := extract(t, c, user(text), signal.MaskOf(signal.Domain, signal.Embedding))
		for _, k := range []signal.Kind{signal.Domain, signal.Embedding} {
			v := set.Value(k)
			if v.State != signal.Known || v.Coverage != signal.Compressed || v.Windows != 1 || v.Read != 1 {
				t.Errorf("%s: %s is %+v, want known from one skeleton", name, k, v)
			}
		}
		if len(f.calls) != 1 || len(f.calls[0].rows) != 1 || f.calls[0].width > 34 {
			t.Errorf("%s: runs %v, want one row of at most 34 tokens", name, f.calls)
		}
	}
	f.calls = nil
	v := *extract(t, c, user(words(32)), signal.MaskOf(signal.Domain)).Value(signal.Domain)
	if v.Coverage != signal.Complete || f.calls[0].width != 34 {
		t.Errorf("a text that fits has coverage %d in a row of %d tokens", v.Coverage, f.calls[0].width)
	}
}

func TestASkeletonIsAsShortAsTheBundleSays(t *testing.T) {
	f := newFake()
	c,
		err := classifierOf(testBundle(t,
		"name: embedding, kind: embedding, output: e, dims: 4, window: {",
		"name: embedding, kind: embedding, output: e, dims: 4, window: {skeleton: 24, "), f,
		DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		words int
		width int64
	}{"that fits": {32, 34}, "that does not": {300, 24}} {
		f.calls = nil
		v := extract(t, c, user(words(tc.words)),
			signal.MaskOf(signal.Embedding)).Value(signal.Embedding)
		if compressed := v.Coverage == signal.Compressed; compressed != (tc.width == 24) ||
			f.calls[0].width > tc.width || f.calls[0].width < tc.width-8 {
			t.Errorf("a text %s is read in %d tokens, want at most %d", name,
				f.calls[0].width, tc.width)
		}
	}
}

func TestBatchesHoldSimilarLengthsAndAreCapped(t *testing.T) {
	f := newFake()
	opts := DefaultOptions()
	opts.MaxBatch = 2
	c := open(t, f, opts)
	extract(t, c, user(words(26)), all)
	got := make([]int, 0, 3)
	for _, r := range f.calls {
		got = append(got, len(r.rows))
	}
	if d := cmp.Diff([]int{2, 2, 1}, got); d != "" {
		t.Errorf("rows of each run (-want +got):\n%s", d)
	}
	for n, want := range map[int]int{1: 4, 16: 4, 17: 5, 32: 5, 33: 6, 256: 8} {
		if bucket(n) != want {
			t.Errorf("%d tokens are in bucket %d, want %d", n, bucket(n), want)
		}
	}
}

type overload struct{}

func (overload) Error() string         { return "queue is full" }
func (overload) Reason() signal.Reason { return signal.ReasonOverload }

func TestFaultsMakeSignalsUnknown(t *testing.T) {
	fail := func(err error) func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) {
		return func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) { return nil, err }
	}
	edit := func(f func(out []tensor.Tensor) []tensor.Tensor) func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) {
		return func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) { return f(out), nil }
	}
	everything := func(r signal.Reason) map[string]signal.Reason {
		return map[string]signal.Reason{"domain": r, "jailbreak": r, "embedding": r}
	}
	only := func(k signal.Kind) map[string]signal.Reason {
		return map[string]signal.Reason{k.String(): signal.ReasonInvalid}
	}
	tests := map[string]struct {
		hook func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error)
		want map[string]signal.Reason
	}{
		"an error that knows its reason":      {fail(fmt.Errorf("run: %w", overload{})), everything(signal.ReasonOverload)},
		"an error that does not":              {fail(errors.New("boom")), everything(signal.ReasonInternal)},
		"a deadline":                          {fail(fmt.Errorf("run: %w", context.DeadlineExceeded)), everything(signal.ReasonTimeout)},
		"a cancellation":                      {fail(context.Canceled), everything(signal.ReasonCanceled)},
		"too few outputs":                     {edit(func(o []tensor.Tensor) []tensor.Tensor { return o[:len(o)-1] }), everything(signal.ReasonInvalid)},
		"not a number":                        {edit(func(o []tensor.Tensor) []tensor.Tensor { o[0].F32[1] = float32(math.NaN()); return o }), only(signal.Domain)},
		"an infinity":                         {edit(func(o []tensor.Tensor) []tensor.Tensor { o[1].F32[0] = float32(math.Inf(1)); return o }), only(signal.Jailbreak)},
		"a wrong number of labels":            {edit(func(o []tensor.Tensor) []tensor.Tensor { o[0].F32, o[0].Shape = o[0].F32[:2], []int64{1, 2}; return o }), only(signal.Domain)},
		"a shape that the data does not fill": {edit(func(o []tensor.Tensor) []tensor.Tensor { o[1].F32 = o[1].F32[:1]; return o }), only(signal.Jailbreak)},
		"a rank too many":                     {edit(func(o []tensor.Tensor) []tensor.Tensor { o[2].Shape = []int64{1, 1, 4}; return o }), only(signal.Embedding)},
		"a vector without direction":          {edit(func(o []tensor.Tensor) []tensor.Tensor { clear(o[2].F32); return o }), only(signal.Embedding)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.hook = tc.hook
			c := open(t, f, DefaultOptions())
			set := extract(t, c, user("math"), all)
			for _, k := range []signal.Kind{signal.Domain, signal.Jailbreak, signal.Embedding} {
				v := set.Value(k)
				why, unknown := tc.want[k.String()]
				if unknown != (v.State == signal.Unknown) || v.Reason != why {
					t.Errorf("%s is state %d, reason %q, want reason %q", k, v.State, v.Reason, why)
				}
				if unknown && (v.Label != "" || v.Score != 0 || v.Probs != nil || v.Vector != nil) {
					t.Errorf("%s is unknown and has an answer: %+v", k, v)
				}
			}
		})
	}
}

func TestKindsThatWereReadStayKnownWhenALaterRunFails(t *testing.T) {
	f := newFake()
	f.hook = func(_ context.Context, n int, out []tensor.Tensor) ([]tensor.Tensor, error) {
		if n > 1 {
			return nil, overload{}
		}
		return out, nil
	}
	opts := DefaultOptions()
	opts.MaxBatch = 1
	c := open(t, f, opts)
	text := &signal.Text{LastUser: "math", Segments: []signal.Segment{{Role: "user", Text: "math"}, {Role: "tool", Text: words(40)}}}
	set := extract(t, c, text, all)
	if v := set.Value(signal.Domain); v.State != signal.Known || v.Label == "" {
		t.Errorf("domain is %+v, its only row was read", v)
	}
	if v := set.Value(signal.Jailbreak); v.State != signal.Unknown || v.Reason != signal.ReasonOverload {
		t.Errorf("jailbreak is %+v, one of its windows was not read", v)
	}
}

func TestTimeoutAndCancellation(t *testing.T) {
	waits := func(ctx context.Context, _ int, _ []tensor.Tensor) ([]tensor.Tensor, error) {
		<-ctx.Done()
		return nil, fmt.Errorf("run stopped: %w", ctx.Err())
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hook = waits
		c := open(t, f, DefaultOptions())
		start := time.Now()
		v := *extract(t, c, user("math"), all).Value(signal.Jailbreak)
		if v.Reason != signal.ReasonTimeout || time.Since(start) != DefaultOptions().Timeout {
			t.Errorf("reason %q after %v, want a timeout after %v", v.Reason, time.Since(start), DefaultOptions().Timeout)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		set := new(signal.Set)
		c.Extract(ctx, user("math"), all, set)
		if v := set.Value(signal.Jailbreak); v.Reason != signal.ReasonCanceled {
			t.Errorf("reason %q, want canceled", v.Reason)
		}
		f.calls = nil
		c.Extract(ctx, user("math"), all, set)
		set = new(signal.Set)
		c.Extract(ctx, user("math"), all, set)
		if v := set.Value(signal.Domain); v.Reason != signal.ReasonCanceled || len(f.calls) != 0 {
			t.Errorf("reason %q after %d runs, want canceled before the first", v.Reason, len(f.calls))
		}
	})
}

func TestWithoutASessionOnlyKeywordsAreKnown(t *testing.T) {
	opts := DefaultOptions()
	opts.Keywords = []lexical.Options{{Name: "titan", Any: []string{"project titan"}}}
	c, err := classifierOf(testBundle(t), nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	set := extract(t, c, user("About Project Titan"), all)
	if d := cmp.Diff([]string{"titan"}, set.Value(signal.Keyword).Labels); d != "" {
		t.Errorf("keyword labels (-want +got):\n%s", d)
	}
	for _, k := range []signal.Kind{signal.Domain, signal.Jailbreak, signal.Embedding} {
		if v := set.Value(k); v.State != signal.Unknown || v.Reason != signal.ReasonNoModel {
			t.Errorf("%s is %+v, want unknown for no_model", k, v)
		}
	}
	if c.Signals() != LexicalKinds {
		t.Errorf("signals %v, want those that need no model", c.Signals().Kinds())
	}
	if d := cmp.Diff([]string{"no model for domain", "no model for jailbreak", "no model for embedding"}, c.Degraded()); d != "" {
		t.Errorf("degraded (-want +got):\n%s", d)
	}
}

func TestExtractFillsWhatIsNeededAndLeavesTheRest(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	set := new(signal.Set)
	set.Put(signal.Domain, signal.Value{State: signal.Known, Label: "law"})
	c.Extract(t.Context(), user("math"), signal.MaskOf(signal.Domain, signal.Jailbreak, signal.PII), set)
	if got := set.Value(signal.Domain).Label; got != "law" {
		t.Errorf("domain is %q, a value that was there was replaced", got)
	}
	if v := set.Value(signal.PII); v.State != signal.Unknown || v.Reason != signal.ReasonNoModel {
		t.Errorf("pii is %+v, want unknown for no_model", v)
	}
	if want := signal.MaskOf(signal.Domain, signal.Jailbreak, signal.PII); set.Have() != want {
		t.Errorf("set has %v, want %v", set.Have().Kinds(), want.Kinds())
	}
	if d := cmp.Diff([]string{"j"}, f.calls[0].outputs); d != "" {
		t.Errorf("outputs of the run (-want +got):\n%s", d)
	}
}

func TestNothingToReadIsUnknown(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	set := extract(t, c, &signal.Text{Segments: []signal.Segment{{Role: "tool", Text: "word"}}}, all)
	if v := set.Value(signal.Domain); v.State != signal.Unknown || v.Reason != signal.ReasonNoText {
		t.Errorf("domain is %+v, want unknown for no_text", v)
	}
	if v := set.Value(signal.Jailbreak); v.State != signal.Known {
		t.Errorf("jailbreak is %+v, want known", v)
	}
	f.calls = nil
	set = extract(t, c, user(" \n"), all)
	if v := set.Value(signal.Jailbreak); v.State != signal.Known || v.Score != 0 || v.Label == "" || len(f.calls) != 0 {
		t.Errorf("jailbreak is %+v after %d runs, want known and harmless without one", v, len(f.calls))
	}
}

func TestTextsLongerThanAChunkAreReadWhole(t *testing.T) {
	f := newFake()
	c := open(t, f, Options{MaxBatch: 64, Windows: 12})
	for name, text := range map[string]string{
		"with spaces":    strings.Repeat("word ", 2*chunkBytes/5+7),
		"without spaces": strings.Repeat("東", chunkBytes),
	} {
		want := 2*chunkBytes/5 + 7
		if name == "without spaces" {
			want = chunkBytes
		}
		f.calls = nil
		v := *extract(t, c, user(text), signal.MaskOf(signal.Jailbreak)).Value(signal.Jailbreak)
		if windows := 1 + (want-8+5)/6; v.State != signal.Known || v.Windows != windows || v.Read != windows {
			t.Errorf("%s: %d of %d windows read, want %d for %d tokens (%s)", name, v.Read, v.Windows, windows, want, v.Reason)
		}
	}
}

func TestNewChecksTheGraph(t *testing.T) {
	tests := map[string]struct {
		edit   func(f *fake)
		tensor string
	}{
		"an input is missing":             {func(f *fake) { f.inputs = f.inputs[:1] }, "attention_mask"},
		"an input has another type":       {func(f *fake) { f.inputs[0].DType = tensor.Float32 }, "input_ids"},
		"an input has another rank":       {func(f *fake) { f.inputs[0].Shape = []int64{tensor.Dynamic} }, "input_ids"},
		"an input is not in the manifest": {func(f *fake) { f.inputs = append(f.inputs, tensor.Spec{Name: "token_type_ids"}) }, "token_type_ids"},
		"an output is missing":            {func(f *fake) { f.outputs = f.outputs[1:] }, "d"},
		"an output has another type":      {func(f *fake) { f.outputs[1].DType = tensor.Int64 }, "j"},
		"an output has another length":    {func(f *fake) { f.outputs[0].Shape = []int64{tensor.Dynamic, 14} }, "d"},
		"an output has a token dimension": {func(f *fake) { f.outputs[1].Shape = []int64{tensor.Dynamic, tensor.Dynamic, 2} }, "j"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			tc.edit(f)
			_, err := OpenEngine(testBundle(t), f)
			var g *GraphError
			if !errors.As(err, &g) || g.Tensor != tc.tensor {
				t.Errorf("error %v, want a GraphError about %q", err, tc.tensor)
			}
		})
	}
}

func TestNewRunsTheCanary(t *testing.T) {
	_, err := OpenEngine(testBundle(t, "expect: {domain: math", "expect: {domain: law"), newFake())
	want := &CanaryError{Bundle: "test", Task: "domain", Want: "law", Got: "math"}
	var got *CanaryError
	if !errors.As(err, &got) || cmp.Diff(want, got) != "" {
		t.Errorf("wrong label: error %v, want %v", err, want)
	}
	f := newFake()
	boom := errors.New("boom")
	f.hook = func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) { return nil, boom }
	if _, err = OpenEngine(testBundle(t), f); !errors.As(err, &got) || !errors.Is(err, boom) {
		t.Errorf("failed run: error %v, want a CanaryError around it", err)
	}
	f.hook = func(_ context.Context, _ int, out []tensor.Tensor) ([]tensor.Tensor, error) {
		out[2].F32[0] = float32(math.NaN())
		return out, nil
	}
	if _, err = OpenEngine(testBundle(t), f); !errors.As(err, &got) || got.Task != "embedding" || got.Reason != signal.ReasonInvalid {
		t.Errorf("NaN: error %v, want a CanaryError about embedding", err)
	}
}

func TestNewRefusesTasksThatAreNoSignals(t *testing.T) {
	for _, edit := range [][]string{
		{"name: embedding", "name: intent"},
		{"name: embedding", "name: weather"},
		{"name: jailbreak, kind", "name: factcheck, kind", "jailbreak: benign", "factcheck: benign", "name: domain", "name: embedding", "name: embedding", "name: domain", "domain: math, ", ""},
	} {
		if e, err := OpenEngine(testBundle(t, edit...), nil); err == nil {
			t.Errorf("%v is accepted with signals %v", edit, e.Signals().Kinds())
		}
	}
}

func TestOptionsReportEveryProblem(t *testing.T) {
	err := Options{Timeout: -1, Keywords: []lexical.Options{{}}}.Validate()
	for _, want := range []string{"timeout: ", "max_batch: ", "keywords[0]: name: missing"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
}

func TestFaultsAreLogged(t *testing.T) {
	var buf bytes.Buffer
	opts := DefaultOptions()
	opts.Logger = slog.New(slog.NewTextHandler(&buf, nil))
	f := newFake()
	f.hook = func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) { return nil, overload{} }
	c := open(t, f, opts)
	extract(t, c, user("math secret"), all)
	if buf.Len() > 0 {
		t.Errorf("overload is logged: %s", buf.String())
	}
	f.hook = func(context.Context, int, []tensor.Tensor) ([]tensor.Tensor, error) { return nil, errors.New("boom") }
	extract(t, c, user("math secret"), all)
	if got := buf.String(); !strings.Contains(got, "boom") || strings.Contains(got, "secret") {
		t.Errorf("log %q, want the error and no text", got)
	}
}

func TestConcurrentExtractsDoNotMix(t *testing.T) {
	f := newFake()
	c := open(t, f, DefaultOptions())
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			text := user(strings.Repeat("math ", n) + words(7*n+1))
			want := extract(t, c, text, all)
			for range 50 {
				got := extract(t, c, text, all)
				if d := cmp.Diff(want, got, approximately); d != "" {
					t.Errorf("%d words (-first +later):\n%s", n, d)
				}
			}
		})
	}
	group.Wait()
}

func TestTheLanguageIsThatOfTheLastMessageOrUnknown(t *testing.T) {
	c, err := New(nil, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	text := &signal.Text{
		LastUser: "終電は何時に出ますか。どこで乗り換えますか。",
		Segments: []signal.Segment{{Role: "system", Text: "You are a helpful assistant who answers questions about trains."}},
	}
	v := extract(t, c, text, LexicalKinds).Value(signal.Language)
	if v.State != signal.Known || v.Label != "ja" || v.Score <= 0 {
		t.Errorf("language is %+v, want ja", v)
	}
	for text, why := range map[string]signal.Reason{
		"123 ?!": signal.ReasonUndecided, "xq": signal.ReasonUndecided, "": signal.ReasonNoText, " \n": signal.ReasonNoText,
	} {
		v := extract(t, c, user(text), LexicalKinds).Value(signal.Language)
		if v.State != signal.Unknown || v.Reason != why || v.Label != "" {
			t.Errorf("the language of %q is %+v, want unknown for %s", text, v, why)
		}
	}
}
