package placement

import (
	"cmp"
	"net/http"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/chain"
	"signalbox/proxy/decide"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
)

// prompt is what placement knows about a request: what it belongs to and, if it is long, its text
// in blocks. It belongs to one request.
type prompt struct {
	hints   affinity.Hints
	chain   affinity.Chain
	salt    string
	tokens  int    // estimated
	effort  string // reasoning effort, as far as it is known before the model
	decided *decide.Decision
	tools   []byte // as the client spelled them
	penalty [affinity.MaxEndpoints]float64
}

// chainFrom is the minimum length of a prompt, in tokens, for tracking it block by block. Computing
// a shorter one again costs less than finding it.
const chainFrom = 1024

// promptOf returns the placement data of a request; nil for a short one that belongs to nothing.
func (b *Places) promptOf(rw *rewrite.Change, h http.Header) *prompt {
	f, req := &rw.Decision.Set.Facts, rw.Request
	hints := affinity.Hints{
		Session:          f.Session,
		PromptCacheKey:   req.QuotedField("prompt_cache_key"),
		SessionID:        first(h[affinity.SessionHeader]),
		ClaudeSession:    first(h[affinity.ClaudeSessionHeader]),
		PreviousResponse: req.QuotedField("previous_response_id"),
	}
	if rw.Decision.Contexts.Named() {
		for _, s := range rw.Decision.Contexts.Snaps {
			hints.Contexts = append(hints.Contexts, resolve.Pointer(s))
		}
	}
	if f.Tokens < chainFrom && hints.Empty() {
		return nil
	}
	p := &prompt{hints: hints, salt: b.Salts.Of(f.Tenant), tokens: f.Tokens, effort: rw.Effort(nil), decided: rw.Decision, tools: req.Field("tools")}
	p.effort = cmp.Or(p.effort, req.ReasoningEffort)
	if f.Tokens >= chainFrom || len(hints.Contexts) > 0 {
		b.chainOf(&p.chain, rw)
	}
	return p
}

// chainOf writes the text of a request in the order in which its model will read it: contexts, the
// route's prompt, then the client's messages.
func (b *Places) chainOf(c *affinity.Chain, rw *rewrite.Change) {
	if rw.Decision.Contexts.Named() {
		c.Resume(b.Chains.Of(rw.Decision.Contexts.Snaps))
	}
	if name := rw.Decision.Action.Prompt.Name; name != "" {
		c.Message("system", b.Prompts[name])
	}
	c.Grow(len(rw.Request.Raw)) // text is no longer than its spelling, except for roles
	c.Write(rw.Request.Instructions)
	chain.WriteMessages(c, rw.Request)
}

// class returns what the prompt must have in common with others on model m to share their blocks.
func (p *prompt) class(m *backend.Model) affinity.Class {
	t := affinity.Traits{Model: m.ServedAs, Salt: p.salt}
	if m.Servers.KV.EffortLeadsPrompt {
		t.Template = p.effort
		if e := p.decided.ExpectedOf(m.Name); e != nil && (e.ByOutcomes || e.Drawn) {
			t.Template = e.Effort
		}
	}
	if m.Servers.KV.ToolsLeadPrompt {
		t.Template += "\x1f" + string(p.tools)
	}
	return t.Class()
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// Ask returns the placement request on m for a request with nothing but a stored context.
func (b *Places) Ask(m *backend.Model, tenant string, s *memory.Snapshot) affinity.Request {
	var c affinity.Chain
	c.Resume(b.Chains.Of([]*memory.Snapshot{s}))
	x := prompt{hints: affinity.Hints{Contexts: []string{resolve.Pointer(s)}}, salt: b.Salts.Of(tenant)}
	out := affinity.Request{Class: x.class(m), Blocks: c.Blocks(), Bytes: c.Bytes(), Tokens: s.Derived.Tokens[m.Name]}
	if out.Tokens == 0 {
		out.Tokens = m.Servers.Correct(int(s.Bytes / openai.BytesPerToken))
	}
	out.Key, _ = x.hints.Key(out.Class, out.Blocks, out.Tokens)
	return out
}
