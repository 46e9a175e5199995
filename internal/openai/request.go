package openai

import (
	"cmp"
	"math"
	"strings"
	"time"

	"signalbox/internal/signal"
)

// Span is a half-open range of byte offsets in Request.Raw. The zero Span means absent: no value of
// a body starts at offset 0.
type Span struct{ Start, End int }

// Present reports whether the span refers to anything.
func (s Span) Present() bool { return s.End > s.Start }

// Limits restricts the contents of one body, so that a small body cannot cost much memory. A field
// that is zero or negative is replaced by its value in DefaultLimits.
type Limits struct {
	MaxMessages int // elements of messages
	MaxDepth    int // nested objects and arrays; the body itself is 1
	MaxParts    int // content parts, tool calls and other texts outside plain contents, in the whole body
	MaxMembers  int // names in one object
	MaxContexts int // entries of signalbox.context
	MaxFacts    int // entries of signalbox.facts
}

// DefaultLimits returns limits far above what clients send. The check for duplicate names costs
// about 180 bytes per name, so MaxMembers also limits memory; the largest object of the API is
// logit_bias.
func DefaultLimits() Limits {
	return Limits{
		MaxMessages: 16_384,
		MaxDepth:    128,
		MaxParts:    65_536,
		MaxMembers:  65_536,
		MaxContexts: 8,
		MaxFacts:    512,
	}
}

