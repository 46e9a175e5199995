package decide

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/conversation"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/pool"
	"signalbox/proxy/resolve"
	"signalbox/rules"
)

// The states of the conversation of a request, as header, explanation and log call it.
const (
	talkNew   = "new" // nothing is known of it
	talkKept  = "kept"
	talkMoved = "moved"
)

// The reasons why it was kept or moved.
const (
	whySame      = "same"          // nothing speaks for another model
	whyPrefill   = "prefill"       // what does is not worth the prefill
	whyTool      = "tool_result"   // a result of a tool goes to the model that asked for it
	whyState     = "server_state"  // the servers of another do not have the response that it goes on with
	whySubject   = "subject"       // the subject changed
	whyFigures   = "figures"       // another model is that much better, cheaper or faster
	whyRules     = "rules"         // its model is no candidate of the route that the rules took
	whyEscalated = "escalated"     // the response of its model was judged and thrown away
	whyAway      = "unavailable"   // no endpoint of its model is healthy, or none answered
	whyWindow    = "window"        // its model's window is too small by now
	whyDenied    = "not_permitted" // the caller may not use its model
	whyCanary    = "canary"        // it is one that goes to the model that is tried out
	whyBudget    = "budget"        // another model is cheaper, and a budget is nearly used up
)

// policy are signals for which a route is taken whatever the conversation was: they say what a
// request holds, not what it is about.
const policy = signal.Mask(1<<signal.Jailbreak | 1<<signal.Injection | 1<<signal.PII | 1<<signal.Keyword)

// Talk is what is known of the conversation that a request belongs to. It belongs to the request's
// goroutine. Nil stands for a request that belongs to none, as where stickiness is off.
type Talk struct {
	keys           []conversation.Key             // under which the next turn will look
	looked         []conversation.Key             // under which the turn before was looked for
	before         *conversation.State            // nil where nothing is known
	at             int                            // the index in looked of the key that had it; -1 for none
	named          bool                           // the client names it, so that requests may leave out what was said
	short          bool                           // this one does
	tool           bool                           // the request brings results of tools to the model that asked for them
	state          bool                           // the rules led to servers that lack what the request goes on with
	price          float64                        // the gain that a move has to bring, in [0,1]
	gain           float64                        // the greatest of a topic that was kept
	inherited      *[signal.NumKinds]signal.Value // topics that stay what they were; nil where none does
	inheritedKinds signal.Mask                    // the kinds of inherited
	moved          bool                           // the subject did
	result         string
	why            string
	final          bool // a model was asked: result holds
}

// talk finds the conversation that a request belongs to. Only requests that ask for routing belong
// to one: who names a model has chosen.
func (b *Base) talk(ctx context.Context, d *Decision, req *openai.Request, h http.Header) *Talk {
	if b.Talks == nil || b.Stick.MaxAge <= 0 || d.Named != "" || req.OpaquePrompt ||
		req.API != openai.Chat && req.API != openai.Response {
		return nil
	}
	t := &Talk{result: talkNew}
	t.looked = t.name(namer{d.Who.Tenant, d.Who.Role}, resolve.Session(req, h), req)
	if t.before, t.at = b.Talks.Find(ctx, t.looked...); t.before == nil {
		return t
	}
	t.tool = req.BringsToolResult()
	lost, all := t.cached(d), t.tokens(d)
	// The response counts as well. It matters to short conversations alone, which have little to
	// lose.
	t.price = b.Stick.Margin * float64(lost) / float64(max(all, 1)+openai.AssumedOutputTokens)
	return t
}

// tokens is how long the prompt is that the model reads, as far as is known here.
func (t *Talk) tokens(d *Decision) int {
	if t.short && t.before != nil {
		return t.before.Tokens + d.Set.Facts.Tokens
	}
	return d.Set.Facts.Tokens
}

// cached is how much of it the model of the conversation has read before.
func (t *Talk) cached(d *Decision) int { return min(t.before.Tokens, t.tokens(d)) }

