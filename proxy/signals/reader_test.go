package signals

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/proxy/contexts"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/resolve"
)

// taught has one intent.
type taught struct{ Classifier }

func (taught) Intents() []Intent {
	return []Intent{{Name: "hr", Threshold: 0.5}}
}

func (taught) AddExamples(context.Context, string, []string) (added, total int, err error) {
	return 0, 0, ErrUnknownIntent
}

func TestAnIntentIsExplainedByItsThreshold(t *testing.T) {
	t.Parallel()
	st := &Reader{Classifier: taught{}}
	v := signal.Value{State: signal.Known, Score: 0.25, Labels: []string{"it", "hr"}, Probs: []float32{0.5, 0.25}}
	var below, above Trace
	st.traceIntent(&below, &v)
	if below.Nearest != "hr" || below.Threshold == nil || *below.Threshold != 0.5 {
		t.Errorf("below its threshold: %+v", below)
	}
	v.Score, v.Probs[1] = 0.75, 0.75
	var tied Trace
	if st.traceIntent(&tied, &v); tied.Nearest != "hr" || tied.Reason == "" {
		t.Errorf("above it, but not ahead: %+v", tied)
	}
	v.Label = "hr"
	st.traceIntent(&above, &v)
	if above.Nearest != "" || above.Reason != "" || above.Threshold == nil || *above.Threshold != 0.5 {
		t.Errorf("above it: %+v", above)
	}
}

func TestStoredVerdictsAreAboutData(t *testing.T) {
	t.Parallel()
	data, user := signal.OriginsOf(signal.OriginData), signal.OriginsOf(signal.OriginUser)
	asked := signal.Verdict{Origin: signal.OriginUser, Score: 0.6, Windows: 1, Read: 1}
	known := signal.Value{
		State: signal.Known, Score: 0.6, Label: "jailbreak",
		Verdicts: []signal.Verdict{asked},
	}
	stored := signal.Verdict{Origin: signal.OriginData, Score: 0.7, Segment: storedSegment}
	unread := signal.Verdict{Origin: signal.OriginData, Partial: true, Segment: storedSegment}
	for name, c := range map[string]struct {
		speaks, reads signal.Origins
		v             signal.Value
		stored        *float64
		want          signal.Value
	}{
		"of no data": {user, user, known, new(0.7), known},
		"of data that rules name": {user, user | data, known, new(0.7), signal.Value{
			State: signal.Known, Score: 0.6, Label: "jailbreak",
			Verdicts: []signal.Verdict{asked, stored},
		}},
		"of data": {user | data, 0, known, new(0.7), signal.Value{
			State: signal.Known, Score: 0.7, Source: sourceStored, Label: "jailbreak",
			Labels: []string{"benign", "jailbreak"},
			Probs:  []float32{1 - float32(0.7), 0.7}, Verdicts: []signal.Verdict{asked, stored},
		}},
		"unknown, of data that rules name": {user, data, known, nil, signal.Value{
			State: signal.Known, Score: 0.6, Label: "jailbreak",
			Verdicts: []signal.Verdict{asked, unread},
		}},
		"unknown, of data": {user | data, 0, known, nil, signal.Value{
			State: signal.Known, Score: 0.6, Label: "jailbreak", Partial: true,
			Verdicts: []signal.Verdict{asked, unread},
		}},
		"beside what is unknown": {
			data, user,
			signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout},
			new(0.7),
			signal.Value{
				State: signal.Known, Score: 0.7, Partial: true, Reason: signal.ReasonTimeout,
				Source: sourceStored,
				Label:  "jailbreak", Labels: []string{"benign", "jailbreak"},
				Probs: []float32{1 - float32(0.7), 0.7}, Verdicts: []signal.Verdict{
					{Origin: signal.OriginUser, Partial: true},
					{Origin: signal.OriginData, Score: 0.7, Partial: true, Segment: storedSegment},
				},
			},
		},
		"harmless, beside what is unknown": {
			data, 0,
			signal.Value{State: signal.Unknown, Reason: signal.ReasonTimeout},
			new(0.1),
			signal.Value{ // a test that it does not reach is unknown, whatever its bound
				State: signal.Known, Score: 0.1, Partial: true, Reason: signal.ReasonTimeout,
				Source: sourceStored,
				Label:  "benign", Labels: []string{"benign", "jailbreak"},
				Probs: []float32{1 - float32(0.1), 0.1}, Verdicts: []signal.Verdict{
					{Origin: signal.OriginData, Score: 0.1, Partial: true, Segment: storedSegment},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Reader{Identity: decisionlog.Identity{
				//nolint:exhaustive // one kind is looked at
				Origins: map[signal.Kind]signal.Origins{signal.Jailbreak: c.speaks},
				//nolint:exhaustive // one kind is looked at
				Reads: map[signal.Kind]signal.Origins{signal.Jailbreak: c.reads},
			}}
			got := c.v
			r.addAttack(&resolve.Contexts{Verdicts: contexts.Verdicts{Jailbreak: c.stored}}, signal.Jailbreak, &got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if known.Verdicts[0] != asked || len(known.Verdicts) != 1 {
				t.Error("shared verdicts were changed")
			}
		})
	}
}

func TestEntitiesAreGivenInCodePoints(t *testing.T) {
	text := &signal.Text{Segments: []signal.Segment{{Text: "Grüße von Jörg, dann ann@example.com"}, {Text: "naïve Ann"}}}
	at := func(segment int, part string) signal.Span {
		said := text.Segments[segment].Text
		for i := range said {
			if len(said)-i >= len(part) && said[i:i+len(part)] == part {
				return signal.Span{Type: "T", Segment: segment, Start: i, End: i + len(part), Score: 0.5}
			}
		}
		t.Fatalf("%q is not in %q", part, said)
		return signal.Span{}
	}
	v := &signal.Value{Spans: []signal.Span{at(0, "Jörg"), at(0, "ann@example.com"), at(1, "Ann"), {Type: "T", Segment: 7}}}
	zero, one := 0, 1
	want := []Entity{
		{Type: "T", Segment: &zero, Start: 10, End: 14, Score: 0.5},
		{Type: "T", Segment: &zero, Start: 21, End: 36, Score: 0.5},
		{Type: "T", Segment: &one, Start: 6, End: 9, Score: 0.5},
	}
	if d := cmp.Diff(want, entitiesOf(v, text)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	b, err := json.Marshal((&Reader{}).resultOf(signal.PII,
		&signal.Value{State: signal.Known}, text))
	if err != nil || string(b) != `{"state":"evaluated","entities":[]}` {
		t.Errorf("nothing found: %s, %v", b, err)
	}
}