// Accepted returns limits for requests that have been accepted before: none.
func Accepted() Limits {
	const none = math.MaxInt32
	return Limits{
		MaxMessages: none, MaxDepth: none, MaxParts: none, MaxMembers: none, MaxContexts: none, MaxFacts: none,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	return Limits{
		MaxMessages: cmp.Or(max(l.MaxMessages, 0), d.MaxMessages),
		MaxDepth:    cmp.Or(max(l.MaxDepth, 0), d.MaxDepth),
		MaxParts:    cmp.Or(max(l.MaxParts, 0), d.MaxParts),
		MaxMembers:  cmp.Or(max(l.MaxMembers, 0), d.MaxMembers),
		MaxContexts: cmp.Or(max(l.MaxContexts, 0), d.MaxContexts),
		MaxFacts:    cmp.Or(max(l.MaxFacts, 0), d.MaxFacts),
	}
}

// API is the kind of a request.
type API uint8

const (
	// Chat is a chat completion.
	Chat API = iota
	// Completion is a completion other than a chat.
	Completion
	// Response is a request to the Responses API.
	Response
	// Other is any other request that names a model, such as embeddings.
	Other
)

// String returns the name in lower case.
func (a API) String() string {
	names := [...]string{Chat: "chat", Completion: "completion", Response: "response", Other: "other"}
	if int(a) >= len(names) {
		return "unknown"
	}
	return names[a]
}

// list returns the field that holds the messages.
func (a API) list() string {
	switch a {
	case Chat:
		return "messages"
	case Completion:
		return "prompt"
	case Response, Other:
	}
	return "input"
}

// PromptField returns the field of the body that holds the prompt: messages, prompt or input.
func (r *Request) PromptField() string { return r.API.list() }

// Request is the typed view of a request body. It is immutable after parsing and safe for
// concurrent use. Raw must never be written to, even after the request has ended: a text of at
// least 16 KiB that makes up at least half of Raw shares its memory. All other strings are copies.
type Request struct {
	API API
	Raw []byte // the body as received; the parser neither copies nor changes it

	Model        string // never empty
	Stream       bool
	IncludeUsage bool // stream_options.include_usage; always true for a Response
	Echo         bool // the answer repeats the prompt; only for a Completion

	Messages     []Message // at least one after ParseChat, none after ParseBody
	SystemIndex  int       // index of the first message of role system or developer, or -1
	Instructions string    // of a Response; placed before the messages, as text of the system

	MaxTokens *int64 // nil if absent or null; see AnswerLimit
	// nil if absent or null; max_output_tokens after ParseResponse and ParseBody
	MaxCompletionTokens *int64
	ReasoningEffort     string // empty if absent or null; reasoning.effort of a Response
	// the value of chat_template_kwargs, an object; zero if absent or null
	ChatTemplateKwargs Span

	HasTools  bool // tools or functions is a non-empty list
	HasImages bool // some content part is an image
	HasMedia  bool // some content part holds more than text: image, audio, video or file

	// a prompt is given as token ids or vectors, which cannot be read here; never after ParseChat
	OpaquePrompt bool

	TokenIDs   int // number of token ids in the prompts of a Completion
	TokenLists int // number of its prompts that are lists of token ids

	// MediaID is the path of the first uuid of a content part, such as messages[0].content[1].uuid,
	// empty if no part has one. vLLM stores images and recordings under these names, regardless of
	// the sender.
	MediaID string

	// Translated means that the body was translated from another API, so that the client knows
	// neither its members nor the words that a model accepts. The translator sets it before any
	// other use.
	Translated bool
	// ThinkingBudget is the number of tokens for reasoning that the client of a translated request
	// specified, or 0. The translator sets it.
	ThinkingBudget int64
	// Places holds, for each of Messages, its place in the original of a translated request; nil if
	// the client sent Messages itself. The translator sets it.
	Places []Place

	Extras Extras

	members []member // of the top-level object, in order
	texts   []text   // texts of messages outside their content, in order
	loose   []text   // texts outside messages, in order

	instructions Span // the value of instructions; zero if absent
	toolsJSON    int  // size of tools and functions in bytes of JSON
	toolsText    int  // number of bytes in loose that come from them
	ids          int  // number of token ids in the input of an API without a parser of its own
	refers       bool // an item of the input of a Response refers to one that the server keeps

	form    bool     // the body is a form, not JSON
	parts   []string // names of the fields of a form
	modelAt Span     // the value of the field model of a form
}

// AnswerLimit returns the client's limit for one answer in tokens, at least 1, or 0 and false if
// there is none. Numbers below 1 are ignored: some clients send -1 or 0 for no limit, as llama.cpp
// interprets -1. If a completion repeats its prompt, 0 requests only the prompt, for which vLLM
// generates one token. Of two limits the larger applies: vLLM and SGLang use max_completion_tokens
// unless it is 0, older servers only know max_tokens, and OpenAI refuses both together. The
// upstream checks the range.
func (r *Request) AnswerLimit() (tokens int64, ok bool) {
	for _, own := range []*int64{r.MaxTokens, r.MaxCompletionTokens} {
		if own != nil {
			tokens = max(tokens, *own)
		}
	}
	if tokens == 0 && r.Echo && r.MaxTokens != nil && *r.MaxTokens == 0 {
		tokens = 1
	}
	return tokens, tokens > 0
}

// LimitField returns the name of the field with the AnswerLimit; empty without one.
func (r *Request) LimitField() string {
	limit, ok := r.AnswerLimit()
	switch {
	case !ok:
		return ""
	case r.API == Response:
		return FieldMaxOutputTokens
	case r.MaxCompletionTokens != nil && *r.MaxCompletionTokens == limit:
		return FieldMaxCompletionTokens
	}
	return FieldMaxTokens
}

// Form reports whether the body is a form instead of JSON; a Patch can then only edit the model.
func (r *Request) Form() bool { return r.form }

// Message is one element of messages.
type Message struct {
	Role     string
	Text     string // the content, or the non-empty texts of its parts joined with newlines
	Name     string
	HasImage bool
	Span     Span // the whole message
	Content  Span // the value of content, which may be null; zero if absent
}

// member is one name and value of an object.
type member struct{ name, value Span }

// text is a text that reaches the model from outside a message's content.
type text struct {
	message int           // index of the message it belongs to
	role    string        // for a text outside of messages
	origin  signal.Origin // for a text outside of messages
	text    string
	list    bool // several short strings, one per line
}

// Extras is the body object "signalbox", which is addressed to the proxy and never forwarded.
type Extras struct {
	Present     bool
	Contexts    []ContextRef // in the order in which they are inserted
	Session     string
	Facts       []Fact
	Explain     bool
	Guard       string       // off, observe, annotate, terminate or hold; empty if not given
	SaveContext *SaveContext // nil if not requested
}

// ContextRef names a stored context.
type ContextRef struct {
	ID       string // without the version
	Version  int    // 0 means the latest
	Required bool   // true unless the client says otherwise
	// a lease of the context, which permits the use of a deleted one; empty without one
	Lease string
}

// Fact is a statement that an answer is checked against.
type Fact struct {
	ID     string `json:"id"`
	Text   string `json:"text"` // never empty
	Source string `json:"source"`
	Kind   string `json:"kind"` // number, date, name or statement; empty if not given
}

// SaveContext requests that prompt and answer be stored as a context.
type SaveContext struct {
	Name string
	TTL  time.Duration // 0 means the default of the store
}

// Text returns the request's texts for the extractors: every string and every member name of the
// body, except those that no model reads as text (see docs/security.md) and words of the API. The
// texts are contents of all roles, names, tool calls with their arguments and ids, reasoning and
// refusals of earlier turns, retrieved documents (as role tool, because like tool results they are
// data from elsewhere), tools and schemas, prediction, chat_template, chat_template_kwargs, and
// unknown members. Instructions come first. LastUser is the last message of the user with text, if
// there is one: an image, whether sent by the user or returned by a tool, does not determine the
// subject.
//
// Short strings and names outside of contents form one segment per message, or per member of the
// body, one per line; Segment.List marks such a segment.
//
// A text of a message, including names and calls, has the origin of the message's role. Outside of
// messages, tools, schemas, chat_template and instructions have the origin instructions; prompts,
// queries, inputs, suffixes and predictions that of the user; documents are data; previous_response
// is the model's. Texts of chat_template_kwargs, of previous_input_messages and of members that the
// API does not define have OriginAny, because their author is unknown.
func (r *Request) Text() signal.Text {
	out := signal.Text{Segments: make([]signal.Segment, 0, len(r.Messages)+len(r.texts)+len(r.loose)+1)}
	if r.Instructions != "" {
		out.Segments = append(out.Segments, signal.Segment{
			Role: roleSystem, Text: r.Instructions,
			Origin: signal.OriginInstructions,
		})
	}
	next, spoke := 0, false // spoke: the user has text in a message
	for i := range r.Messages {
		m := &r.Messages[i]
		from := originOf(m.Role)
		if m.Role == roleUser {
			r.hear(&out, m.Text)
			spoke = true
		}
		if m.Name != "" {
			out.Segments = append(out.Segments, signal.Segment{
				Role: m.Role, Text: m.Name,
				Origin: from,
			})
		}
		if m.Text != "" {
			out.Segments = append(out.Segments, signal.Segment{
				Role: m.Role, Text: m.Text,
				Origin: from,
			})
		}
		for ; next < len(r.texts) && r.texts[next].message == i; next++ {
			t := &r.texts[next]
			out.Segments = append(out.Segments, signal.Segment{
				Role: m.Role, Text: t.text, Origin: from, List: t.list,
			})
		}
	}
	for i := range r.loose {
		t := &r.loose[i]
		if t.role == roleUser && !spoke && !t.list {
			out.LastUser = t.text
		}
		out.Segments = append(out.Segments, signal.Segment{
			Role: t.role, Text: t.text, Origin: t.origin, List: t.list,
		})
	}
	return out
}

// hear records the user's text in a message, if there is any.
func (r *Request) hear(out *signal.Text, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if out.LastUser != "" && r.API != Completion { // whose prompts are independent of each other
		out.Before = append(out.Before, out.LastUser)
	}
	out.LastUser = text
}

// Shape returns the shape of the conversation in the messages of a request: the number of user
// messages, the number of tool results after the last of these, and whether the model is called
// again with a tool result, as for BringsToolResult. Text of the client beside results, before the
// model has answered, does not count as a turn of the user, because agents put their notes there.
// Earlier turns that a server stores (previous_response_id, a stored context) are not included.
func (r *Request) Shape() (turns, results int, loop bool) {
	said, brought := 0, 0 // of the client since the model's last message
	count := func() {
		switch {
		case brought > 0:
			results += brought
		case said > 0:
			turns, results = turns+said, 0
		}
	}
	for i := range r.Messages {
		switch m := &r.Messages[i]; {
		case m.Role == roleUser:
			said++
		case m.Role == roleTool || m.Role == roleFunction:
			brought++
		case m.FromModel():
			count()
			said, brought = 0, 0
		}
	}
	count()
	return turns, results, brought > 0
}

// originOf returns the origin of the texts in a message of a role.
func originOf(role string) signal.Origin {
	switch role {
	case roleSystem, roleDeveloper:
		return signal.OriginInstructions
	case roleUser:
		return signal.OriginUser
	case roleAssistant:
		return signal.OriginModel
	case roleTool, roleFunction:
		return signal.OriginData
	}
	return signal.OriginAny
}
