package proxy

import (
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/openai"
)

// rewriter makes the body that a model receives from the one that the client sent. It depends on the
// model, so a request that falls back to another one is rewritten again, from the original.
type rewriter struct {
	st  *State
	req *openai.Request
	d   *decision
}

// rewrite prepares the changes that a decision asks for.
func (st *State) rewrite(req *openai.Request, d *decision) rewriter { return rewriter{st, req, d} }

// body returns the body for m and the reasoning effort that it asks for. When nothing has to change
// it is the client's body itself.
func (rw rewriter) body(m *model) (body []byte, effort string) {
	p := openai.NewPatch(rw.req)
	p.StripExtras()
	p.SetModel(m.servedAs)
	rw.prompt(p)
	effort = rw.reason(p, m)
	rw.limit(p, m, effort)
	for _, f := range rw.d.Action.Body {
		p.SetField(f.Name, f.JSON)
	}
	return p.Bytes(), effort
}

// prompt puts the route's system prompt in. A client's own prompt that says something gives way only
// to mode always.
func (rw rewriter) prompt(p *openai.Patch) {
	want := rw.d.Action.Prompt
	if want.Name == "" {
		return
	}
	text, i := rw.st.prompts[want.Name], rw.req.SystemIndex
	switch {
	case i < 0:
		p.InsertMessage(0, "system", text)
	case want.Mode == "always", isVague(rw.st.vague, rw.req.Messages[i].Text):
		p.ReplaceMessageText(i, text)
	case want.Mode == "prefix":
		p.PrependToMessageText(i, text+"\n\n")
	}
}

// isVague reports whether a system prompt says nothing: it is blank or one of the vague ones.
func isVague(vague []string, text string) bool {
	n := normalise(text)
	return n == "" || slices.Contains(vague, n)
}

// longestVague bounds the prompts that are compared with the vague ones, in bytes.
const longestVague = 4 << 10

// normalise folds what two spellings of a sentence may differ in: case, spacing, closing punctuation.
func normalise(s string) string {
	if len(s) > longestVague {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimRight(s, ".!? ")
}

// minCompletion is the least room for an answer, in tokens, that a limit is fitted into. With less,
// the estimate of the prompt's length decides more than the limit does, and the upstream, which
// counts exactly, is the better judge.
const minCompletion = 256

// limit sets the token limit that the route asks for, unless the client set one.
func (rw rewriter) limit(p *openai.Patch, m *model, effort string) {
	want := rw.d.Action.MaxTokens
	n := want.Limit
	if want.Auto {
		n = coldStart(effort)
	}
	if n == 0 {
		return
	}
	field := "max_tokens"
	if rw.req.MaxTokens != nil || rw.req.MaxCompletionTokens != nil {
		// An automatic limit never shrinks what the client asked for, override or not.
		if !rw.d.Action.Override || want.Auto {
			return
		}
		if rw.req.MaxCompletionTokens != nil {
			field = "max_completion_tokens"
		}
	}
	if m.window > 0 {
		room := m.window - rw.d.set.Facts.Tokens
		if room < minCompletion {
			return
		}
		n = min(n, room)
	}
	p.SetField(field, strconv.AppendInt(nil, int64(n), 10))
}

// coldStart is the automatic limit before any answer was seen, in tokens: the reasoning counts
// towards the limit, so it doubles with each effort.
func coldStart(effort string) int {
	switch effort {
	case effortLow:
		return 4096
	case effortMedium:
		return 8192
	case effortHigh:
		return 16384
	}
	return 2048
}
