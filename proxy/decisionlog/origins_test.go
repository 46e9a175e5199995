package decisionlog

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
)

func origins(o ...signal.Origin) signal.Origins { return signal.OriginsOf(o...) }

// reading returns an identity in which jailbreak refers to some origins and reads others in
// addition.
func reading(speaks, reads signal.Origins) Identity {
	return Identity{
		Provided: signal.MaskOf(signal.Jailbreak),
		//nolint:exhaustive // one kind is looked at
		Origins: map[signal.Kind]signal.Origins{signal.Jailbreak: speaks},
		//nolint:exhaustive // one kind is looked at
		Reads: map[signal.Kind]signal.Origins{signal.Jailbreak: reads},
	}
}

func TestVerdictsAreLoggedWithoutTheirPlaces(t *testing.T) {
	t.Parallel()
	id := reading(origins(signal.OriginUser, signal.OriginModel), origins(signal.OriginData))
	v := signal.Value{State: signal.Known, Score: 0.4, Verdicts: []signal.Verdict{
		{Origin: signal.OriginAny, Score: 0.1, Windows: 1, Read: 1, Segment: 2, Start: 3, End: 9},
		{Origin: signal.OriginData, Score: 0.7, Windows: 9, Read: 4, Partial: true},
	}}
	b, err := json.Marshal(id.SignalOf(signal.Jailbreak, &v))
	const want = `{"state":"evaluated","score":0.4,"origins":["user","model"],"reads":["user","model","data"],"verdicts":[` +
		`{"origin":"any","score":0.1,"windows":1,"read":1},{"origin":"data","score":0.7,"windows":9,"read":4,"partial":true}]}`
	if err != nil || string(b) != want {
		t.Errorf("got  %s, %v\nwant %s", b, err, want)
	}
	v.Verdicts[1].Score = math.NaN()
	if got := id.SignalOf(signal.Jailbreak, &v); got.State != "unknown" || got.Verdicts != nil {
		t.Errorf("a score that is no number is logged as %+v", got)
	}
}

func TestALoggedVerdictHoldsWhereAsMuchWasRead(t *testing.T) {
	t.Parallel()
	user, data, model := origins(signal.OriginUser), origins(signal.OriginData),
		origins(signal.OriginModel)
	full := signal.Value{State: signal.Known, Score: 0.2, Verdicts: []signal.Verdict{
		{Origin: signal.OriginUser, Score: 0.2},
		{Origin: signal.OriginData, Score: 0.9, Partial: true},
	}}
	old := signal.Value{State: signal.Known, Score: 0.2, Label: "benign"}
	for name, c := range map[string]struct {
		v         signal.Value
		then, now Identity
		named     signal.Origins
		holds     bool
		score     float64
		partial   bool
	}{
		"the same": {
			full, reading(user, data), reading(user, data),
			data, true, 0.2, false,
		},
		"less is read": {
			full, reading(user, data), reading(user, 0), 0,
			true, 0.2, false,
		},
		"more is read": {
			full, reading(user, data),
			reading(user, data|model), model, false, 0, false,
		},
		"the score speaks for more": {
			full, reading(user, data),
			reading(user|data, 0), 0, true, 0.9, true,
		},
		"the score speaks for other text": {
			full, reading(user, data), reading(data, 0), 0,
			true, 0.9, true,
		},
		"a line without verdicts": {
			old,
			Identity{},
			Identity{},
			0, true, 0.2,
			false,
		},
		"a line without verdicts, and rules named": {
			old,
			Identity{},
			Identity{},
			user, false, 0,
			false,
		},
		"no text of any origin, and rules named": {
			signal.Value{State: signal.Known},
			Identity{},
			Identity{},
			user, true, 0, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.then.SignalOf(signal.Jailbreak, &c.v)
			if got := s.covers(&c.now, signal.Jailbreak, c.named); got != c.holds {
				t.Fatalf("holds: %v, want %v", got, c.holds)
			}
			if !c.holds {
				return
			}
			v := s.value()
			s.speakFor(&c.now, signal.Jailbreak, &v)
			if v.Score != c.score || v.Partial != c.partial {
				t.Errorf("score %v, partial %v; want %v, %v", v.Score, v.Partial, c.score,
					c.partial)
			}
			if d := cmp.Diff(c.v.Verdicts, v.Verdicts); d != "" {
				t.Errorf("verdicts (-want +got):\n%s", d)
			}
		})
	}
}

func TestALineWithAnUnknownOriginIsNone(t *testing.T) {
	t.Parallel()
	const head = `{"v":1,"request":{"model":"auto"},"route":"r","outcome":"matched","action":{"verb":"use"},"signals":{"injection":{"state":"evaluated","verdicts":[{"origin":`
	if _, err := Parse([]byte(head + `"data","score":0.5}]}}}`)); err != nil {
		t.Error(err)
	}
	for _, rest := range []string{`"page","score":0.5}]}}}`, `"data","score":1e9}]}}}`} {
		if _, err := Parse([]byte(head + rest)); err == nil {
			t.Errorf("%s is accepted", rest)
		}
	}
}
