package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

// skimmer reads a part of a text, and finds the attack in it only if it reads everything.
type skimmer struct {
	*fakeClassifier
	attack bool
	whole  []signal.Mask
}

func (s *skimmer) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	s.fakeClassifier.Extract(ctx, text, need, set)
	if need.Has(signal.Jailbreak) {
		v := *set.Value(signal.Jailbreak)
		v.Coverage, v.Windows, v.Read = signal.Windowed, 100, 14
		set.Put(signal.Jailbreak, v)
	}
}

func (s *skimmer) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	s.whole = append(s.whole, need)
	s.fakeClassifier.Extract(ctx, text, need, set)
	v := *set.Value(signal.Jailbreak)
	v.Coverage, v.Windows, v.Read = signal.Windowed, 100, 100
	if s.attack {
		v.Label, v.Score, v.Probs = "jailbreak", 0.98, []float32{0.02, 0.98}
	}
	set.Put(signal.Jailbreak, v)
}

func TestARouteThatWantsEverythingReadIsDecidedByEverything(t *testing.T) {
	const routes = `
routes:
  - {name: block-jailbreak, when: {jailbreak: true}, on_unknown: match, block: {message: "Declined by policy."}}
  - {name: careful, when: {domain: math}, use: {models: [big], windows: all}}
default: {models: [small]}
`
	jailbreak := []signal.Mask{signal.MaskOf(signal.Jailbreak)}
	for name, tc := range map[string]struct {
		text   string
		attack bool
		route  string
		whole  []signal.Mask
	}{
		"the route does not ask":            {"hello", true, "default", nil},
		"nothing was missed":                {"math", false, "careful", jailbreak},
		"an attack was between the windows": {"math", true, "block-jailbreak", jailbreak},
	} {
		t.Run(name, func(t *testing.T) {
			up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
			b := start(t, oneModel(up), func(s *setup) { s.routes = routes })
			reader := &skimmer{fakeClassifier: b.classifier, attack: tc.attack}
			b.state.Signals.Classifier = reader
			got := b.chat(ask(tc.text))
			if route := got.header.Get("X-Signalbox-Route"); route != tc.route {
				t.Errorf("route %q with status %d, want %q", route, got.status, tc.route)
			}
			if d := cmp.Diff(tc.whole, reader.whole); d != "" {
				t.Errorf("read whole (-want +got):\n%s", d)
			}
		})
	}
}

// bottomless never reads the whole text, and says so.
type bottomless struct{ *skimmer }

func (e *bottomless) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	e.whole = append(e.whole, need)
	e.Extract(ctx, text, need, set)
}

// carefulRoutes take a prompt about mathematics only after all of it was read.
const carefulRoutes = `
routes:
  - {name: block-jailbreak, when: {jailbreak: true}, block: {message: "Declined by policy."}}
  - {name: careful, when: {domain: math}, use: {models: [big], windows: all}}
default: {models: [small]}
`

func TestWhatCannotBeReadWholeIsAskedForOnce(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = carefulRoutes
	})
	reader := &skimmer{fakeClassifier: b.classifier}
	b.state.Signals.Classifier = &bottomless{reader}
	got := b.chat(ask("math"))
	if route := got.header.Get("X-Signalbox-Route"); got.status != 200 || route != "careful" || len(reader.whole) != 1 {
		t.Errorf("route %q with status %d, read whole %d times", route, got.status, len(reader.whole))
	}
}

// timed takes time for each reading, and records when it began, ended and had to end.
type timed struct {
	*skimmer
	readings []reading
}

type reading struct{ begun, ended, deadline time.Time }

func (e *timed) read(
	ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set,
	by func(context.Context, *signal.Text, signal.Mask, *signal.Set),
) {
	r := reading{begun: time.Now()}
	r.deadline, _ = ctx.Deadline()
	by(ctx, text, need, set)
	time.Sleep(20 * time.Millisecond)
	r.ended = time.Now()
	e.readings = append(e.readings, r)
}

func (e *timed) Extract(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	e.read(ctx, text, need, set, e.skimmer.Extract)
}

func (e *timed) ExtractAll(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	e.read(ctx, text, need, set, e.skimmer.ExtractAll)
}

func TestAllReadingsOfARequestShareItsTime(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = carefulRoutes
	})
	reader := &timed{skimmer: &skimmer{fakeClassifier: b.classifier}}
	b.state.Signals.Classifier, b.state.Signals.Timeout = reader, time.Hour
	if got := b.chat(ask("math")); got.status != 200 || len(reader.whole) != 1 || len(reader.readings) < 2 {
		t.Fatalf("status %d, %d readings, %d of everything", got.status, len(reader.readings), len(reader.whole))
	}
	var spent time.Duration // at least
	for i, r := range reader.readings {
		if latest := r.begun.Add(time.Hour - spent); r.deadline.IsZero() || r.deadline.After(latest) {
			t.Errorf("reading %d may go on until %v, want %v at the latest", i+1, r.deadline, latest)
		}
		spent += r.ended.Sub(r.begun)
	}
}

// hasty reads a selection that contains personal data, and never reaches the end of a text.
type hasty struct{ *fakeClassifier }

func (*hasty) Extract(_ context.Context, _ *signal.Text, need signal.Mask, set *signal.Set) {
	for _, k := range need.Kinds() {
		set.Put(k, signal.Value{State: signal.Known, Windows: 100, Read: 14})
	}
	if need.Has(signal.PII) {
		v := *set.Value(signal.PII)
		v.Labels, v.Probs = []string{"EMAIL_ADDRESS"}, []float32{1}
		set.Put(signal.PII, v)
	}
	if need.Has(signal.Jailbreak) {
		v := *set.Value(signal.Jailbreak)
		v.Label, v.Labels, v.Probs = "benign", []string{"benign", "jailbreak"}, []float32{1, 0}
		v.Verdicts = []signal.Verdict{{Origin: signal.OriginUser, Windows: 100, Read: 14}}
		set.Put(signal.Jailbreak, v)
	}
}

func (*hasty) ExtractAll(_ context.Context, _ *signal.Text, need signal.Mask, set *signal.Set) {
	set.Fail(need, signal.ReasonTimeout)
}

// A text that is too long to be read in time does not pass the route that redacts, nor one that
// requires all of it to be read.
func TestATextThatCannotBeReadInTimeIsNotSent(t *testing.T) {
	for name, tc := range map[string]struct{ routes, route string }{
		"found in a selection": {
			"  - {name: hide, when: {pii: true}, use: {models: [small], redact: true}}\n", "hide",
		},
		"not asked for by the rules": {
			"  - {name: hide, when: {context_tokens: {gte: 0}}, use: {models: [small], redact: true}}\n", "hide",
		},
		"wanted whole": {
			"  - {name: safety, when: {jailbreak: true}, on_unknown: match, block: {message: No.}}\n" +
				"  - {name: all, when: {pii: true}, use: {models: [small], windows: all}}\n", "safety",
		},
	} {
		t.Run(name, func(t *testing.T) {
			up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
			c := &fakeClassifier{signals: signal.MaskOf(signal.PII, signal.Jailbreak)}
			b := start(t, oneModel(up), func(s *setup) {
				s.routes = "routes:\n" + tc.routes + "default: {models: [small]}\n"
				s.classifier = c
			})
			b.state.Signals.Classifier = &hasty{c}
			got := b.chat(ask("hello"))
			if got.status != 503 || got.header.Get("X-Signalbox-Route") != tc.route {
				t.Errorf("status %d on route %q: %s", got.status, got.header.Get("X-Signalbox-Route"), got.body)
			}
			if n := len(up.Requests()); n > 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}
