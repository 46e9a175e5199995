package decide

import (
	"testing"

	"signalbox/internal/signal"
	"signalbox/memory/conversation"
)

func TestAnIntentIsLeftForNone(t *testing.T) {
	t.Parallel()
	const threshold = 0.4
	names := []string{"hr", "it"}
	for name, tt := range map[string]struct {
		old    string
		label  string
		scores []float32
		leans  float32
		price  float64
		tool   bool
		kept   bool
	}{
		"nothing is left of it":            {old: "hr", scores: []float32{0.06, 0}, price: 0.3},
		"at no price":                      {old: "hr", scores: []float32{0.3, 0.1}},
		"less is left than the price":      {old: "hr", scores: []float32{0.3, 0.1}, price: 0.3, kept: true},
		"another that is none is nearer":   {old: "hr", scores: []float32{0.06, 0.3}, price: 0.3},
		"two are too near each other":      {old: "hr", scores: []float32{0.5, 0.5}, kept: true},
		"a turn that says nothing":         {old: "hr", scores: []float32{0.06, 0}, leans: 0.9, kept: true},
		"the result of a tool":             {old: "hr", scores: []float32{0.06, 0}, tool: true, kept: true},
		"one that the configuration lacks": {old: "gone", scores: []float32{0.06, 0}, price: 0.9},
		"another intent":                   {old: "hr", label: "it", scores: []float32{0.1, 0.6}, price: 0.3},
		"another that is little nearer":    {old: "hr", label: "it", scores: []float32{0.4, 0.5}, price: 0.3, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := signal.Value{
				State: signal.Known, Label: tt.label, Score: float64(max(tt.scores[0], tt.scores[1])),
				Labels: names, Probs: tt.scores, Leans: tt.leans,
			}
			set := &signal.Set{}
			set.Put(signal.Intent, v)
			talk := &Talk{price: tt.price, tool: tt.tool, before: &conversation.State{
				Topics: map[string]conversation.Topic{"intent": {Label: tt.old}},
			}}
			talk.holdTopics(set, func(intent string) (float64, bool) { return threshold, intent != "gone" })
			if kept := talk.inheritedKinds.Has(signal.Intent); kept != tt.kept || talk.moved == tt.kept {
				t.Errorf("kept %v, moved %v, gain %.2f", kept, talk.moved, talk.gain)
			}
			if talk.restoreTopics(set); tt.kept && set.Value(signal.Intent).Label != tt.old {
				t.Errorf("the intent is %q", set.Value(signal.Intent).Label)
			}
		})
	}
}
