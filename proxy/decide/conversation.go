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

// The states of a request's conversation, as used in headers, explanations and logs.
const (
	talkNew   = "new" // nothing is known of the conversation
	talkKept  = "kept"
	talkMoved = "moved"
)

// The reasons why a conversation was kept or moved.
const (
	whySame    = "same"        // there is no reason to move it
	whyPrefill = "prefill"     // the gain of a move is not worth the prefill
	whyTool    = "tool_result" // a tool result goes to the model that called the tool
	// only the servers of this model have the response that the request continues.
	whyState   = "server_state"
	whySubject = "subject" // the subject changed
	// another model is better, cheaper or faster by more than the prefill costs.
	whyFigures   = "figures"
	whyRules     = "rules"         // its model is no candidate of the route taken
	whyEscalated = "escalated"     // the response of its model was judged and discarded
	whyAway      = "unavailable"   // no endpoint of its model is healthy, or none answered
	whyWindow    = "window"        // the window of its model has become too small
	whyDenied    = "not_permitted" // the caller may not use its model
	whyCanary    = "canary"        // it is in the canary arm
	whyBudget    = "budget"        // another model is cheaper and a budget is nearly exhausted
)

// policy holds the signals whose routes override a conversation: they describe what a request
// contains, not its subject.
const policy = signal.Mask(1<<signal.Jailbreak | 1<<signal.Injection | 1<<signal.PII | 1<<signal.Keyword)

// Talk is what is known about the conversation of a request. It belongs to the goroutine of the
// request. A nil Talk means that the request belongs to no conversation, for example because
// stickiness is off.
type Talk struct {
	keys   []conversation.Key  // under which the next turn will search
	looked []conversation.Key  // under which the previous turn was searched for
	before *conversation.State // state of the previous turn; nil if unknown
	at     int                 // index in looked of the key that was found; -1 if none
	named  bool                // the client names it, so requests may omit earlier turns
	short  bool                // this request omits earlier turns
	tool   bool                // the request returns results of this model's tool calls
	state  bool                // the rules led to servers without the response that it continues
	price  float64             // minimum gain for a move, in [0,1]
	gain   float64             // largest gain of a topic that was kept
	// topics kept from the previous turn; nil if there are none
	inherited      *[signal.NumKinds]signal.Value
	inheritedKinds signal.Mask // the kinds in inherited
	moved          bool        // the subject changed
	result         string
	why            string
	final          bool // a model was asked, so result holds
}

// talk finds the conversation of a request. Only requests that ask for routing belong to one: a
// caller that names a model has made its choice.
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
	// The response counts as well. It matters only in short conversations, which have little to
	// lose.
	t.price = b.Stick.Margin * float64(lost) / float64(max(all, 1)+openai.AssumedOutputTokens)
	return t
}

// tokens returns the length of the prompt that the model reads, in tokens, as far as it is known.
func (t *Talk) tokens(d *Decision) int {
	if t.short && t.before != nil {
		return t.before.Tokens + d.Set.Facts.Tokens
	}
	return d.Set.Facts.Tokens
}

// cached returns the number of prompt tokens that the conversation's model has read before.
func (t *Talk) cached(d *Decision) int { return min(t.before.Tokens, t.tokens(d)) }

// Limits of what is stored of the user's earlier turns.
const (
	keptTurns     = 4
	keptTurnBytes = 1 << 10
)

// addEarlierTurns adds the user's stored earlier turns to a text that omits them. A turn without
// text, such as an image, continues with the last text.
func (t *Talk) addEarlierTurns(text *signal.Text) {
	if t == nil || !t.short || t.before == nil || len(text.Before) > 0 {
		return
	}
	text.Before = t.before.Said
	if last := len(text.Before) - 1; text.LastUser == "" && last >= 0 {
		text.Before, text.LastUser = text.Before[:last], text.Before[last]
	}
}

// said returns what to store of the user's turns.
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

// front returns the longest prefix of s of at most n bytes, without invalid UTF-8.
func front(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// namer derives keys for the callers of one tenant and role. The role is part of the key because
// routes may depend on it.
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
	byObject   = "conversation" // a conversation of the Responses API
	byTurns    = "turns"
	byCacheKey = "prompt_cache_key"
	byPlace    = "place" // where a response or conversation is stored, whatever the caller's role
)

// name identifies the conversation. It sets the keys under which the state after this request will
// be stored, and returns the keys under which the previous state may be found; the first key that
// has a state counts.
//
// A conversation is named by a session, by the previous response or by a conversation of the
// Responses API. Otherwise its turns identify it: the key is a digest of everything but the model's
// responses, up to the last response. That is all that the previous request contained. So
// conversations that begin alike separate at the first turn that differs, a turn that is sent again
// or edited finds the state that it had before, and a first message finds none. A prompt_cache_key
// may be shared by many conversations. It is used when the digest of the turns is not found, for
// example because the client drops old turns.
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
		if t.keys = append(t.keys, k); len(find) > 0 { // a first message continues nothing
			find = append(find, k)
		}
	}
	return find
}

