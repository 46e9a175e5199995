package openai

import (
	"strings"

	"signalbox/internal/signal"
)

// Parse parses the body of a request of the given kind, with the function for that kind.
func Parse(api API, raw []byte, l Limits) (*Request, error) {
	switch api {
	case Chat:
		return ParseChat(raw, l)
	case Completion:
		return ParseCompletion(raw, l)
	case Response:
		return ParseResponse(raw, l)
	case Other:
	}
	return ParseBody(raw, l)
}

// Reparse parses an edited body of r. Values set by a translator, which are not in the body, are
// kept. The edit must not move messages.
func (r *Request) Reparse(raw []byte) (*Request, error) {
	out, err := Parse(r.API, raw, Accepted())
	if err != nil {
		return nil, err
	}
	out.Translated, out.ThinkingBudget, out.Places = r.Translated, r.ThinkingBudget, r.Places
	return out, nil
}

const (
	roleSystem    = "system"
	roleDeveloper = "developer"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleUnknown   = "unknown" // for an item of the Responses API of unknown origin
	roleTool      = "tool"
	roleFunction  = "function"
)

// The names that are read at each level, for the check of case variants.
//
//nolint:gochecknoglobals // constant tables
var (
	chatNames = []string{
		"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n",
		"best_of", "reasoning_effort", "chat_template", "chat_template_kwargs", "tools",
		"functions", "tool_choice", "function_call", "response_format", "prediction", "documents",
		"web_search_options", "structured_outputs", "guided_json", "guided_regex", "guided_choice",
		"guided_grammar", "signalbox",
	}
	messageNames = []string{
		"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "tools",
		"refusal", "reasoning", "reasoning_content", "thinking",
	}
	partNames          = []string{"type", "text", "refusal", "thinking", "reasoning", "image_url"}
	toolCallNames      = []string{"id", "type", "function", "custom"}
	functionNames      = []string{"name", "arguments", "input"}
	streamOptionsNames = []string{"include_usage"}
)

// maxKnownName is the length of the longest name in the tables above.
const maxKnownName = len("previous_input_messages")

// chatParser fills a Request while it walks the body. The parsers of other bodies share most of it.
type chatParser struct {
	scanner

	req   *Request
	parts int    // number of content parts and further texts so far
	text  []byte // the text of the content being read; reused

	// Role and origin of the texts being read: those of the message, or else the given ones.
	inMessage bool
	role      string
	origin    signal.Origin
}

func newParser(api API, raw []byte, l Limits) chatParser {
	return chatParser{scanner: newScanner(raw, l.orDefault()), req: &Request{API: api, Raw: raw, SystemIndex: -1}}
}

// ParseChat parses the body of a chat completion. Any error is an *Error with status 400 that names
// the position or the field. raw is retained and must not be modified afterwards, because strings
// of the request may alias it.
func ParseChat(raw []byte, l Limits) (*Request, error) {
	p := newParser(Chat, raw, l)
	defer p.release()
	err := p.body((*chatParser).field)
	if err == nil && len(p.req.Messages) == 0 {
		err = invalidAt("messages", "is required")
	}
	if err != nil {
		return nil, asError(err)
	}
	return p.req, nil
}

// body reads the top-level object; field reads the value of the member named p.name.
func (p *chatParser) body(field func(*chatParser) error) error {
	if kind := p.kind(); kind != '{' && kind != 0 {
		if err := p.skip(); err != nil {
			return err
		}
		return p.invalid("the body must be an object")
	}
	if err := p.open(); err != nil {
		return err
	}
	p.req.members = make([]member, 0, 16)
	for {
		name, more, err := p.member()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		p.kind() // moves on to the value
		start := p.start()
		p.as(roleTool, signal.OriginAny)
		if err := field(p); err != nil {
			return err
		}
		p.keepShort()
		p.req.members = append(p.req.members, member{name: name, value: Span{start, p.end()}})
	}
	if err := p.finish(); err != nil {
		return err
	}
	if p.req.Model == "" {
		return invalidAt("model", "is required")
	}
	return nil
}