// The bounds of what is kept of what the user said.
const (
	keptTurns     = 4
	keptTurnBytes = 1 << 10
)

// addEarlierTurns gives a text that leaves out what the user said before what is known of that. A
// turn without text, as a picture is, goes on with what was said last.
func (t *Talk) addEarlierTurns(text *signal.Text) {
	if t == nil || !t.short || t.before == nil || len(text.Before) > 0 {
		return
	}
	text.Before = t.before.Said
	if last := len(text.Before) - 1; text.LastUser == "" && last >= 0 {
		text.Before, text.LastUser = text.Before[:last], text.Before[last]
	}
}

// said is what is kept of what the user said.
func (t *Talk) said(text *signal.Text) []string {
	switch {
	case !t.named:
		return nil
	case text.LastUser == "" && t.short && t.before != nil:
		return t.before.Said
	case text.LastUser == "":
		return nil
	}
	all := append(slices.Clip(text.Before), text.LastUser)
	all = slices.Clone(all[max(0, len(all)-keptTurns):])
	for i, s := range all {
		all[i] = strings.Clone(front(s, keptTurnBytes))
	}
	return all
}

// front is the beginning of s: whole characters, at most n bytes.
func front(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// namer makes keys of what the callers of one tenant and role send: a role may be what a route asks
// for.
type namer struct{ tenant, role string }

func (n namer) key(source, name string) conversation.Key {
	h := sha256.New()
	for _, s := range [...]string{n.tenant, n.role, source, name} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		h.Write(size[:])
		h.Write([]byte(s))
	}
	return conversation.Key(h.Sum(nil))
}

// The sources of keys.
const (
	bySession  = "session"
	byResponse = "previous_response_id"
	byObject   = "conversation" // of the Responses API
	byTurns    = "turns"
	byCacheKey = "prompt_cache_key"
	byPlace    = "place" // of a response, whoever asks, and of a conversation
)

// name finds out what the conversation is called: it sets the keys under which the state after this
// request is kept, and returns those under which the one before is found, of which the first counts
// that has one.
//
// A session, the response before and a conversation of the Responses API name it. Otherwise it is
// told by its turns: by all that was said but for the responses up to the last response, which is
// all that the request before had. So conversations that begin alike part with the first turn that
// differs, a turn that is sent again or edited finds the state that it had before, and a first
// message finds none. prompt_cache_key may be that of many conversations; it counts where the turns
// are not known, as where a client leaves old ones out.
func (t *Talk) name(n namer, session string, req *openai.Request) (find []conversation.Key) {
	before, all := turnsOf(req)
	find, t.keys = n.stateful(req)
	if session != "" {
		k := n.key(bySession, session)
		t.named, t.short = true, before == ""
		t.keys = append(t.keys, k)
		return append(find, k)
	}
	t.named = len(find) > 0 || req.API == openai.Response
	if t.short = len(find) > 0 && before == ""; len(find) == 0 {
		if before != "" {
			find = append(find, n.key(byTurns, before))
		}
		t.keys = append(t.keys, n.key(byTurns, all))
	}
	if name := req.QuotedField("prompt_cache_key"); name != "" {
		k := n.key(byCacheKey, name)
		if t.keys = append(t.keys, k); len(find) > 0 { // a first message goes on with nothing
			find = append(find, k)
		}
	}
	return find
}

