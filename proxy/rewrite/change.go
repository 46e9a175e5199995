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

// Options is what bodies of one configuration are written with. Once in use it is immutable and
// safe for concurrent use.
type Options struct {
	Prompts map[string]string // by name
	Limits  lengths.Options   // for `max_tokens: auto`
	vague   []string          // normalised
}

// NewOptions returns options with the prompts that routes name, the client prompts considered
// vague, and the configuration of automatic limits.
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

// Change makes the body that a model receives from the client's body. It depends on the model, so a
// request that falls back to another model is rewritten again from the original.
type Change struct {
	EndpointFields

	Request  *openai.Request // the client's request; values may be redacted in it
	Decision *decide.Decision

	Tools   *tools.Choice  // tools offered to the model; nil for all
	Results *tools.Results // shortened tool results; nil if there are none
	HideAll bool           // redact after the contexts have been added to the body
	Counted bool           // a token limit of the caller is settled by the response's usage
	Paid    bool           // a budget of the caller is settled by the response's cost

	o *Options
}

// New returns the changes required by a decision.
func New(o *Options, req *openai.Request, d *decide.Decision) Change {
	return Change{o: o, Request: req, Decision: d}
}

// Params is what a body asks of the model besides its text.
type Params struct {
	Effort   string       // as reported in the header; empty if the body does not set it
	Kind     lengths.Kind // of similar responses
	Limit    Limit        // set by the proxy
	Logprobs bool         // log-probabilities were requested by the proxy only
	Usage    bool         // the usage of the stream was requested by the proxy only
	BodySize int64        // bytes sent
}

// EndpointFields is what an endpoint accepts in a body beyond the API; zero for nothing.
type EndpointFields struct {
	Salt   string
	Member string // member of kv_transfer_params
	Value  string
}

// Limit is the response limit that the proxy put into a request; zero if it put none.
type Limit struct {
	Tokens int // in tokens; 0 with Given if its value is not a number of tokens
	Auto   bool
	Near   bool // derived from outcomes of similar requests
	Given  bool // by a field that the route sets
}

// ClientsOwn reports whether the response limit of req is the client's; l is what the proxy put
// there.
func (l Limit) ClientsOwn(req *openai.Request) bool {
	_, ok := req.AnswerLimit()
	return ok && l == (Limit{})
}

// Payload is the body that a model receives. Every attempt reads it anew. The zero value is empty.
type Payload struct {
	whole  []byte
	pieces prefix.Body   // instead of whole, with stored contexts, whose bytes are not copied
	Vault  *redact.Vault // values redacted in the pieces; nil if there are none
}

// named reports whether the client asked for this very model in its own API, and so knows its
// parameters. A client that was routed to the model does not.
func (rw Change) named(m *backend.Model) bool {
	return rw.Decision.Named == m.Name && !rw.Request.Translated
}

// Whole returns a payload in one piece.
func Whole(body []byte) Payload { return Payload{whole: body} }
