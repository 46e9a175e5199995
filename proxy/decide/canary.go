package decide

import (
	"encoding/binary"
	"net/http"
	"slices"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/openai"
	"signalbox/proxy/budget"
	"signalbox/proxy/choose"
	"signalbox/rules"
)

// The arms of a route that tries a model out, as header, metrics and log call them.
const (
	ArmControl = "control" // goes where it would without the canary
	ArmCanary  = "canary"
)

// assign puts a request into an arm, where its route tries a model out. An arm is one of a
// conversation: the same whatever its turns say, and whichever replica decides. Requests that could
// not go to the canary are in none, so that both arms are of the same kind.
func (b *Base) assign(d *Decision, req *openai.Request) {
	d.Arm = ""
	c := d.canary()
	if c == nil || req.API == openai.Other || !d.Who.May(c.Model) {
		return
	}
	d.seed = d.seedOf(req)
	if one, ok := b.canaryOf(d); !ok || one.Left != "" {
		return
	}
	d.Arm = ArmControl
	if float64(mixed(d.seed, d.Route)>>11)/(1<<53) < c.Share || d.callsOf(c.Model) {
		d.Arm = ArmCanary
	}
}

// canary is the model that the route tries out; nil for none.
func (d *Decision) canary() *rules.Canary {
	if d.Action == nil || d.Action.Verb != rules.Use || d.Outcome == rules.Unavailable {
		return nil
	}
	return d.Action.Canary
}

// callsOf reports that a request brings results of tools to a model: only that one knows why it
// asked for them.
func (d *Decision) callsOf(model string) bool {
	t := d.Talk
	return t != nil && t.tool && t.before != nil && t.before.Model == model
}

// canaryOf is the canary as a candidate, with what the choice knows of it.
func (b *Base) canaryOf(d *Decision) (one choose.Candidate, ok bool) {
	wants := d.ChoiceRequest()
	wants.Action = &rules.Action{By: "order", Models: []rules.Choice{{Name: d.Action.Canary.Model, Weight: 1}}}
	wants.Expected = nil
	one = b.Chooser.Rank(wants)[0]
	return one, !one.Out
}

// Arrange puts the candidates of a request in the order that its arm and its conversation want.
func (b *Base) Arrange(d *Decision, cs []choose.Candidate) []choose.Candidate {
	if d.Arm == ArmCanary {
		cs = b.putCanaryFirst(d, cs)
	} else {
		b.preferConversation(d, cs)
	}
	b.cheapen(d, cs)
	return cs
}

// putCanaryFirst puts the canary in front of the candidates of a request of its arm, and says what
// becomes of the conversation. Results of tools go to the model that asked for them.
func (b *Base) putCanaryFirst(d *Decision, cs []choose.Candidate) []choose.Candidate {
	t := d.Talk
	name := d.Action.Canary.Model
	if t != nil && t.before != nil && t.before.Model != name && (t.tool || d.Kept.without(b.ByName[name])) {
		b.preferConversation(d, cs)
		return cs
	}
	one, ok := b.canaryOf(d)
	if !ok {
		b.preferConversation(d, cs)
		return cs
	}
	if t != nil && t.before != nil && !t.final {
		switch {
		case t.before.Model != one.Name:
			t.result, t.why = talkMoved, whyCanary
		case t.tool:
			t.result, t.why = talkKept, whyTool
		default:
			t.result, t.why = talkKept, whySame
		}
	}
	d.drawn, d.chance, d.Chances = "", 0, nil
	return slices.Insert(cs, 0, one)
}

// seedOf is a number of the conversation that stays the same through it: of its name, or of what
// was said up to the first response. A request that leaves both out has the one that the turn
// before had, where that is known.
func (d *Decision) seedOf(req *openai.Request) uint64 {
	t := d.Talk
	var sum xxhash.Digest
	sum.Reset()
	write := func(s string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		_, _ = sum.Write(size[:])
		_, _ = sum.WriteString(s)
	}
	write(d.Who.Tenant)
	write(d.Who.Name)
	previous := req.QuotedField("previous_response_id")
	switch session, object := d.Set.Facts.Session, req.ConversationID(); {
	case session != "":
		write(session)
		return sum.Sum64()
	case object != "":
		write(object)
		return sum.Sum64()
	case previous != "" && t != nil && t.before != nil && t.before.Seed != 0:
		return t.before.Seed
	case previous != "":
		write(previous)
		return sum.Sum64()
	}
	write(string(req.Field("user")))
	write(req.Instructions)
	said := false
	for i := range req.Messages {
		m := &req.Messages[i]
		if m.FromModel() && said {
			break
		}
		said = said || m.Role == "user"
		write(m.Role)
		write(m.Text)
		if m.HasImage || m.Text == "" {
			write(string(req.Raw[m.Span.Start:m.Span.End]))
		}
	}
	return sum.Sum64()
}

// mixed is a number of a conversation on one route, so that canaries of several routes are drawn
// apart.
func mixed(seed uint64, route string) uint64 {
	var sum xxhash.Digest
	sum.ResetWithSeed(seed)
	_, _ = sum.WriteString(route)
	return sum.Sum64()
}

// describeArm writes the header that says which arm a request is in.
func (d *Decision) describeArm(h http.Header) {
	if d.Arm != "" {
		h["X-Signalbox-Arm"] = []string{d.Arm}
	}
}

// Canary is a model that the route tries out, as explained.
type Canary struct {
	Model string  `json:"model"`
	Share float64 `json:"share"` // of conversations
	// control or canary; absent for a request that cannot go to the canary
	Arm string `json:"arm,omitempty"`
}

// ExplainCanary tells of the model that the route tries out; nil for none.
func (d *Decision) ExplainCanary() *Canary {
	c := d.canary()
	if c == nil {
		return nil
	}
	return &Canary{Model: c.Model, Share: c.Share, Arm: d.Arm}
}

// Save notes what the request saves with. One that goes to the cheapest model tries none out.
func (d *Decision) Save(how budget.Saving) {
	d.Saving = how
	if how.Cheaper && d.Arm != "" && !d.callsOf(d.Action.Canary.Model) {
		d.Arm = ""
	}
}