// field reads the value of a member of the body.
func (p *chatParser) field() (err error) {
	r := p.req
	switch string(p.name) {
	case "model":
		r.Model, err = p.model()
	case "messages":
		return p.messages()
	case "stream":
		r.Stream, err = p.boolOrNull()
	case "stream_options":
		return p.streamOptions()
	case "max_tokens":
		r.MaxTokens, err = p.intOrNull()
	case "max_completion_tokens":
		r.MaxCompletionTokens, err = p.intOrNull()
	case "n", "best_of":
		_, err = p.intOrNull()
	case "reasoning_effort":
		r.ReasoningEffort, err = p.effort()
	default:
		return p.chatText()
	}
	return err
}

// chatText reads the value of a member of the body that may hold text for the model.
func (p *chatParser) chatText() (err error) {
	switch string(p.name) {
	case "chat_template_kwargs":
		p.req.ChatTemplateKwargs, err = p.templateArguments()
		return err
	case "tools", "functions":
		return p.tools()
	case "documents":
		return p.as(roleTool, signal.OriginData).harvest()
	case "prediction":
		return p.as(roleTool, signal.OriginUser).harvest()
	case "chat_template":
		return p.as(roleTool, signal.OriginInstructions).harvest()
	case "response_format", "tool_choice", "function_call", "web_search_options",
		"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar":
		return p.as(roleTool, signal.OriginInstructions).anything()
	case "signalbox":
		return p.extras()
	default:
		return p.otherField(chatNames)
	}
}

// effort reads the word for how much a model should reason. Some templates insert any word into the
// prompt.
func (p *chatParser) effort() (string, error) {
	effort, err := p.strOrNull()
	if err == nil {
		err = p.short([]byte(effort))
	}
	return effort, err
}

func (p *chatParser) model() (string, error) {
	model, err := p.str()
	if err == nil && model == "" {
		err = p.invalid("must not be empty")
	}
	return model, err
}

func (p *chatParser) streamOptions() error {
	return p.oneMember(streamOptionsNames, func() (err error) {
		p.req.IncludeUsage, err = p.boolOrNull()
		return err
	})
}

// oneMember reads an object, or null, of which only the one member in names matters.
func (p *chatParser) oneMember(names []string, read func() error) error {
	if p.null() {
		return nil
	}
	if p.kind() != '{' {
		return p.mistyped("an object or null")
	}
	return p.members(func() error {
		if string(p.name) == names[0] {
			return read()
		}
		return p.other(names)
	})
}

// templateArguments reads chat_template_kwargs and keeps its strings as text: a template may insert
// any of them into the prompt at an unknown position.
func (p *chatParser) templateArguments() (Span, error) {
	if p.null() {
		return Span{}, nil
	}
	if p.kind() != '{' {
		return Span{}, p.mistyped("an object or null")
	}
	start := p.start()
	err := p.as(roleTool, signal.OriginAny).harvest()
	return Span{start, p.end()}, err
}

// tools reads tool definitions, which chat templates insert into the prompt.
func (p *chatParser) tools() error {
	if p.null() {
		return nil
	}
	if p.kind() != '[' {
		return p.mistyped("a list or null")
	}
	p.as(roleTool, signal.OriginInstructions)
	r, start := p.req, p.start()
	first := len(r.loose)
	err := p.elements(func() error {
		r.HasTools = true
		return p.anything()
	})
	p.keepShort()
	r.toolsJSON, r.toolsText = r.toolsJSON+p.end()-start, r.toolsText+sizeOf(r.loose[first:])
	return err
}

func (p *chatParser) messages() error {
	if p.kind() != '[' {
		return p.mistyped("a list")
	}
	p.req.Messages = make([]Message, 0, min(8, p.limits.MaxMessages))
	if err := p.elements(p.message); err != nil {
		return err
	}
	if len(p.req.Messages) == 0 {
		return p.invalid("must not be empty")
	}
	return nil
}

