package openai

import (
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// The names that ParseResponse reads, for the check of case variants.
//
//nolint:gochecknoglobals // constant tables
var (
	responseNames = []string{
		"model", "input", "instructions", "max_output_tokens", "reasoning", "stream",
		"stream_options", "text", "tools", "tool_choice", "prompt", "conversation",
		"previous_response_id", "previous_response", "previous_input_messages", "chat_template_kwargs", "signalbox",
	}
	responseItemNames = []string{
		"type", "role", "content", "output", "name", "arguments", "input", "summary", "code",
		"action", "queries", "results", "result", "outputs", "tools", "error", "call_id",
	}
	promptNames    = []string{"id", "version", "variables"}
	reasoningNames = []string{"effort"}
)

// ParseResponse parses the body of a request to the Responses API. Each item of the input is a
// message. An item without a role has the role that its type implies: assistant for calls and
// reasoning, tool for results of calls, whose output is the message's content. An input that is one
// string is one message. Instructions are separate. max_output_tokens is stored in
// MaxCompletionTokens, reasoning.effort in ReasoningEffort. IncludeUsage is true, because the last
// event of a stream always reports the usage. Data that the server has stored, referenced by
// previous_response_id, a conversation or an item reference, is not read. A Patch may edit fields
// and the texts of messages and delete messages, but insert none. Errors and the treatment of raw
// are as for ParseChat.
func ParseResponse(raw []byte, l Limits) (*Request, error) {
	p := newParser(Response, raw, l)
	defer p.release()
	p.req.IncludeUsage = true
	err := p.body((*chatParser).responseField)
	if err == nil && !p.hasInput() {
		err = invalidAt("input", "is required")
	}
	if err != nil {
		return nil, asError(err)
	}
	return p.req, nil
}

// hasInput reports whether the request has any input.
func (p *chatParser) hasInput() bool {
	return slices.ContainsFunc([]string{
		"input", "prompt", "previous_response_id", "previous_response", "previous_input_messages", "conversation",
	}, func(name string) bool {
		v := p.req.Field(name)
		return v != nil && string(v) != "null"
	})
}

func (p *chatParser) responseField() (err error) {
	r := p.req
	switch string(p.name) {
	case "model":
		r.Model, err = p.model()
	case "input":
		return p.responseInput()
	case "instructions":
		return p.instructions()
	case "max_output_tokens":
		r.MaxCompletionTokens, err = p.intOrNull()
	case "reasoning":
		return p.reasoning()
	case "stream":
		r.Stream, err = p.boolOrNull()
	case "stream_options":
		return p.objectOrNull()
	case "text", "tool_choice":
		return p.as(roleTool, signal.OriginInstructions).anything()
	case "tools":
		return p.tools()
	case "prompt":
		return p.storedPrompt()
	case "previous_response": // vLLM: an earlier turn, sent along
		return p.as(roleTool, signal.OriginModel).texts()
	case "previous_input_messages": // vLLM: earlier turns of unknown origin
		return p.as(roleTool, signal.OriginAny).texts()
	case "chat_template_kwargs":
		r.ChatTemplateKwargs, err = p.templateArguments()
	case "signalbox":
		return p.extras()
	default:
		return p.otherField(responseNames)
	}
	return err
}

// storedPrompt reads the name of a prompt stored on the server, and its variables, which are text
// of the user.
func (p *chatParser) storedPrompt() error {
	p.as(roleUser, signal.OriginUser)
	if p.kind() != '{' {
		return p.texts()
	}
	return p.members(func() error {
		switch name := string(p.name); {
		case name == "variables":
			return p.texts()
		case exempt(inPrompt, name):
			return p.skip()
		default:
			return p.other(promptNames)
		}
	})
}

func (p *chatParser) objectOrNull() error {
	if kind := p.kind(); kind != '{' && kind != 'n' {
		return p.mistyped("an object or null")
	}
	return p.anything()
}

func (p *chatParser) instructions() (err error) {
	at := Span{Start: p.start()}
	p.req.Instructions, err = p.strOrNull()
	at.End = p.end()
	p.req.instructions = at
	return err
}

func (p *chatParser) reasoning() error {
	return p.oneMember(reasoningNames, func() (err error) {
		p.req.ReasoningEffort, err = p.effort()
		return err
	})
}

// responseInput reads a text or a list of items.
func (p *chatParser) responseInput() error {
	switch p.kind() {
	case '"':
		return p.onePrompt()
	case 'n':
		return p.skip()
	case '[':
	default:
		return p.mistyped("a string or a list of items")
	}
	return p.elements(p.responseItem)
}

// responseItem reads a message, a call, the result of a call, or any other item of an input.
func (p *chatParser) responseItem() error {
	kind, result := "", Span{}     // result: the span of its texts
	hasID, hasMore := false, false // hasMore: a member besides id and type
	m, err := p.newMessage(func(m *Message) (err error) {
		hasMore = hasMore || string(p.name) != "id" && string(p.name) != "type"
		switch string(p.name) {
		case "type":
			if kind, err = p.strOrNull(); err == nil {
				err = p.short([]byte(kind))
			}
			return err
		case "result":
			result.Start = len(p.req.texts)
			err = p.texts()
			result.End = len(p.req.texts)
			return err
		case "id":
			hasID = p.kind() == '"'
		}
		return p.responseItemField(m)
	})
	if err != nil {
		return err
	}
	if kind == "image_generation_call" { // the result is an image
		p.req.texts = slices.Delete(p.req.texts, result.Start, result.End)
	}
	// The type of a reference may be omitted, and a lenient server may recognise one whatever other
	// members it has; the author of these is unknown.
	untyped := kind == "" && hasID && m.Role == "" && !m.Content.Present()
	p.req.refers = p.req.refers || untyped || kind == itemReference
	switch {
	case m.Role != "":
	case untyped && hasMore:
		m.Role = roleUnknown
	case untyped:
		m.Role = roleAssistant
	default:
		m.Role = impliedRole(kind)
	}
	p.noteRole(m)
	return nil
}

// itemReference is the type of an item that the server stores; the input only contains its id.
const itemReference = "item_reference"

func (p *chatParser) responseItemField(m *Message) (err error) {
	switch name := string(p.name); name {
	case "role":
		m.Role, err = p.oneRole()
	case "content", "output":
		if kind := p.kind(); m.Content.Present() || kind == '{' {
			return p.texts()
		}
		return p.content(m)
	case "name", "arguments", "input", "summary", "code", "action", "queries", "results", "outputs",
		"error":
		return p.texts()
	case "call_id":
		return p.identifier()
	case "tools":
		return p.anything()
	default:
		if exempt(inItem, name) {
			return p.skip()
		}
		return p.other(responseItemNames)
	}
	return err
}

// impliedRole returns the role of an item without one. The author of an item of an unknown kind is
// unknown, even if the kind is named a call.
func impliedRole(kind string) string {
	switch kind {
	case "", "message", "mcp_approval_response":
		return roleUser
	case "mcp_list_tools",
		// The item of the call contains the result of a tool run by the server.
		"mcp_call", "file_search_call", "code_interpreter_call", "web_search_call":
		return roleTool
	case "function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call",
		"apply_patch_call", "image_generation_call", "tool_search_call",
		"reasoning", "mcp_approval_request", itemReference:
		return roleAssistant
	}
	if strings.HasSuffix(kind, "_output") {
		return roleTool
	}
	return roleUnknown
}
