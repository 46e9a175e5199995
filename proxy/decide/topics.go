package decide

import (
	"signalbox/internal/signal"
	"signalbox/memory/conversation"
)

// sticky holds the signals about the subject, whose values a conversation keeps. All other signals
// and facts are always those of the request.
const sticky = signal.Mask(1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Intent)

// holdTopics determines which topics differ from the previous turn and which of those keep their
// value. threshold returns the minimum score of a private intent.
func (t *Talk) holdTopics(set *signal.Set, threshold func(intent string) (float64, bool)) {
	for _, k := range sticky.Kinds() {
		v := set.Value(k)
		old, ok := t.before.Topics[k.String()]
		if !ok || v.State != signal.Known || v.Label == old.Label {
			continue
		}
		gain := gainOf(v, old.Label)
		if v.Label == "" {
			from, _ := threshold(old.Label)
			gain = lostBy(v, old.Label, from)
		}
		if gain > t.price && !t.tool {
			t.moved = t.moved || k == signal.Domain || k == signal.Intent
			continue
		}
		t.gain = max(t.gain, gain)
		if t.inherited == nil {
			t.inherited = new([signal.NumKinds]signal.Value)
		}
		t.inherited[k] = kept(v, &old)
		t.inheritedKinds |= signal.MaskOf(k)
	}
}

// gainOf returns by how much the label of v is more probable than label, in [-1,1].
func gainOf(v *signal.Value, label string) float64 {
	p, _ := v.Prob(label)
	return v.Score - p
}

// lostBy returns how much of an intent is lost in a value without one, in [0,1]: the fraction of
// the threshold by which its score falls short. Nothing is lost when the text is as close to the
// intent as before and another intent is too close as well, nor in a turn that says nothing on its
// own.
func lostBy(v *signal.Value, label string, threshold float64) float64 {
	if v.Leans > 0 {
		return 0
	}
	if threshold <= 0 {
		threshold = 1 // the intent was removed, or comes from a classifier without thresholds
	}
	score, _ := v.Prob(label)
	return max(0, 1-score/threshold)
}

// kept returns the value of a topic that stays as it was.
func kept(v *signal.Value, old *conversation.Topic) signal.Value {
	out := *v
	out.Label, out.Leans = old.Label, 1
	if len(old.Probs) == len(old.Labels) && len(old.Probs) > 0 {
		out.Labels, out.Probs = old.Labels, old.Probs
	}
	out.Score, _ = out.Prob(old.Label)
	return out
}

// restoreTopics writes the kept topics into a set, replacing the values of the request.
func (t *Talk) restoreTopics(set *signal.Set) {
	if t == nil {
		return
	}
	for _, k := range t.inheritedKinds.Kinds() {
		set.Put(k, t.inherited[k])
	}
}
