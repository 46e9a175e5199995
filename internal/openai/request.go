package openai

import (
	"cmp"
	"math"
	"strings"
	"time"

	"signalbox/internal/signal"
)

// Span is a half-open range of byte offsets into Request.Raw. The zero Span means absent: no value
// of a body starts at offset 0.
type Span struct{ Start, End int }

// Present reports whether the span refers to anything.
func (s Span) Present() bool { return s.End > s.Start }

// Limits bounds what one body may contain, so that a small body cannot cost much memory. A field
// that is zero or negative takes its value from DefaultLimits.
type Limits struct {
	MaxMessages int // elements of messages
	MaxDepth    int // nested objects and arrays; the body itself is 1
	MaxParts    int // content parts, tool calls and other texts outside plain contents, in the whole body
	MaxMembers  int // names in one object
	MaxContexts int // entries of signalbox.context
	MaxFacts    int // entries of signalbox.facts
}

// DefaultLimits returns limits far above what clients send. The check for duplicate names costs
// about 180 bytes a name, so MaxMembers also bounds memory; the largest object of the API is
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

// Accepted returns limits for what has been accepted before, in one or in parts: none.
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

// API is the kind of request that a body is.
type API uint8

const (
	// Chat is a chat completion.
	Chat API = iota
	// Completion is a completion that is no chat.
	Completion
	// Response is a request to the Responses API.
	Response
	// Other is whatever else names a model, such as embeddings.
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

// list is the field that holds the messages.
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

// PromptField is the field of the body that holds the prompt: messages, prompt or input.
func (r *Request) PromptField() string { return r.API.list() }

// Request is the typed view of a request body. It is immutable after parsing and safe for
// concurrent use. Nobody may write to Raw any more, not even when the request is done with: a text
// of 16 KiB and more that is at least half of it shares its memory. All other strings are copies.
type Request struct {
	API API
	Raw []byte // the body as received; the parser neither copies nor changes it

	Model        string // never empty
	Stream       bool
	IncludeUsage bool // stream_options.include_usage; always true of a Response
	Echo         bool // the answer repeats the prompt; only of a Completion

	Messages     []Message // at least one after ParseChat, none after ParseBody
	SystemIndex  int       // first message of role system or developer, or -1
	Instructions string    // of a Response; they stand before the messages, as said by the system

	MaxTokens           *int64 // nil when absent or null; see AnswerLimit
	MaxCompletionTokens *int64 // nil when absent or null; max_output_tokens after ParseResponse and ParseBody
	ReasoningEffort     string // empty when absent or null; reasoning.effort of a Response
	ChatTemplateKwargs  Span   // the value of chat_template_kwargs, an object; zero when absent or null

	HasTools  bool // tools or functions is a list that is not empty
	HasImages bool // some content part is an image
	HasMedia  bool // some content part holds more than text: image, audio, video or file

	OpaquePrompt bool // a prompt is given as token ids or vectors, which nobody here can read; never after ParseChat

	TokenIDs   int // how many token ids the prompts of a Completion hold
	TokenLists int // how many of its prompts are lists of them

	// MediaID is the path of the first uuid of a content part, as messages[0].content[1].uuid, empty
	// where no part has one: vLLM keeps pictures and recordings under such names, whoever sent them.
	MediaID string

	// Translated: the body is a translation of a request to another API, so that its client knows
	// neither its members nor which words a model takes. Who translates sets it, before anybody
	// reads it.
	Translated bool
	// ThinkingBudget is how many tokens the client of a translated request has the model reason
	// for; 0 where it does not say. Who translates sets it.
	ThinkingBudget int64
	// Places tells of each of Messages where it is in what the client of a translated request sent;
	// nil where it sent Messages. Who translates sets it.
	Places []Place

	Extras Extras

	members []member // of the top-level object, in order
	texts   []text   // texts of messages outside their content, in order
	loose   []text   // texts outside messages, in order

	instructions Span // the value of instructions; zero when absent
	toolsJSON    int  // bytes of tools and functions as they are spelled
	toolsText    int  // bytes of loose that are theirs
	ids          int  // numbers in the input of an API without a parser of its own
	refers       bool // some item of the input of a Response stands for one that the server keeps

	form    bool     // the body is a form and no JSON
	parts   []string // names of the fields of a form
	modelAt Span     // the value of the field model of a form
}

// AnswerLimit returns how many tokens the client takes for one answer at most, at least 1, and 0
// and false when it does not say. A number below 1 says nothing: some clients send -1 or 0 for no
// limit, as llama.cpp takes -1. Where a completion repeats its prompt, 0 asks for that alone, for
// which vLLM makes one token. Of two limits it is the larger one: vLLM and SGLang take
// max_completion_tokens where it is not 0, servers that are older than it know max_tokens alone,
// and OpenAI refuses both together. The upstream judges the range.
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

// LimitField returns the name of the field that holds the AnswerLimit; empty without one.
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

// Form reports whether the body is a form and no JSON, of which a Patch edits the model alone.
func (r *Request) Form() bool { return r.form }

// Message is one element of messages.
type Message struct {
	Role     string
	Text     string // the content, or the texts of its parts joined with a newline; empty parts are left out
	Name     string
	HasImage bool
	Span     Span // the whole message
	Content  Span // the value of content, which may be null; zero when absent
}

// member is one name and value of an object.
type member struct{ name, value Span }

// text is a text that reaches the model from outside a message's content.
type text struct {
	message int           // index of the message it belongs to
	role    string        // of a text that belongs to no message
	origin  signal.Origin // of a text that belongs to no message
	text    string
	list    bool // several short strings, one a line
}

// Extras is the body object "signalbox", which is addressed to the proxy and never forwarded.
type Extras struct {
	Present     bool
	Contexts    []ContextRef // in the order in which they are to be placed
	Session     string
	Facts       []Fact
	Explain     bool
	Guard       string       // off, observe, annotate, terminate or hold; empty when not named
	SaveContext *SaveContext // nil when not asked for
}

// ContextRef names a stored context.
type ContextRef struct {
	ID       string // without the version
	Version  int    // 0 means the latest
	Required bool   // true unless the client says otherwise
	Lease    string // of the context, which lets a deleted one be used; empty without one
}

// Fact is a statement that an answer is checked against.
type Fact struct {
	ID     string `json:"id"`
	Text   string `json:"text"` // never empty
	Source string `json:"source"`
	Kind   string `json:"kind"` // number, date, name or statement; empty when not named
}

// SaveContext asks for prompt and answer to be stored as a context.
type SaveContext struct {
	Name string
	TTL  time.Duration // 0 means the default of the store
}

// Text returns the request's texts for the extractors: every string and every name of a member of
// the body but for those that no model reads as text (see docs/security.md), and words of the API.
// They are contents of all roles, names, tool calls with their arguments and ids, reasoning and
// refusals of earlier turns, retrieved documents (as role tool, since like tool results they are
// data from elsewhere), tools and schemas, prediction, chat_template, chat_template_kwargs, and
// whatever else a body holds that nobody here knows. Instructions come first. The last word of the
// user is that of a message where there is one: the last that has text, for a picture says nothing
// of the subject, be it the user's or one that a tool returned.
//
// Short strings and names outside of contents are one segment for each message, or for each member
// of the body, a line each: Segment.List tells.
//
// A text of a message, its names and calls included, has the origin of the message's role. Outside
// of messages, tools, schemas, chat_template and instructions are instructions; prompts, queries,
// inputs, suffixes and predictions the user's; documents are data; previous_response is the
// model's. Texts of chat_template_kwargs, of previous_input_messages and of members that the API
// does not have may be anybody's: OriginAny.
func (r *Request) Text() signal.Text {
	out := signal.Text{Segments: make([]signal.Segment, 0, len(r.Messages)+len(r.texts)+len(r.loose)+1)}
	if r.Instructions != "" {
		out.Segments = append(out.Segments, signal.Segment{
			Role: roleSystem, Text: r.Instructions,
			Origin: signal.OriginInstructions,
		})
	}
	next, spoke := 0, false // spoke: the user did, in a message
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

// hear notes what the user says in a message, unless that has no text.
func (r *Request) hear(out *signal.Text, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	if out.LastUser != "" && r.API != Completion { // whose prompts stand beside each other
		out.Before = append(out.Before, out.LastUser)
	}
	out.LastUser = text
}

// Shape is what the messages of a request tell of the conversation: how many are of the user, how
// many results of tools came after the last of these, and whether the model is called again with
// such a result, as BringsToolResult tells. What the client says beside results, before the model
// has answered, is no turn of the user: agents put their notes there. What a server remembers of
// earlier turns (previous_response_id, a stored context) is not among them.
func (r *Request) Shape() (turns, results int, loop bool) {
	said, brought := 0, 0 // by the client since the model spoke
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

// originOf is where the texts of a message of a role come from.
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
