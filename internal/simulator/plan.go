package simulator

import (
	"cmp"
	"net/http"
	"time"

	"signalbox/internal/simulator/kv"
)

// usageMode defines when a stream reports token counts.
type usageMode uint8

const (
	usageNever usageMode = iota
	usageLast
	usageEvery
)

// generation is the response to a request, complete before any of it is sent.
type generation struct {
	id           string
	created      int64 // Unix seconds
	promptTokens int
	choices      []choice
	prompts      [][]uint32 // token ids; choices use them in turn, equally many each. Only for a server with KV
	seed         kv.Seed
	priority     int
	remote       *kv.Tier // another server's main memory to take blocks from, or nil
	cached       int      // prompt tokens that were in the cache; -1 if not known, or not known yet
	stream       bool
	usage        usageMode
	logprobs     bool
	tpot         time.Duration // of a scripted answer; 0 means the server's
	preface      string        // the value of PrefaceHeader
}

// completionTokens returns the tokens of all choices.
func (g *generation) completionTokens() int {
	n := 0
	for i := range g.choices {
		n += len(g.choices[i].pieces)
	}
	return n
}

// steps returns the number of tokens of the longest choice: all choices advance together.
func (g *generation) steps() int {
	n := 0
	for i := range g.choices {
		n = max(n, len(g.choices[i].pieces))
	}
	return n
}

// newGeneration starts the response to r. Like vLLM it takes the id from X-Request-Id if the client
// sent one.
func (s *Server) newGeneration(r *http.Request, prefix string, p *sampling) *generation {
	id := append(make([]byte, 0, len(prefix)+32), prefix...)
	if given := r.Header.Get("X-Request-Id"); given != "" {
		id = append(id, given...)
	} else {
		id = appendHexID(id, s.opt.Seed, s.requests.Add(1))
	}
	g := &generation{id: string(id), created: time.Now().Unix(), stream: p.Stream, cached: -1}
	// In vLLM's StreamOptions, include_usage defaults to true if the object is present.
	if so := p.StreamOptions; so != nil && (so.IncludeUsage == nil || *so.IncludeUsage) {
		g.usage = usageLast
		if so.ContinuousUsageStats {
			g.usage = usageEvery
		}
	}
	return g
}

// planChat checks a chat request and generates its response. A non-nil error is a *requestError.
func (s *Server) planChat(r *http.Request, req *chatRequest, prefix string) (*generation, error) {
	if len(req.Messages) == 0 {
		return nil, badRequest("messages", "messages must not be empty")
	}
	var system, question string
	var ids []uint32
	var promptTokens int
	if s.engine == nil {
		promptTokens = chatTokens(req.Messages, req.Tools)
	} else {
		ids = chatIDs(req.Messages, req.Tools)
		promptTokens = len(ids)
	}
	for i := range req.Messages {
		switch m := &req.Messages[i]; m.Role {
		case "system", "developer":
			system = cmp.Or(system, m.Content.text)
		case "user":
			question = m.Content.describe()
		}
	}
	sentMax := req.MaxCompletionTokens
	if sentMax == nil {
		sentMax = req.MaxTokens
	}
	l, err := s.opt.check(&req.sampling, sentMax, promptSize{"messages", promptTokens}, -1)
	if err != nil {
		return nil, err
	}
	called, err := s.called(req, question)
	if err != nil {
		return nil, err
	}
	form, formed, err := req.formed(opening)
	if err != nil {
		return nil, err
	}
	g := s.newGeneration(r, prefix, &req.sampling)
	g.promptTokens, g.logprobs = promptTokens, req.Logprobs
	s.share(g, &req.sampling, req.ReasoningEffort, ids)
	g.choices = make([]choice, l.choices)
	why := readReasoning(req)
	seed := s.fillerSeed(&req.sampling, question)
	g.preface = preface(s.opt.Model, question, system, why.echo, l.asked)
	for i := range g.choices {
		c := &g.choices[i]
		c.finish = finishStop
		c.pieces = make([]piece, 0, max(2*usualTokens, l.minTokens))
		if why.wanted {
			c.add(reasoningPiece, why.think(s.opt.Model, question))
		}
		switch {
		case called != nil:
			c.call(called, req.ToolChoice.mode, g.id, i)
		case formed:
			c.add(contentPiece, form)
		default:
			c.write(mix(seed+uint64(i)), l.minTokens, req.Stop)
		}
		c.cut(l.maxTokens)
	}
	s.recite(g, question, req.Stop, l.maxTokens)
	return g, nil
}