// turnsOf returns digests of what was said but for the responses: up to the last response, empty
// where there is none or nothing before it, and of all.
func turnsOf(req *openai.Request) (before, all string) {
	end := -1 // where the last answer begins
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].FromModel() {
			end = i
		} else if end >= 0 {
			break
		}
	}
	var sum [2]xxhash.Digest // of two seeds: one of 64 bits alone is too short to tell texts apart
	sum[0].ResetWithSeed(1)
	sum[1].ResetWithSeed(2)
	write := func(s string) {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(s)))
		for i := range sum {
			_, _ = sum[i].Write(size[:])
			_, _ = sum[i].WriteString(s)
		}
	}
	state := func() string {
		b := binary.LittleEndian.AppendUint64(nil, sum[0].Sum64())
		return string(binary.LittleEndian.AppendUint64(b, sum[1].Sum64()))
	}
	write(req.Instructions)
	said := false
	for i := range req.Messages {
		m := &req.Messages[i]
		if i == end && said {
			before = state()
		}
		if m.FromModel() {
			continue
		}
		said = said || m.Role == "user"
		write(m.Role)
		write(m.Text)
		if m.HasImage || m.Text == "" {
			write(string(req.Raw[m.Span.Start:m.Span.End]))
		}
	}
	return before, state()
}

// keepSubject decides a request of a conversation again by the subject that it had, where what the
// request says of another one is not worth the prefill. Whatever policy says of the request holds:
// a route that blocks or answers, that cannot be decided, or that is taken for what the request
// holds.
func (b *Base) keepSubject(ctx context.Context, d *Decision, req *openai.Request) error {
	t := d.Talk
	if !d.movable() {
		return nil
	}
	if t == nil || t.before == nil {
		d.admitKept()
		return nil
	}
	if t.holdTopics(d.Set, b.Signals.IntentThreshold); t.inheritedKinds != 0 {
		fresh, decided := *d.Set, d.Decision
		t.restoreTopics(d.Set)
		if err := b.stepRules(ctx, d, req); err != nil {
			return err
		}
		if !d.movable() {
			*d.Set, d.Decision = fresh, decided
			t.inheritedKinds, t.moved = 0, true
		}
	}
	if t.state = d.leavesState(); (t.tool || t.state) && !d.leadsTo(t.before.Model) {
		d.returnToRoute()
	}
	if t.state && (d.Kept.Model != t.before.Model || !d.leadsTo(d.Kept.Model)) {
		d.admitKept()
	}
	return nil
}

// leadsTo reports whether a model is a candidate.
func (d *Decision) leadsTo(model string) bool {
	c := d.canary()
	return c != nil && c.Model == model ||
		slices.ContainsFunc(d.Action.Models, func(c rules.Choice) bool { return c.Name == model })
}

// returnToRoute takes the route of the turn before again, where that is still a way to its model: a
// result of a tool may be so long, or so much later, that rules about the request would lead
// elsewhere.
func (d *Decision) returnToRoute() {
	taken, ok := d.Program.Taken(d.Talk.before.Route)
	if !ok || taken.Action.Verb != rules.Use {
		return
	}
	mine := d.Decision
	if d.Decision = taken; !d.leadsTo(d.Talk.before.Model) || Unread(&taken, d.Set) != 0 {
		d.Decision = mine
	}
}

// admitKept makes the model that has what the request goes on with its only candidate, where some
// candidate has not and the caller may use it: nobody else can go on. Its turn before named a model
// that no route of this one leads to, or nothing else is known of its conversation.
func (d *Decision) admitKept() {
	k := d.Kept
	if d.Named != "" || !d.leavesState() || !d.movable() || !d.Who.May(k.Model) {
		return
	}
	if m := d.Base.ByName[k.Model]; m == nil || k.At(m) < 0 {
		return // it is gone
	}
	mine := *d.Action
	mine.By, mine.Models = "order", []rules.Choice{{Name: k.Model, Weight: 1}}
	mine.Escalate, mine.Canary = nil, nil
	d.Action = &mine
}

// movable reports whether a conversation may have brought the decision about, or kept it from.
func (d *Decision) movable() bool {
	if d.Action.Verb != rules.Use || d.Outcome == rules.FailClosed || d.Outcome == rules.Unavailable {
		return false
	}
	return !slices.ContainsFunc(d.Program.Routes(), func(r rules.Route) bool {
		return r.Name == d.Route && r.Kinds&policy != 0
	})
}

