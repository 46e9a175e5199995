package decide

import (
	"signalbox/internal/signal"
	"signalbox/memory/conversation"
)

// sticky are the signals of which a conversation keeps what they said: those of its subject. All
// others, and the facts of the request, are those of the request whatever the conversation was.
const sticky = signal.Mask(1<<signal.Domain | 1<<signal.Complexity | 1<<signal.FactCheck | 1<<signal.Intent)

// holdTopics finds the topics that say something else than before, and of them those that stay what
// they were. threshold returns the score from which a text has a private intent.
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

// gainOf is how much more probable a value is than a label.
func gainOf(v *signal.Value, label string) float64 {
	p, _ := v.Prob(label)
	return v.Score - p
}

// lostBy is how little of a label, an intent, is left in a value that has none, in [0,1]: the share
// of the threshold that its score falls short of. Nothing is lost where the text is as near as ever
// and another intent is too near as well, nor in a turn that says nothing by itself.
func lostBy(v *signal.Value, label string, threshold float64) float64 {
	if v.Leans > 0 {
		return 0
	}
	if threshold <= 0 {
		threshold = 1 // the intent is gone, or is given by a classifier that tells no thresholds
	}
	score, _ := v.Prob(label)
	return max(0, 1-score/threshold)
}

// kept is a value that stays what it was.
func kept(v *signal.Value, old *conversation.Topic) signal.Value {
	out := *v
	out.Label, out.Leans = old.Label, 1
	if len(old.Probs) == len(old.Labels) && len(old.Probs) > 0 {
		out.Labels, out.Probs = old.Labels, old.Probs
	}
	out.Score, _ = out.Prob(old.Label)
	return out
}

// restoreTopics puts what stays into a set, in place of what the request says.
func (t *Talk) restoreTopics(set *signal.Set) {
	if t == nil {
		return
	}
	for _, k := range t.inheritedKinds.Kinds() {
		set.Put(k, t.inherited[k])
	}
}
