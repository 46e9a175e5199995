package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/proxy/choose"
	"signalbox/proxy/fault"
)

// backendError is what a model server says of a request that it refuses. Fields that it does not
// say are empty.
type backendError struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Param   string          `json:"param"`
	Code    json.RawMessage `json:"code"` // a word; with vLLM the status, a number
}

// readBackendError reads an error body: the object `error` of the API, or, as older servers write
// it, the same members without it. What is neither is empty.
func readBackendError(body []byte) (r backendError) {
	var whole struct {
		backendError

		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &whole) != nil {
		return backendError{}
	}
	if whole.Error == nil {
		return whole.backendError
	}
	if json.Unmarshal(whole.Error, &r) != nil {
		return backendError{}
	}
	return r
}

// tooLong reports whether the prompt was refused for its length. A limit on the answer that does
// not fit beside the prompt is another matter: its param is the limit.
func (r *backendError) tooLong() bool {
	switch {
	case string(r.Code) == `"`+fault.CodeTooLong+`"`, r.Type == "exceed_context_size_error": // llama.cpp
		return true
	case r.Param == "input_tokens": // vLLM 0.32
		return true
	case strings.HasPrefix(r.Param, "max_"):
		return false
	}
	says := strings.ToLower(r.Message) // older vLLM, SGLang
	return strings.Contains(says, "maximum context length") ||
		strings.Contains(says, "longer than the model's context length")
}

// refusal is what the server says of a request that it refuses with 400; empty for any other
// answer.
func (u *upstream) refusal() (r backendError) {
	whole := errors.Is(u.err, io.EOF)
	if u.status != http.StatusBadRequest || !isJSON(u.header) || !u.plain() || !whole {
		return r
	}
	return readBackendError(u.buf.bytes())
}

// asTooLong is the refusal of a prompt for its length in the words of the API; nil for any other
// answer, and for one that is in these words already. param is the field that holds the prompt.
func (u *upstream) asTooLong(param string) error {
	r := u.refusal()
	if !r.tooLong() || string(r.Code) == `"`+fault.CodeTooLong+`"` {
		return nil
	}
	return &fault.TooLongError{Param: param, Message: shortened(r.Message)}
}

// outgrown reports whether the server refuses the prompt for its length and the plan has a model
// with a larger window left. It takes the others out of the plan: their servers would refuse it as
// well.
func (p *plan) outgrown(u *upstream) bool {
	window := u.model.window()
	larger := func(m *model) bool { return m.window() > window }
	if window == 0 || !slices.ContainsFunc(p.models, larger) {
		return false
	}
	if r := u.refusal(); !r.tooLong() {
		return false
	}
	u.endpoint.Succeeded() // it has answered
	p.models = slices.DeleteFunc(p.models, func(m *model) bool { return !larger(m) })
	return true
}

// maxSaid bounds what is repeated of a server's own words, in bytes.
const maxSaid = 500

// shortened cuts what a server says to maxSaid bytes of valid UTF-8.
func shortened(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxSaid)], "")
}

// longestToken is the length in bytes that no token of a vocabulary exceeds. The longest of GPT-4,
// Llama 3 and Qwen3 are 128 spaces; the rest is for those that nobody here has seen.
const longestToken = 256

// least is how many tokens a text has at least as a message: each begins with one of its own. Space
// at the ends of a text is taken off by some templates.
func least(text string) int {
	return 1 + len(strings.TrimSpace(text))/longestToken
}

