package proxy

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
	armControl = "control" // goes where it would without the canary
	armCanary  = "canary"
)

// assign puts a request into an arm, where its route tries a model out. An arm is one of a
// conversation: the same whatever its turns say, and whichever replica decides. Requests that could
// not go to the canary are in none, so that both arms are of the same kind.
func (st *State) assign(d *decision, req *openai.Request) {
	d.inArm = ""
	c := d.canary()
	if c == nil || req.API == openai.Other || !d.who.May(c.Model) {
		return
	}
	d.seed = d.seedOf(req)
	if one, ok := st.canaryOf(d); !ok || one.Left != "" {
		return
	}
	d.inArm = armControl
	if float64(mixed(d.seed, d.Route)>>11)/(1<<53) < c.Share || d.callsOf(c.Model) {
		d.inArm = armCanary
	}
}

// canary is the model that the route tries out; nil for none.
func (d *decision) canary() *rules.Canary {
	if d.Action == nil || d.Action.Verb != rules.Use || d.Outcome == rules.Unavailable {
		return nil
	}
	return d.Action.Canary
}

// callsOf reports that a request brings results of tools to a model: only that one knows why it
// asked for them.
func (d *decision) callsOf(model string) bool {
	t := d.talk
	return t != nil && t.tool && t.before != nil && t.before.Model == model
}

// canaryOf is the canary as a candidate, with what the choice knows of it.
func (st *State) canaryOf(d *decision) (one choose.Candidate, ok bool) {
	wants := d.choiceRequest()
	wants.Action = &rules.Action{By: "order", Models: []rules.Choice{{Name: d.Action.Canary.Model, Weight: 1}}}
	wants.Expected = nil
	one = st.chooser.Rank(wants)[0]
	return one, !one.Out
}

// arrange puts the candidates of a request in the order that its arm and its conversation want.
func (st *State) arrange(d *decision, cs []choose.Candidate) []choose.Candidate {
	if d.inArm == armCanary {
		cs = st.putCanaryFirst(d, cs)
	} else {
		st.preferConversation(d, cs)
	}
	st.cheapen(d, cs)
	return cs
}

// putCanaryFirst puts the canary in front of the candidates of a request of its arm, and says what becomes of
// the conversation. Results of tools go to the model that asked for them.
func (st *State) putCanaryFirst(d *decision, cs []choose.Candidate) []choose.Candidate {
	t := d.talk
	if t != nil && t.tool && t.before != nil && t.before.Model != d.Action.Canary.Model {
		st.preferConversation(d, cs)
		return cs
	}
	one, ok := st.canaryOf(d)
	if !ok {
		st.preferConversation(d, cs)
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
	d.drawn, d.chance, d.chances = "", 0, nil
	return slices.Insert(cs, 0, one)
}

// seedOf is a number of the conversation that stays the same through it: of its name, or of what
// was said up to the first response. A request that leaves both out has the one that the turn
// before had, where that is known.
func (d *decision) seedOf(req *openai.Request) uint64 {
	t := d.talk
	var sum xxhash.Digest
	sum.Reset()
	write := func(s string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		_, _ = sum.Write(size[:])
		_, _ = sum.WriteString(s)
	}
	write(d.who.Tenant)
	write(d.who.Name)
	previous := req.QuotedField("previous_response_id")
	switch session, object := d.set.Facts.Session, req.ConversationID(); {
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
func (d *decision) describeArm(h http.Header) {
	if d.inArm != "" {
		h["X-Signalbox-Arm"] = []string{d.inArm}
	}
}

// Canary is a model that the route tries out, as explained.
type Canary struct {
	Model string  `json:"model"`
	Share float64 `json:"share"` // of conversations
	// control or canary; absent for a request that cannot go to the canary
	Arm string `json:"arm,omitempty"`
}

// explainCanary tells of the model that the route tries out; nil for none.
func (d *decision) explainCanary() *Canary {
	c := d.canary()
	if c == nil {
		return nil
	}
	return &Canary{Model: c.Model, Share: c.Share, Arm: d.inArm}
}

// countArm counts a request of an arm.
func (p *Proxy) countArm(o *exchange, status int) {
	if o.decision == nil || o.inArm == "" || o.lookup.Given() != nil {
		return
	}
	m, u := p.tel.Metrics, &o.tally.Usage
	m.Arm(o.Route, o.inArm, status)
	if o.model != nil && u.Input+u.Output > 0 {
		m.ArmUsed(o.Route, o.inArm, int64(u.Input), int64(u.Output), o.model.Price.Of(float64(u.Input), float64(u.Output)))
	}
}

// save notes what the request saves with. One that goes to the cheapest model tries none out.
func (d *decision) save(how budget.Saving) {
	d.saving = how
	if how.Cheaper && d.inArm != "" && !d.callsOf(d.Action.Canary.Model) {
		d.inArm = ""
	}
}
