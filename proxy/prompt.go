package proxy

import (
	"net/http"

	"signalbox/internal/openai"
	"signalbox/proxy/affinity"
)

// prompt is what placement knows of a request: what it belongs to and, if it is long, its text in
// blocks. It belongs to one request.
type prompt struct {
	hints   affinity.Hints
	chain   affinity.Chain
	salt    string
	tokens  int    // estimated
	effort  string // of reasoning, as far as it is known before the model is
	tools   []byte // as the client spelled them
	penalty [affinity.MaxEndpoints]float64
}

// chainFrom is from how many tokens on a prompt is looked at block by block. Computing a shorter
// one again costs less than finding it.
const chainFrom = 1024

// promptOf is what placement looks at of a request; nil for one that belongs to nothing and is
// short.
func (st *State) promptOf(rw *rewriter, h http.Header) *prompt {
	f, req := &rw.d.set.Facts, rw.req
	hints := affinity.Hints{
		Session:          f.Session,
		PromptCacheKey:   textField(req, "prompt_cache_key"),
		SessionID:        first(h[affinity.SessionHeader]),
		ClaudeSession:    first(h[affinity.ClaudeSessionHeader]),
		PreviousResponse: textField(req, "previous_response_id"),
	}
	if rw.d.contexts.named() {
		for _, s := range rw.d.contexts.snaps {
			hints.Contexts = append(hints.Contexts, pointer(s))
		}
	}
	if f.Tokens < chainFrom && hints.Empty() {
		return nil
	}
	p := &prompt{hints: hints, salt: st.salts.of(f.Tenant), tokens: f.Tokens, effort: rw.effort(), tools: req.Field("tools")}
	if p.effort == "" {
		p.effort = req.ReasoningEffort
	}
	if f.Tokens >= chainFrom || len(hints.Contexts) > 0 {
		st.chainOf(&p.chain, rw)
	}
	return p
}

// chainOf writes the text of a request in the order in which its model will read it: contexts, the
// route's prompt, then what the client sent.
func (st *State) chainOf(c *affinity.Chain, rw *rewriter) {
	if rw.d.contexts.named() {
		c.Resume(st.chains.of(rw.d.contexts.snaps))
	}
	if name := rw.d.Action.Prompt.Name; name != "" {
		c.Message("system", st.prompts[name])
	}
	c.Write(rw.req.Instructions)
	writeMessages(c, rw.req)
}

// class is what the prompt must have in common with others on model m to share their blocks.
func (p *prompt) class(m *model) affinity.Class {
	t := affinity.Traits{Model: m.servedAs, Salt: p.salt}
	if m.where.kv.EffortLeadsPrompt {
		t.Template = p.effort
	}
	if m.where.kv.ToolsLeadPrompt {
		t.Template += "\x1f" + string(p.tools)
	}
	return t.Class()
}

// textField is a field of the body whose value is a string, in the client's spelling; empty when it
// is none.
func textField(req *openai.Request, name string) string {
	if v := req.Field(name); len(v) > 2 && v[0] == '"' {
		return string(v)
	}
	return ""
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