func (p *chatParser) message() error {
	hasRole := false
	m, err := p.newMessage(func(m *Message) error {
		hasRole = hasRole || string(p.name) == "role"
		return p.messageField(m)
	})
	if err != nil {
		return err
	}
	if !hasRole {
		return p.invalidIn("role", "is required")
	}
	p.noteRole(m)
	return nil
}

// newMessage reads an object as a new message; field reads the value of each of its members.
func (p *chatParser) newMessage(field func(m *Message) error) (*Message, error) {
	if err := p.countMessage(); err != nil {
		return nil, err
	}
	if p.kind() != '{' {
		return nil, p.mistyped("an object")
	}
	start := p.start()
	p.req.Messages = append(p.req.Messages, Message{})
	m := &p.req.Messages[len(p.req.Messages)-1]
	p.inMessage = true
	err := p.members(func() error { return field(m) })
	p.keepShort()
	p.inMessage = false
	m.Span = Span{start, p.end()}
	return m, err
}

// noteRole processes the role of the newest message. The first message with instructions becomes
// the system message.
func (p *chatParser) noteRole(m *Message) {
	if p.req.SystemIndex < 0 && (m.Role == roleSystem || m.Role == roleDeveloper) {
		p.req.SystemIndex = len(p.req.Messages) - 1
	}
}

func (p *chatParser) messageField(m *Message) (err error) {
	switch string(p.name) {
	case "role":
		m.Role, err = p.oneRole()
	case "content":
		return p.content(m)
	case "name":
		m.Name, err = p.strOrNull()
	case "tool_calls":
		return p.toolCalls()
	case "function_call":
		return p.function()
	case "tool_call_id":
		return p.identifier()
	case "tools": // in a message of the developer
		return p.anything()
	case "refusal", "reasoning", "reasoning_content", "thinking":
		return p.harvest()
	default:
		return p.other(messageNames)
	}
	return err
}

// knownRoles names the roles, for errors.
const knownRoles = "must be one of system, developer, user, assistant, tool, function"

// oneRole reads a role. Roles that the API does not define are refused: templates insert a role
// into the prompt unchanged, and some treat an unknown role as a known one.
func (p *chatParser) oneRole() (string, error) {
	if p.kind() != '"' {
		return "", p.mistyped("a string")
	}
	quoted, err := p.dec.ReadValue()
	if err != nil {
		return "", err
	}
	switch string(quoted[1 : len(quoted)-1]) {
	case roleUser:
		return roleUser, nil
	case roleAssistant:
		return roleAssistant, nil
	case roleSystem:
		return roleSystem, nil
	case roleDeveloper:
		return roleDeveloper, nil
	case roleTool:
		return roleTool, nil
	case roleFunction:
		return roleFunction, nil
	}
	switch role := p.unquote(quoted); role { // a role spelled with escapes
	case roleUser, roleAssistant, roleSystem, roleDeveloper, roleTool, roleFunction:
		return role, nil
	}
	return "", p.invalid(knownRoles)
}

func (p *chatParser) content(m *Message) error {
	kind := p.kind()
	m.Content.Start = p.start()
	var err error
	switch kind {
	case '"':
		m.Text, err = p.str()
	case 'n':
		err = p.skip()
	case '[':
		err = p.contentParts(m)
	default:
		return p.mistyped("a string, a list of parts or null")
	}
	m.Content.End = p.end()
	return err
}

func (p *chatParser) contentParts(m *Message) error {
	p.text = p.text[:0]
	err := p.elements(func() error {
		if err := p.countPart(); err != nil {
			return err
		}
		part, err := p.part()
		m.HasImage = m.HasImage || part.image
		p.req.HasMedia = p.req.HasMedia || part.media
		return err
	})
	p.req.HasImages = p.req.HasImages || m.HasImage
	m.Text = string(p.text)
	return err
}

