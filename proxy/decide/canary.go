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

// The arms of a canary, as used in headers, metrics and logs.
const (
	ArmControl = "control" // goes where it would go without the canary
	ArmCanary  = "canary"
)

// assign puts a request into an arm when its route has a canary. An arm belongs to a conversation:
// it does not depend on what the turns say or on which replica decides. Requests that could not go
// to the canary are in no arm, so that both arms contain the same kind of requests.
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

// canary returns the canary of the route; nil if it has none.
func (d *Decision) canary() *rules.Canary {
	if d.Action == nil || d.Action.Verb != rules.Use || d.Outcome == rules.Unavailable {
		return nil
	}
	return d.Action.Canary
}

// callsOf reports whether a request returns tool results to model. Only that model knows why it
// called the tools.
func (d *Decision) callsOf(model string) bool {
	t := d.Talk
	return t != nil && t.tool && t.before != nil && t.before.Model == model
}

// canaryOf returns the canary as a candidate, ranked like any other. ok is false when it cannot
// serve the request.
func (b *Base) canaryOf(d *Decision) (one choose.Candidate, ok bool) {
	wants := d.ChoiceRequest()
	wants.Action = &rules.Action{By: "order", Models: []rules.Choice{{Name: d.Action.Canary.Model, Weight: 1}}}
	wants.Expected = nil
	one = b.Chooser.Rank(wants)[0]
	return one, !one.Out
}

// Arrange reorders the candidates of a request according to its arm, its conversation and its
// budgets.
func (b *Base) Arrange(d *Decision, cs []choose.Candidate) []choose.Candidate {
	if d.Arm == ArmCanary {
		cs = b.putCanaryFirst(d, cs)
	} else {
		b.preferConversation(d, cs)
	}
	b.cheapen(d, cs)
	return cs
}

// putCanaryFirst puts the canary in front of the candidates of a request in the canary arm and
// records the effect on the conversation. Tool results still go to the model that called the tools.
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

// seedOf returns a number that stays the same throughout a conversation. It is derived from the
// conversation's name, or from what was said up to the first response. A request that contains
// neither gets the seed of the previous turn, if that is known.
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

// mixed combines the seed of a conversation with the route, so that the canaries of several routes
// draw independently.
func mixed(seed uint64, route string) uint64 {
	var sum xxhash.Digest
	sum.ResetWithSeed(seed)
	_, _ = sum.WriteString(route)
	return sum.Sum64()
}

// describeArm writes the header with the arm of a request.
func (d *Decision) describeArm(h http.Header) {
	if d.Arm != "" {
		h["X-Signalbox-Arm"] = []string{d.Arm}
	}
}

// Canary describes the canary of a route in an explanation.
type Canary struct {
	Model string  `json:"model"`
	Share float64 `json:"share"` // of conversations, in [0,1]
	// control or canary; absent for a request that cannot go to the canary
	Arm string `json:"arm,omitempty"`
}

// ExplainCanary describes the canary of the route; nil if it has none.
func (d *Decision) ExplainCanary() *Canary {
	c := d.canary()
	if c == nil {
		return nil
	}
	return &Canary{Model: c.Model, Share: c.Share, Arm: d.Arm}
}

// Save records the saving to apply to the request. A request that goes to the cheapest model is not
// part of a canary.
func (d *Decision) Save(how budget.Saving) {
	d.Saving = how
	if how.Cheaper && d.Arm != "" && !d.callsOf(d.Action.Canary.Model) {
		d.Arm = ""
	}
}