// preferConversation puts the model that the conversation is with in front of the candidates of its
// route, unless another is worth more, and says what becomes of the conversation. cs is what the
// choice made, the best first; it is changed in place.
func (b *Base) preferConversation(d *Decision, cs []choose.Candidate) {
	t := d.Talk
	if t == nil || t.before == nil || len(cs) == 0 {
		return
	}
	if result, why := t.result, t.why; t.final {
		defer func() { t.result, t.why = result, why }()
	}
	at := slices.IndexFunc(cs, func(c choose.Candidate) bool { return c.Name == t.before.Model })
	t.result = talkMoved
	m := b.ByName[t.before.Model]
	switch {
	case at < 0 && t.moved && !t.state:
		t.why = whySubject
	case at < 0 || m == nil:
		t.why = whyRules
	case cs[at].Out:
		t.why = whyWindow
	case !d.Who.May(m.Name):
		t.why = whyDenied
	case !m.Serves(time.Now()):
		t.why = whyAway
	case t.tool:
		t.pin(cs, at, whyTool)
	case t.state && at >= 0:
		t.pin(cs, at, whyState)
	case at == 0:
		t.pin(cs, at, whySame)
	case t.moved && (d.Route != t.before.Route || d.Action.By != "order" && d.Action.By != "weight"):
		t.why = whySubject
	case d.figures(cs, at) > t.price:
		t.why = whyFigures
	default:
		t.pin(cs, at, whyPrefill)
	}
}

// pin puts candidate at in front.
func (t *Talk) pin(cs []choose.Candidate, at int, why string) {
	chosen := cs[at]
	copy(cs[1:at+1], cs[:at])
	cs[0] = chosen
	if t.result, t.why = talkKept, why; why == whySame && t.inheritedKinds != 0 {
		t.why = whyPrefill
	}
}

// figures is what the first candidate gains over candidate at, by what the route chooses by, in
// [0,1] and less: of quality the difference, of cost and time the share that is saved. A figure
// that is not known says nothing.
func (d *Decision) figures(cs []choose.Candidate, at int) float64 {
	best, own := &cs[0], &cs[at]
	saved := func(best, own float64) float64 {
		if best < 0 || own <= 0 {
			return 0
		}
		return 1 - best/own
	}
	switch d.Action.By {
	case "quality":
		if best.Quality >= 0 && own.Quality >= 0 {
			return best.Quality - own.Quality
		}
	case "cost":
		// cached tokens cost its own model nothing again
		lost := d.Base.ByName[own.Name].Price.Of(float64(d.Talk.cached(d)), 0)
		return saved(best.Cost, own.Cost-lost)
	case "latency":
		return saved(best.Latency, own.Latency)
	}
	return 0
}

// answeredBy says what became of the conversation when m was asked.
func (t *Talk) answeredBy(m *backend.Model) {
	if t == nil || t.before == nil {
		return
	}
	t.final = true
	switch {
	case m.Name == t.before.Model:
		if t.result != talkKept {
			t.result, t.why = talkKept, whySame // as a fallback
		}
	case t.result != talkMoved:
		t.result, t.why = talkMoved, whyAway
	}
}

// describe writes the headers that say what became of the conversation.
func (t *Talk) describe(h http.Header) {
	const name, reason = "X-Signalbox-Conversation", "X-Signalbox-Conversation-Reason"
	delete(h, reason)
	if t == nil {
		return
	}
	if h[name] = []string{t.result}; t.why != "" {
		h[reason] = []string{t.why}
	}
}