func (p *chatParser) countPart() error {
	if p.parts++; p.parts > p.limits.MaxParts {
		return invalidAt(p.req.API.list(), "holds more than %d parts", p.limits.MaxParts)
	}
	return nil
}

// toolCalls reads the tool calls of an earlier answer: the model sees their names and arguments as
// text.
func (p *chatParser) toolCalls() error {
	if p.null() {
		return nil
	}
	if p.kind() != '[' {
		return p.mistyped("a list or null")
	}
	return p.elements(p.toolCall)
}

func (p *chatParser) toolCall() error {
	if err := p.countPart(); err != nil {
		return err
	}
	if p.kind() != '{' {
		return p.mistyped("an object")
	}
	return p.members(func() error {
		switch string(p.name) {
		case "id":
			return p.identifier()
		case "type":
			return p.anything()
		case "function", "custom":
			return p.function()
		default:
			return p.other(toolCallNames)
		}
	})
}

func (p *chatParser) function() error {
	if p.null() {
		return nil
	}
	if p.kind() != '{' {
		return p.mistyped("an object or null")
	}
	return p.members(func() error {
		switch string(p.name) {
		case "name", "arguments", "input":
			return p.harvest()
		default:
			return p.other(functionNames)
		}
	})
}

// part is the kind of content in one element of a content list.
type part struct{ image, media bool }

// part reads one element of a content list and appends its texts to p.text. A bare string is a text
// part, as in vLLM.
func (p *chatParser) part() (part, error) {
	var out part
	switch p.kind() {
	case '"':
		return out, p.partText()
	case '{':
	default:
		return out, p.mistyped("an object")
	}
	err := p.members(func() error {
		switch name := string(p.name); {
		case name == "type":
			kind, err := p.strOrNull()
			out.see(kind)
			if err == nil {
				err = p.short([]byte(kind))
			}
			return err
		case isTextField(name):
			return p.partText()
		case isMedium(name):
			out.see(name)
			return p.medium()
		case name == mediaID:
			return p.mediaID()
		default:
			out.see(name)
			return p.other(partNames)
		}
	})
	return out, err
}

// mediaID is the member of a content part that identifies the media that vLLM keeps
// (vllm/entrypoints/chat_utils.py of 0.10.2 and later).
const mediaID = "uuid"

// mediaID reads the value of that member, and records its path.
func (p *chatParser) mediaID() error {
	if p.null() {
		return nil
	}
	err := p.named(p.anything)
	if err == nil && p.req.MediaID == "" {
		p.req.MediaID = param(p.dec.StackPointer())
	}
	return err
}

// partText reads a text of a part. Any other type is refused: text that the upstream may read must
// not remain unread here.
func (p *chatParser) partText() error {
	if p.null() {
		return nil
	}
	if p.kind() != '"' {
		return p.mistyped("a string")
	}
	mark := len(p.text)
	if mark > 0 {
		p.text = append(p.text, '\n')
	}
	at := len(p.text)
	var err error
	if p.text, err = p.appendStr(p.text); err == nil && len(p.text) == at {
		p.text = p.text[:mark]
	}
	return err
}

// isTextField reports whether a member of a content part is text that the model sees.
func isTextField(name string) bool {
	switch name {
	case "text", "refusal", "thinking", "reasoning":
		return true
	default:
		return false
	}
}

// see records what the type of a part, or the name of one of its members, says about its kind: vLLM
// uses either to determine the kind.
func (p *part) see(word string) {
	switch {
	case word == "image" || strings.HasPrefix(word, "image_") || word == "input_image":
		p.image, p.media = true, true
	case strings.HasPrefix(word, "audio"), strings.HasPrefix(word, "video"),
		word == "file", word == "input_audio", word == "input_file", word == "input_video":
		p.media = true
	}
}