// turnsOf returns two digests of the turns without the model's responses: one up to the last
// response, which is empty when there is no response or nothing before it, and one of all turns.
func turnsOf(req *openai.Request) (before, all string) {
	end := -1 // where the last response begins
	for i := len(req.Messages) - 1; i >= 0; i-- {
		if req.Messages[i].FromModel() {
			end = i
		} else if end >= 0 {
			break
		}
	}
	var sum [2]xxhash.Digest // of two seeds, since 64 bits are too few to tell texts apart
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

// keepSubject decides a request of a conversation again with the previous subject when the gain of
// the new one is not worth the prefill. Decisions by policy stand: a route that blocks or replies
// with a text, that cannot be decided, or that was taken because of what the request contains.
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

// leadsTo reports whether model is a candidate.
func (d *Decision) leadsTo(model string) bool {
	c := d.canary()
	return c != nil && c.Model == model ||
		slices.ContainsFunc(d.Action.Models, func(c rules.Choice) bool { return c.Name == model })
}

// returnToRoute takes the route of the previous turn again if it still leads to that turn's model.
// A tool result may be so long, or arrive so much later, that rules about the request itself would
// lead elsewhere.
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

// admitKept makes the model that has the stored response that the request continues its only
// candidate. It applies when some candidate lacks that response and the caller may use the model,
// since no other model can continue. This happens when the previous turn named a model that no
// route leads to, or when nothing else is known of the conversation.
func (d *Decision) admitKept() {
	k := d.Kept
	if d.Named != "" || !d.leavesState() || !d.movable() || !d.Who.May(k.Model) {
		return
	}
	if m := d.Base.ByName[k.Model]; m == nil || k.At(m) < 0 {
		return // the model or endpoint was removed
	}
	mine := *d.Action
	mine.By, mine.Models = "order", []rules.Choice{{Name: k.Model, Weight: 1}}
	mine.Escalate, mine.Canary = nil, nil
	d.Action = &mine
}

// movable reports whether a conversation may influence the decision.
func (d *Decision) movable() bool {
	if d.Action.Verb != rules.Use || d.Outcome == rules.FailClosed || d.Outcome == rules.Unavailable {
		return false
	}
	return !slices.ContainsFunc(d.Program.Routes(), func(r rules.Route) bool {
		return r.Name == d.Route && r.Kinds&policy != 0
	})
}

// preferConversation moves the model of the conversation to the front of the candidates, unless the
// gain of another model is larger than the price of a move, and records the effect on the
// conversation. cs is sorted best first and is changed in place.
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

// pin moves candidate at to the front.
func (t *Talk) pin(cs []choose.Candidate, at int, why string) {
	chosen := cs[at]
	copy(cs[1:at+1], cs[:at])
	cs[0] = chosen
	if t.result, t.why = talkKept, why; why == whySame && t.inheritedKinds != 0 {
		t.why = whyPrefill
	}
}

// figures returns what the first candidate gains over candidate at, by the criterion of the route:
// the difference for quality, the saved share for cost and latency. The result is at most 1 and may
// be negative. An unknown figure gains nothing.
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
		// its own model is not charged for cached tokens again
		lost := d.Base.ByName[own.Name].Price.Of(float64(d.Talk.cached(d)), 0)
		return saved(best.Cost, own.Cost-lost)
	case "latency":
		return saved(best.Latency, own.Latency)
	}
	return 0
}

// answeredBy records what became of the conversation when m was asked.
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

// StoreTurn stores the state of a conversation for its next turn. It is called before the client
// receives any of the response, so that the next turn cannot arrive first. e is the endpoint that
// answered. id is the JSON literal of the response's id, empty if it has none.
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
		} else if t.before != nil { // not computed for this turn
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

// Round rounds x to three decimals.
func Round(x float64) float64 { return math.Round(x*1000) / 1000 }

// Conversation describes what became of a request's conversation.
type Conversation struct {
	State  string `json:"state"`            // new, kept or moved
	Reason string `json:"reason,omitempty"` // why it was kept or moved
	Model  string `json:"model,omitempty"`  // of the previous turn
	Route  string `json:"route,omitempty"`  // of the previous turn
	// prompt tokens in the cache of that model, which a move discards
	Tokens int     `json:"tokens,omitempty"`
	Price  float64 `json:"price,omitempty"` // minimum gain for a move, in [0,1]
	Gain   float64 `json:"gain,omitempty"`  // largest gain that was not enough
	// signals kept from the previous turn although the request has others
	Kept []string `json:"kept,omitempty"`
}

// Explain describes what became of the conversation; nil for a request that belongs to none.
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

// Fate returns what became of the conversation: new, kept or moved; empty for a request that
// belongs to none.
func (t *Talk) Fate() string {
	if t == nil {
		return ""
	}
	return t.result
}

// Escalated records that the response of the conversation's model was judged and discarded.
func (t *Talk) Escalated() {
	if t != nil && t.before != nil {
		t.result, t.why = talkMoved, whyEscalated
	}
}

// Turn is an answered turn of a conversation, other than its first.
type Turn struct {
	Found  []conversation.Key // keys, under one of which the previous turn was found
	Keys   []conversation.Key // keys under which the next turn will search
	Named  bool               // the client names the conversation
	Tokens int                // length of its prompt, as far as it is known
	Moved  bool               // to a model other than that of the previous turn
	From   string             // the model of the previous turn
	Why    string             // the reason why it was moved or kept
}

// Turn returns the answered turn. ok is false for a first turn, and when no model was asked.
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