// StoreTurn keeps what the conversation was answered with, for its next turn: before the client
// sees any of the response, so that the next turn cannot come first. e is the endpoint that
// answered, and id what it called the response, as it is spelled; empty for none.
func (b *Base) StoreTurn(
	ctx context.Context, d *Decision, req *openai.Request, m *backend.Model, e *pool.Endpoint, id string,
) {
	t := d.Talk
	if t == nil {
		b.storeNamed(ctx, d, req, m, e, plain(id))
		return
	}
	s := &conversation.State{
		Model: m.Name, Route: d.Route, Tokens: t.tokens(d),
		Topics: make(map[string]conversation.Topic), Seed: d.seed,
	}
	if req.API == openai.Response {
		s.Endpoint, s.Server = e.Name, e.Chat.String()
	}
	if s.Seed == 0 && t.before != nil {
		s.Seed = t.before.Seed
	}
	if t.named {
		text := d.Text
		if text.Segments == nil {
			text = req.Text()
		}
		s.Said = t.said(&text)
	}
	for _, k := range sticky.Kinds() {
		if v := d.Set.Value(k); v.State == signal.Known && v.Label != "" {
			s.Topics[k.String()] = conversation.Topic{Label: strings.Clone(v.Label), Labels: v.Labels, Probs: v.Probs}
		} else if t.before != nil { // nobody asked this time
			if old, ok := t.before.Topics[k.String()]; ok && !t.moved {
				s.Topics[k.String()] = old
			}
		}
	}
	if id = plain(id); id != "" {
		t.keys = append(slices.Clip(t.keys), namer{d.Who.Tenant, d.Who.Role}.key(byResponse, id))
	}
	b.Talks.KeepAll(ctx, b.entries(d, req, s, t.keys, id))
}

// Round is x to three digits.
func Round(x float64) float64 { return math.Round(x*1000) / 1000 }

// Conversation is what became of the conversation that a request belongs to.
type Conversation struct {
	State  string  `json:"state"`            // new, kept or moved
	Reason string  `json:"reason,omitempty"` // why it was kept or moved
	Model  string  `json:"model,omitempty"`  // that answered the turn before
	Route  string  `json:"route,omitempty"`  // of that turn
	Tokens int     `json:"tokens,omitempty"` // of its prompt, which a move throws away
	Price  float64 `json:"price,omitempty"`  // the gain that a move has to bring, in [0,1]
	Gain   float64 `json:"gain,omitempty"`   // the greatest that was not worth it
	// signals that stayed what they were, although the request says something else
	Kept []string `json:"kept,omitempty"`
}

// Explain tells what became of the conversation; nil for a request that belongs to none.
func (t *Talk) Explain() *Conversation {
	if t == nil {
		return nil
	}
	c := &Conversation{State: t.result, Reason: t.why}
	if t.before == nil {
		return c
	}
	c.Model, c.Route, c.Tokens = t.before.Model, t.before.Route, t.before.Tokens
	c.Price, c.Gain = Round(t.price), Round(t.gain)
	for _, k := range t.inheritedKinds.Kinds() {
		c.Kept = append(c.Kept, k.String())
	}
	return c
}

// Fate is what became of the conversation: new, kept or moved; empty for a request that belongs to
// none.
func (t *Talk) Fate() string {
	if t == nil {
		return ""
	}
	return t.result
}

// Escalated notes that the response of the conversation's model was judged and thrown away.
func (t *Talk) Escalated() {
	if t != nil && t.before != nil {
		t.result, t.why = talkMoved, whyEscalated
	}
}

// Turn is a turn of a conversation that was answered and was not its first.
type Turn struct {
	Found  []conversation.Key // under one of which the turn before was found
	Keys   []conversation.Key // under which the next one will look
	Named  bool               // by the client
	Tokens int                // of its prompt, as far as is known
	Moved  bool               // to another model than that of the turn before
	From   string             // that model
	Why    string             // why it was moved, or kept
}

// Turn is the turn that was answered; ok is false for a first one, and where no model was asked.
func (d *Decision) Turn() (out Turn, ok bool) {
	t := d.Talk
	if t == nil || t.before == nil || !t.final || len(t.keys) == 0 {
		return out, false
	}
	return Turn{
		Found: t.looked, Keys: t.keys, Named: t.named, Tokens: t.tokens(d), Moved: t.result == talkMoved,
		From: t.before.Model, Why: t.why,
	}, true
}
