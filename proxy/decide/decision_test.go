package decide

import (
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/signal"
	"signalbox/memory/outcomes"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

func TestTheEffortOfARequestDoesNotChangeWhatIsExpectedOfItsModelEverywhere(t *testing.T) {
	t.Parallel()
	d := Decision{Base: &Base{}}
	d.Base.Chooser.Spent = choose.NewAccounts()
	e := d.expectOf([]outcomes.Prediction{
		{Model: "m", Prior: 0.8, Everywhere: 0.7, Mean: 0.4},
		{Model: "m", Effort: "none", Prior: 0.8, Everywhere: 0.6, Mean: 0.5, AtEffort: 90},
		{Model: "m", Effort: "high", Prior: 0.8, Everywhere: 0.75, Mean: 0.45, AtEffort: 90},
	})
	if e.Effort != "none" || e.Quality != 0.5 || e.Everywhere != 0.7 {
		t.Errorf("%+v", e)
	}
}

func TestWhatWasMeasuredOfAnEffortDecides(t *testing.T) {
	t.Parallel()
	d := Decision{Base: &Base{}}
	d.Base.Chooser.Spent = choose.NewAccounts()
	at := func(effort string, mean, doubt float64, calibrated bool) outcomes.Prediction {
		return outcomes.Prediction{Model: "m", Effort: effort, Mean: mean, AtEffort: 10, Doubt: doubt, Calibrated: calibrated}
	}
	for _, tt := range []struct {
		want       string
		doubt      float64
		calibrated bool
	}{
		{"high", 0, false}, // near outcomes are too few to say so
		{"none", 0.005, true},
		{"high", 0.015, true},
	} {
		e := d.expectOf([]outcomes.Prediction{
			{Model: "m"}, at("none", 0.5, tt.doubt, tt.calibrated), at("high", 0.49, 0, tt.calibrated),
		})
		if e.Effort != tt.want {
			t.Errorf("%+v: effort %s", tt, e.Effort)
		}
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	t.Parallel()
	//nolint:exhaustive // the rest read as internal does
	for why, want := range map[signal.Reason]string{
		signal.ReasonNoModel:  "the signal pii is not available: no model that computes it is loaded",
		signal.ReasonNoText:   "the request contains no readable text",
		signal.ReasonNone:     "part of the request could not be read",
		signal.ReasonInternal: "at the moment (internal)",
	} {
		d := &Decision{
			Set:      &signal.Set{},
			Decision: rules.Decision{Failed: signal.MaskOf(signal.PII)},
		}
		d.Set.Put(signal.PII, signal.Value{State: signal.Unknown, Reason: why})
		got := fault.Wire(d.unavailable(), "id")
		if got.Status != http.StatusServiceUnavailable || got.Code != "signal_unavailable" ||
			!strings.Contains(got.Message, want) {
			t.Errorf("%q: %+v", why, got)
		}
	}
}

// able is a classifier that has a model for some signals.
type able struct {
	signals.Classifier

	has signal.Mask
}

func (a able) Signals() signal.Mask { return a.has }

// A configured model that does not respond, for example during a restart, is worth a retry; a model
// that is not configured is not.
func TestAModelThatIsAwayIsWorthAnotherTry(t *testing.T) {
	t.Parallel()
	both := signal.MaskOf(signal.Jailbreak, signal.PII)
	for has, want := range map[signal.Mask]string{both: "", signal.MaskOf(signal.PII): "false", 0: "false"} {
		d := &Decision{
			Base:     &Base{Signals: &signals.Reader{Classifier: able{has: has}}},
			Set:      &signal.Set{},
			Decision: rules.Decision{Failed: both},
		}
		for _, k := range both.Kinds() {
			d.Set.Put(k, signal.Value{State: signal.Unknown, Reason: signal.ReasonNoModel})
		}
		h := http.Header{}
		fault.Describe(h, d.unavailable())
		message := fault.Wire(d.unavailable(), "id").Message
		if h.Get("X-Should-Retry") != want || strings.Contains(message, "Try again later") != (want == "") {
			t.Errorf("models for %v: X-Should-Retry %q, %s", has.Kinds(), h.Get("X-Should-Retry"), message)
		}
	}
}

func TestARouteThatRedactsWantsAllPersonalData(t *testing.T) {
	part := signal.Value{State: signal.Known, Windows: 100, Read: 14}
	set := &signal.Set{}
	set.Put(signal.Jailbreak, part)
	set.Put(signal.PII, part)
	for name, tc := range map[string]struct {
		action rules.Action
		want   signal.Mask
	}{
		"neither":     {rules.Action{}, 0},
		"redact":      {rules.Action{Redact: &rules.Redact{}}, signal.MaskOf(signal.PII)},
		"windows all": {rules.Action{Windows: "all"}, signal.MaskOf(signal.Jailbreak, signal.PII)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Unread(&rules.Decision{Action: &tc.action}, set); got != tc.want {
				t.Errorf("unread %v, want %v", got.Kinds(), tc.want.Kinds())
			}
		})
	}
}