// length is what is known of the length of a request's prompt without a tokenizer. Of several
// prompts of a completion each has the window for itself.
func (d *decision) length() (out choose.Prompt) {
	req := d.request
	if req.API == openai.Completion {
		for i := range req.Messages {
			text := req.Messages[i].Text
			out.Estimate = max(out.Estimate, len(text)/bytesPerToken+bytesPerToken)
			out.Least = max(out.Least, least(text))
		}
		ids := req.TokenIDs / max(1, req.TokenLists) // the longest list has no fewer
		out.Estimate, out.Least = max(out.Estimate, ids), max(out.Least, ids)
	} else {
		out.Estimate = estimateTokens(req)
		for i := range req.Messages {
			out.Least += least(req.Messages[i].Text)
		}
		if req.Instructions != "" {
			out.Least += least(req.Instructions)
		}
	}
	if d.contexts.named() {
		out.Estimate += d.contexts.tokens
		for _, s := range d.contexts.snaps {
			out.Least += int(s.Bytes) / longestToken
		}
	}
	return out
}

// measureBudget bounds the time in which model servers count the tokens of a prompt that may be too
// long for them.
const measureBudget = time.Second

// measure has the servers of models count the tokens of a prompt of which it is doubted that it
// fits, and returns what was answered in time, by model; nil for nothing. vLLM counts a chat as it
// would answer it, template and tools included.
func (p *Proxy) measure(ctx context.Context, st *State, change *rewriter) map[string]int {
	if !countable(change.req) {
		return nil
	}
	wants := change.d.wants()
	var out map[string]int
	for _, m := range st.named(change.d) {
		if !change.d.who.May(m.Name) || len(out) == mostCounts {
			continue
		}
		if !wants.Doubted(m.Window) || wants.Prompt.Least > m.Window {
			continue
		}
		if n, ok := p.measureBy(ctx, change, m); ok {
			if out == nil {
				out = make(map[string]int)
			}
			out[m.Name] = n
		}
	}
	return out
}

// countable reports whether /tokenize of vLLM takes the request: a chat of text, or one prompt that
// is text.
func countable(req *openai.Request) bool {
	switch req.API {
	case openai.Chat:
		return !req.HasMedia
	case openai.Completion:
		return len(req.Messages) == 1 && req.TokenLists == 0 && req.TokenIDs == 0
	case openai.Response, openai.Other:
	}
	return false
}

// named are the models that a decision leads to.
func (st *State) named(d *decision) (out []*model) {
	if len(d.Action.Models) == 0 {
		if m, ok := st.byName[d.model]; ok {
			out = append(out, m)
		}
		return out
	}
	for i := range d.Action.Models {
		if m, ok := st.byName[d.Action.Models[i].Name]; ok {
			out = append(out, m)
		}
	}
	return out
}

// measureBy has a server of one model count the prompt as the model would get it.
func (p *Proxy) measureBy(ctx context.Context, change *rewriter, m *model) (tokens int, ok bool) {
	e := p.counter(m)
	if e == nil {
		return 0, false
	}
	body, _, err := change.payload(ctx, m)
	if err != nil || body.size() > maxCounted {
		return 0, false // what is wrong is told by the attempt
	}
	ctx, cancel := context.WithTimeout(ctx, measureBudget)
	defer cancel()
	return p.tokenize(ctx, e, tokenizePath, body.reader())
}

// tooLong is the error of a prompt that fits none of the candidates, with figures of the one with
// the largest window.
func (d *decision) tooLong(prompt *choose.Prompt, cs []choose.Candidate) error {
	if d.request == nil {
		return &fault.TooLongError{}
	}
	out := &fault.TooLongError{Param: d.request.PromptField()}
	var largest *model
	for i := range cs {
		m, ok := d.state.byName[cs[i].Name]
		if ok && (largest == nil || m.Window > largest.Window) {
			largest = m
		}
	}
	if largest == nil {
		return out
	}
	out.Message = fmt.Sprintf("This model's maximum context length is %d tokens, and the prompt has ",
		largest.Window)
	if n, ok := prompt.Counted[largest.Name]; ok && n > largest.Window {
		out.Message += fmt.Sprintf("%d by its tokenizer.", n)
	} else {
		out.Message += fmt.Sprintf("at least %d: no tokenizer has tokens of more than %d bytes.",
			prompt.Least, longestToken)
	}
	out.Message += " Shorten it, or ask for a model with a larger window."
	return out
}