// planCompletion checks a text completion request and generates its response. A non-nil error is a
// *requestError.
func (s *Server) planCompletion(r *http.Request, req *completionRequest) (*generation, error) {
	if len(req.Prompt) == 0 || req.Prompt[0].tokens == 0 {
		return nil, badRequest("prompt", "prompt must be provided and not empty")
	}
	if len(req.Prompt) > maxChoices {
		return nil, badRequest("prompt", "prompt list length %d exceeds the maximum of %d", len(req.Prompt), maxChoices)
	}
	longest, sum := 0, 0
	for _, p := range req.Prompt {
		longest, sum = max(longest, p.tokens), sum+p.tokens
	}
	// vLLM's CompletionRequest defaults max_tokens to 16, as OpenAI's did.
	l, err := s.opt.check(&req.sampling, req.MaxTokens, promptSize{"prompt", longest}, 16)
	if err != nil {
		return nil, err
	}
	if l.choices*len(req.Prompt) > maxChoices {
		return nil, badRequest("n", "n times the number of prompts must be at most %d", maxChoices)
	}
	form, formed, err := req.formed(opening)
	if err != nil {
		return nil, err
	}
	g := s.newGeneration(r, "cmpl-", &req.sampling)
	g.promptTokens = sum
	g.preface = preface(s.opt.Model, req.Prompt[0].text, "", noReasoning, l.asked)
	if s.engine != nil {
		ids := make([][]uint32, len(req.Prompt))
		for i := range req.Prompt {
			ids[i] = req.Prompt[i].appendIDs(make([]uint32, 0, req.Prompt[i].tokens))
		}
		s.share(g, &req.sampling, "", ids...)
	}
	g.choices = make([]choice, 0, l.choices*len(req.Prompt))
	for _, p := range req.Prompt {
		seed := s.fillerSeed(&req.sampling, p.text)
		for i := range l.choices {
			c := choice{finish: finishStop}
			if formed {
				c.add(contentPiece, form)
			} else {
				c.write(mix(seed+uint64(i)), l.minTokens, req.Stop)
			}
			c.cut(l.maxTokens)
			g.choices = append(g.choices, c)
		}
	}
	s.recite(g, req.Prompt[len(req.Prompt)-1].text, req.Stop, l.maxTokens)
	return g, nil
}

// write generates the text of a response: the opening, then filler.
func (c *choice) write(seed uint64, minTokens int, stops stopStrings) {
	c.add(contentPiece, opening)
	before := len(c.pieces)
	c.fill(seed, before+1)
	c.fill(seed+1, max(usualTokens, minTokens))
	if len(stops) == 0 {
		return
	}
	if kept, matched := applyStop(c.text(contentPiece), stops); matched != "" {
		c.drop(contentPiece)
		c.stopReason = matched
		c.add(contentPiece, kept)
	}
}

// called returns the tool that the response calls: the one that the request forces, or else, if the
// model may choose, the first whose name is in the question. Results of tools, and scripted
// questions, are answered with text.
func (s *Server) called(req *chatRequest, question string) (*tool, error) {
	forced, err := req.ToolChoice.pick(req.Tools)
	if forced != nil || err != nil || req.ToolChoice.mode == "none" {
		return forced, err
	}
	last := req.Messages[len(req.Messages)-1].Role
	if last != "user" || scripted(s.opt.Answers, question) != nil {
		return nil, nil
	}
	for i := range req.Tools {
		if names(question, req.Tools[i].Function.Name) {
			return &req.Tools[i], nil
		}
	}
	return nil, nil
}

// call generates a tool call. vLLM finishes with "tool_calls" if the model chose the tool and with
// "stop" if the request named it (chat_completion/serving.py).
func (c *choice) call(t *tool, mode, id string, index int) {
	c.callID = string(appendHexID([]byte("chatcmpl-tool-"), hashString(uint64(index), id), 0))
	c.pieces = append(c.pieces, piece{callPiece, t.Function.Name})
	c.add(argumentsPiece, arguments(t.Function.Parameters))
	if mode != "named" {
		c.finish = finishToolCalls
	}
}

// fillerSeed makes filler depend on the request's seed, else the server's, and on the question: the
// same question has the same response, independent of earlier requests.
func (s *Server) fillerSeed(p *sampling, question string) uint64 {
	seed := s.opt.Seed
	if p.Seed != nil {
		seed = mix(uint64(int64(*p.Seed)))
	}
	return hashString(seed, question)
}

// eachPromptToken calls yield with every token of a rendered chat: the texts of the tool
// definitions; four template tokens per message and, if wanted, three to open the response, which
// is the overhead of ChatML; and imageTokens placeholders for a part that is not text.
func eachPromptToken(messages []message, tools []tool, open bool, yield func(token string)) { //nolint:revive // a parameter of vLLM's own API
	each := func(text string) { eachToken(text, yield) }
	for i := range tools {
		f := &tools[i].Function
		each(f.Name)
		each(f.Description)
		each(string(f.Parameters))
	}
	for i := range messages {
		m := &messages[i]
		yield("<|im_start|>")
		yield(m.Role)
		yield("\n")
		for range imageTokens * m.Content.other {
			yield("<|image_pad|>")
		}
		each(m.Content.text)
		yield("<|im_end|>")
	}
	if open {
		yield("<|im_start|>")
		yield("assistant")
		yield("\n")
	}
}

// chatTokens counts a rendered chat.
func chatTokens(messages []message, tools []tool) int {
	n := 0
	eachPromptToken(messages, tools, true, func(string) { n++ })
	return n
}

// chatIDs returns the token ids of a rendered chat.
func chatIDs(messages []message, tools []tool) []uint32 {
	size := 0
	for i := range messages {
		size += len(messages[i].Content.text)/4 + 8
	}
	ids := make([]uint32, 0, size)
	eachPromptToken(messages, tools, true, func(token string) { ids = append(ids, uint32(tokenID(token))) })
	return ids
}
