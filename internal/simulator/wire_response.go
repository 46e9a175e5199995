package simulator

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// responseBody is a response. Field order is that of vLLM's ResponsesResponse, the order of the
// API's own documentation.
type responseBody struct {
	ID                 string             `json:"id"`
	CreatedAt          int64              `json:"created_at"`
	IncompleteDetails  *incompleteDetails `json:"incomplete_details"`
	Instructions       *string            `json:"instructions"`
	Metadata           *struct{}          `json:"metadata"`
	Model              string             `json:"model"`
	Object             string             `json:"object"`
	Output             []responseItem     `json:"output"`
	ParallelToolCalls  bool               `json:"parallel_tool_calls"`
	ToolChoice         string             `json:"tool_choice"`
	Tools              []responseTool     `json:"tools"`
	MaxOutputTokens    *float64           `json:"max_output_tokens"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Status             string             `json:"status"`
	Usage              *responseUsage     `json:"usage"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responseUsage struct {
	InputTokens        int `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputTokens        int `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int `json:"total_tokens"`
}

// responseItem is an output item: a message, reasoning or a call.
type responseItem struct {
	ID        string          `json:"id"`
	Summary   *[]string       `json:"summary,omitzero"`
	Content   *[]responsePart `json:"content,omitzero"`
	Role      string          `json:"role,omitzero"`
	CallID    string          `json:"call_id,omitzero"`
	Name      string          `json:"name,omitzero"`
	Arguments *string         `json:"arguments,omitzero"`
	Status    string          `json:"status"`
	Type      string          `json:"type"`
}

type responsePart struct {
	Annotations *[]string `json:"annotations,omitzero"`
	Text        string    `json:"text"`
	Type        string    `json:"type"`
}

// responseFramer frames a response as the events of vLLM's simple stream, one item after the other:
// reasoning, the message, a call. It has one choice.
type responseFramer struct {
	*generation
	shape    responseBody
	sequence int
	items    int       // that were begun
	begun    bool      // the last of them is not ended
	kind     pieceKind // of that one
	quoted   string    // its id, in quotes
}

func newResponseFramer(g *generation, model string, req *responseRequest) *responseFramer {
	f := &responseFramer{generation: g, shape: responseBody{
		ID: g.id, CreatedAt: g.created, Instructions: req.Instructions, Model: model, Object: "response", Output: []responseItem{},
		ParallelToolCalls: true, ToolChoice: "auto", Tools: req.Tools, MaxOutputTokens: req.MaxOutputTokens, Status: "in_progress",
	}}
	if f.shape.Tools == nil {
		f.shape.Tools = []responseTool{}
	}
	return f
}

// body is the response as it is announced, or as it ends.
func (f *responseFramer) body(ended bool) *responseBody { //nolint:revive // a fact about the response
	out := f.shape
	if !ended {
		return &out
	}
	c := &f.choices[0]
	for _, kind := range [...]pieceKind{reasoningPiece, contentPiece, callPiece} {
		if c.has(kind) {
			out.Output = append(out.Output, f.item(kind, true))
		}
	}
	out.Status = "completed"
	if c.finish == finishLength {
		out.Status, out.IncompleteDetails = "incomplete", &incompleteDetails{"max_output_tokens"}
	}
	u := &responseUsage{InputTokens: f.promptTokens, OutputTokens: f.completionTokens()}
	for _, p := range c.pieces {
		if p.kind == reasoningPiece {
			u.OutputTokensDetails.ReasoningTokens++
		}
	}
	u.InputTokensDetails.CachedTokens = max(0, f.cached)
	u.TotalTokens = u.InputTokens + u.OutputTokens
	out.Usage = u
	return &out
}

// item is the output item of a kind, empty as it begins or whole as it ends.
func (f *responseFramer) item(kind pieceKind, ended bool) responseItem { //nolint:revive // a fact about the item
	c := &f.choices[0]
	out := responseItem{ID: f.itemID(kind), Status: "in_progress"}
	if ended {
		out.Status = "completed"
	}
	switch kind {
	case callPiece, argumentsPiece:
		arguments := ""
		if ended {
			arguments = c.text(argumentsPiece)
		}
		out.Type, out.CallID, out.Name, out.Arguments = "function_call", c.callID, c.text(callPiece), &arguments
	case reasoningPiece, contentPiece:
		parts := []responsePart{}
		if ended {
			parts = append(parts, f.part(kind, true))
		}
		out.Content = &parts
		if kind == reasoningPiece {
			out.Type, out.Summary = "reasoning", &[]string{}
		} else {
			out.Type, out.Role = "message", "assistant"
		}
	}
	return out
}

func (f *responseFramer) part(kind pieceKind, ended bool) responsePart { //nolint:revive // a fact about the part
	out := responsePart{Type: "output_text", Annotations: &[]string{}}
	if kind == reasoningPiece {
		out = responsePart{Type: "reasoning_text"}
	}
	if ended {
		out.Text = f.choices[0].text(kind)
	}
	return out
}

// itemID is made of the id of the response.
func (f *responseFramer) itemID(kind pieceKind) string {
	rest := strings.TrimPrefix(f.id, "resp_")
	switch kind {
	case contentPiece:
		return "msg_" + rest
	case reasoningPiece:
		return "rs_" + rest
	case callPiece, argumentsPiece:
	}
	return "fc_" + rest
}

// event appends an event with a member that is a whole value. before holds members in front of it
// and behind those after it, both with their commas.
func (f *responseFramer) event(dst []byte, kind, before, name string, value any, behind string) []byte {
	b, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic("simulator: unencodable event: " + err.Error())
	}
	dst = append(append(append(append(dst, "event: "...), kind...), "\ndata: {"...), before...)
	dst = append(append(append(appendQuoted(dst, name), ':'), b...), behind...)
	return f.seal(dst, kind)
}

