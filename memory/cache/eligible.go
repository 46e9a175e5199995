package cache

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"signalbox/internal/openai"
	"signalbox/memory/cache/question"
)

// Reason is why an answer is neither stored nor returned.
type Reason uint8

// The reasons.
const (
	Eligible    Reason = iota // no reason
	Unknown                   // the endpoint has no cacheable answers, or the body cannot be read
	Temperature               // the temperature asks for varying answers
	Choices                   // more than one answer is requested
	Logprobs                  // token probabilities are requested
	Media                     // an image, audio or file is part of the prompt
	ToolResult                // the prompt contains a tool result
	ServerTool                // the server itself looks up data for the answer
	State                     // the answer depends on, or becomes, state stored elsewhere
	Opaque                    // the prompt is given as token ids
	Explain                   // the response must contain the decision
	Seed                      // the client chose a seed; only an equal request has an equal answer
	NoQuestion                // the last turn is not a short text of the user
)

//nolint:gochecknoglobals // constant table
var reasons = [...]string{
	"eligible", "unknown", "temperature", "choices", "logprobs", "media", "tool_result", "server_tool", "state", "opaque", "explain", "seed",
	"no_question",
}

// String returns the name in lower case, suitable as a metric label.
func (r Reason) String() string {
	if int(r) < len(reasons) {
		return reasons[r]
	}
	return "unknown"
}

// Identifier computes identities according to its settings. The zero value refuses every
// temperature except 0; use DefaultIdentifier.
type Identifier struct {
	// MaxTemperature is up to which temperature answers are kept, in [0,2]. A request that names
	// none counts as fit. Default 0.3.
	MaxTemperature float64 `yaml:"max_temperature"`
	// Literal leaves Partition and Question out, which cost as much again as Key.
	Literal bool `yaml:"-"`
}

// DefaultIdentifier returns the defaults.
func DefaultIdentifier() Identifier { return Identifier{MaxTemperature: 0.3} }

var errNoObject = errors.New("no object")

// Identify computes the identity of a request. It neither retains nor modifies its arguments.
func (n Identifier) Identify(req *openai.Request, scope *Scope) Identity {
	id := Identity{Exact: n.exact(req)}
	if id.Exact == Eligible {
		var err error
		if id.Key, err = keyOf("answer", req, scope, openai.Span{}); err != nil {
			id.Exact = Unknown
		}
	}
	if id.Similar = id.Exact; id.Exact != Eligible {
		return id
	}
	if n.Literal {
		id.Similar = NoQuestion
		return id
	}
	m := lastQuestion(req)
	switch {
	case m == nil:
		id.Similar = NoQuestion
		return id
	case set(req.Field("seed")):
		id.Similar = Seed
		return id
	}
	var err error
	if id.Partition, err = keyOf("questions", req, scope, m.Content); err != nil {
		id.Similar, id.Partition = Unknown, Key{}
		return id
	}
	id.Question = m.Text
	return id
}

// exact returns why the answer to a request must not be stored.
func (n Identifier) exact(req *openai.Request) Reason {
	switch {
	case req.API == openai.Other:
		return Unknown
	case req.OpaquePrompt:
		return Opaque
	case req.HasMedia || req.HasImages:
		return Media
	case req.Extras.Explain:
		return Explain
	case stateful(req):
		return State
	case !n.steady(req.Field("temperature")):
		return Temperature
	case many(req.Field("n")) || many(req.Field("best_of")):
		return Choices
	case set(req.Field("logprobs")) || set(req.Field("top_logprobs")) || set(req.Field("prompt_logprobs")):
		return Logprobs
	case serverTools(req):
		return ServerTool
	}
	for i := range req.Messages {
		if r := req.Messages[i].Role; r == "tool" || r == "function" {
			return ToolResult
		}
	}
	return Eligible
}

// stateful reports whether an answer depends on state stored by the server, or will be stored there
// under a name.
func stateful(req *openai.Request) bool {
	for _, name := range [...]string{"previous_response_id", "previous_response", "conversation", "background", "kv_transfer_params"} {
		if set(req.Field(name)) {
			return true
		}
	}
	return req.Continues() || req.Extras.SaveContext != nil || req.API == openai.Response && set(req.Field("prompt"))
}

// serverTools reports whether the server looks up data itself. Functions of the client do not
// count.
func serverTools(req *openai.Request) bool {
	if set(req.Field("web_search_options")) {
		return true
	}
	if req.API != openai.Response || !req.HasTools {
		return false
	}
	type tool struct {
		Type string `json:"type"`
	}
	var tools []tool
	if json.Unmarshal(req.Field("tools"), &tools) != nil {
		return true
	}
	return slices.ContainsFunc(tools, func(t tool) bool { return t.Type != "function" && t.Type != "custom" })
}

// set reports whether a value is present and neither null nor false nor empty.
func set(value []byte) bool {
	switch string(bytes.TrimSpace(value)) {
	case "", "null", "false", `""`, "[]", "{}":
		return false
	}
	return true
}

// steady reports whether a temperature is low enough, or absent.
func (n Identifier) steady(value []byte) bool {
	if s := bytes.TrimSpace(value); len(s) > 0 && string(s) != "null" {
		t, err := strconv.ParseFloat(string(s), 64)
		return err == nil && t <= n.MaxTemperature
	}
	return true
}

// many reports whether a number is present and not 1.
func many(value []byte) bool {
	s := bytes.TrimSpace(value)
	if len(s) == 0 || string(s) == "null" {
		return false
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return err != nil || f != 1
}

// lastQuestion returns the last message if it is a text of the user that package question can
// compare, else nil.
func lastQuestion(req *openai.Request) *openai.Message {
	if req.API != openai.Chat && req.API != openai.Response || len(req.Messages) == 0 {
		return nil
	}
	m := &req.Messages[len(req.Messages)-1]
	if m.Role != "user" || m.Text == "" || len(m.Text) > question.MaxBytes || !m.Content.Present() ||
		!textAlone(req.Raw[m.Content.Start:m.Content.End]) {
		return nil
	}
	return m
}

// textAlone reports whether a content is a text, or a list of text parts without further members
// that an answer may depend on: those would be in neither the partition nor the question.
func textAlone(content []byte) bool {
	if content[0] == '"' {
		return true
	}
	var parts []map[string]json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		return false
	}
	return !slices.ContainsFunc(parts, func(part map[string]json.RawMessage) bool {
		for name, value := range part {
			switch name {
			case "type":
				if kind := string(value); kind != `"text"` && kind != `"input_text"` {
					return true
				}
			case "text", "cache_control":
			default:
				return true
			}
		}
		return part["text"] == nil
	})
}
