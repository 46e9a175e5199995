package rewrite

import (
	"signalbox/internal/openai"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/decide"
	"signalbox/proxy/lengths"
	"signalbox/proxy/redact"
	"signalbox/proxy/settings"
	"signalbox/proxy/tools"
)

// Options is what bodies are written by, of one configuration. It is immutable once it is
// used, and safe for concurrent use.
type Options struct {
	Prompts map[string]string // by name
	Limits  lengths.Options   // of `max_tokens: auto`
	vague   []string          // normalised
}

// NewOptions makes options of the prompts that routes name, of those of clients that say
// nothing, and of how automatic limits are found.
func NewOptions(prompts []settings.Prompt, vague []string, limits lengths.Options) *Options {
	o := &Options{Prompts: make(map[string]string, len(prompts)), Limits: limits}
	for i := range prompts {
		o.Prompts[prompts[i].Name] = prompts[i].Text
	}
	for _, s := range vague {
		o.vague = append(o.vague, normalise(s))
	}
	return o
}

// Change makes the body that a model receives from the one that the client sent. It depends on
// the model, so a request that falls back to another one is rewritten again, from the original.
type Change struct {
	EndpointFields

	Request  *openai.Request // of the client; values may be hidden in it
	Decision *decide.Decision

	Tools   *tools.Choice  // that the model is offered; nil for all of them
	Results *tools.Results // results of tools that are sent in short; nil for none
	HideAll bool           // personal data is replaced once the contexts are in the body
	Counted bool           // a limit of the caller is settled by the tokens of the answer
	Paid    bool           // a budget of the caller is settled by what the answer costs

	o *Options
}

// New prepares the changes that a decision asks for.
func New(o *Options, req *openai.Request, d *decide.Decision) Change {
	return Change{o: o, Request: req, Decision: d}
}

// Params is what a body asks of the model beyond its text.
type Params struct {
	Effort   string       // of reasoning, as the header reports it; empty where the body says nothing of it
	Kind     lengths.Kind // of answers that it is like
	Limit    Limit        // that the proxy set
	Logprobs bool         // the proxy asked for log-probabilities, and the client did not
	Usage    bool         // the proxy asked how many tokens the stream takes, and the client did not
	BodySize int64        // bytes that are sent
}

// EndpointFields is what an endpoint takes in a body beyond the API; zero for nothing.
type EndpointFields struct {
	Salt   string
	Member string // of kv_transfer_params
	Value  string
}

// Limit is the limit on a response that the proxy put into a request; zero when it put none.
type Limit struct {
	Tokens int // in tokens; 0 with given when its value is no number of tokens
	Auto   bool
	Near   bool // by outcomes of near requests
	Given  bool // by a field that the route sets
}

// ClientsOwn reports whether the limit on the response to req, of which l is what the proxy put
// there, is the one that the client has set.
func (l Limit) ClientsOwn(req *openai.Request) bool {
	_, ok := req.AnswerLimit()
	return ok && l == (Limit{})
}

// Payload is the body that a model receives, which every attempt reads anew. The zero value is
// empty.
type Payload struct {
	whole  []byte
	pieces prefix.Body   // in place of whole, where stored contexts are part of it: their bytes are not copied
	Vault  *redact.Vault // of what was hidden in the pieces; nil when nothing was
}

// named reports that the client asked for this very model, and so knows how to speak to it. One
// that named a model and was routed to another knows as little as one that asked for routing, or in
// another API.
func (rw Change) named(m *backend.Model) bool {
	return rw.Decision.Named == m.Name && !rw.Request.Translated
}

// Whole is a body in one piece.
func Whole(body []byte) Payload { return Payload{whole: body} }