// seal ends an event with what all of them have.
func (f *responseFramer) seal(dst []byte, kind string) []byte {
	dst = strconv.AppendInt(append(dst, `,"sequence_number":`...), int64(f.sequence), 10)
	f.sequence++
	return append(append(append(dst, `,"type":"`...), kind...), "\"}\n\n"...)
}

func (f *responseFramer) outputIndex() string { return `,"output_index":` + strconv.Itoa(f.items-1) }

// at is where the open item's text stands, with a comma behind.
func (f *responseFramer) at() string {
	return `"content_index":0,"item_id":` + f.quoted + f.outputIndex() + ","
}

// partName is the name of the events about a part of the open item.
func (f *responseFramer) partName(what string) string {
	if f.kind == reasoningPiece {
		return "response.reasoning_part." + what
	}
	return "response.content_part." + what
}

func (f *responseFramer) openItem(dst []byte, kind pieceKind) []byte {
	f.items, f.begun, f.kind, f.quoted = f.items+1, true, kind, string(appendQuoted(nil, f.itemID(kind)))
	dst = f.event(dst, "response.output_item.added", "", "item", f.item(kind, false), f.outputIndex())
	if kind == callPiece {
		return dst
	}
	return f.event(dst, f.partName("added"), f.at(), "part", f.part(kind, false), "")
}

func (f *responseFramer) closeItem(dst []byte) []byte {
	if !f.begun {
		return dst
	}
	f.begun = false
	c := &f.choices[0]
	switch f.kind {
	case callPiece, argumentsPiece:
		dst = f.event(dst, "response.function_call_arguments.done", "", "arguments", c.text(argumentsPiece), `,"item_id":`+f.quoted+f.outputIndex())
	case reasoningPiece:
		dst = f.event(dst, "response.reasoning_text.done", f.at(), "text", c.text(f.kind), "")
		dst = f.event(dst, f.partName("done"), f.at(), "part", f.part(f.kind, true), "")
	case contentPiece:
		dst = f.event(dst, "response.output_text.done", f.at()+`"logprobs":[],`, "text", c.text(f.kind), "")
		dst = f.event(dst, f.partName("done"), f.at(), "part", f.part(f.kind, true), "")
	}
	return f.event(dst, "response.output_item.done", "", "item", f.item(f.kind, true), f.outputIndex())
}

func (f *responseFramer) open(dst []byte, _ int) []byte {
	dst = f.event(dst, "response.created", "", "response", f.body(false), "")
	return f.event(dst, "response.in_progress", "", "response", f.body(false), "")
}

func (f *responseFramer) token(dst []byte, _, k int, _ end) []byte {
	p := f.choices[0].pieces[k]
	if kind := p.kind; !f.begun || kind != f.kind && kind != argumentsPiece {
		dst = f.openItem(f.closeItem(dst), kind)
	}
	kind := "response.output_text.delta"
	switch p.kind {
	case callPiece:
		return dst // the item has told the name
	case reasoningPiece:
		kind = "response.reasoning_text.delta"
	case argumentsPiece:
		kind = "response.function_call_arguments.delta"
	case contentPiece:
	}
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {"...)
	if p.kind != argumentsPiece {
		dst = append(dst, `"content_index":0,`...)
	}
	dst = appendQuoted(append(dst, `"delta":`...), p.text)
	dst = append(append(dst, `,"item_id":`...), f.quoted...)
	if p.kind == contentPiece {
		dst = append(dst, `,"logprobs":[]`...)
	}
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(f.items-1), 10)
	return f.seal(dst, kind)
}

// close implements framer: how the only choice ended is told at the end of all.
func (*responseFramer) close(dst []byte, _ int) []byte { return dst }

func (f *responseFramer) end(dst []byte) (out []byte, more bool) {
	if f.begun {
		return f.closeItem(dst), true
	}
	return f.event(dst, "response.completed", "", "response", f.body(true), ""), false
}
