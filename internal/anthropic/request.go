package anthropic

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Thinking says what a client wants to see of the reasoning before an answer.
type Thinking uint8

const (
	// Unseen: the client did not ask for thinking, and gets no blocks of it.
	Unseen Thinking = iota
	// Omitted: it gets the blocks without their text.
	Omitted
	// Shown: it gets them.
	Shown
)

// Request is a request to the Messages API as a chat completion.
type Request struct {
	Chat     []byte // the body of the chat completion
	Thinking Thinking
	Budget   int64 // of thinking, in tokens; 0 where the body names none
	// LeftOut names what the body holds that was left out, as tools.defer_loading, and no index:
	// members that say something to Anthropic's own servers, and those that nobody here knows. Each
	// once, in order.
	LeftOut []string
	Model   openai.Span // of the value of model in the body as it came
	// Places tells of each message of Chat where it is in the body as it came.
	Places []openai.Place
	// Exact: nothing was left out, nor changed beyond what the two APIs say in different ways, so
	// that whatever a server reads in the body itself is read in Chat as well.
	Exact bool

	form string // the field that response_format was made of
}

// Options of a translation.
type Options struct {
	Counting bool // a request to count tokens: max_tokens is not required
	Limits   openai.Limits
}

// maxLeftOut bounds the names in Request.LeftOut.
const maxLeftOut = 16

// translator builds the chat completion.
type translator struct {
	out    Request
	opts   Options
	size   int          // capacity of the body
	parts  int          // blocks so far
	inside int          // contents of blocks that what is read lies in
	place  openai.Place // of what is translated
	effort string       // of output_config
	form   []byte       // response_format
}

// ToChat translates the body of a request. Errors are *openai.Error with status 400 that name the
// field. The result shares no memory with raw.
func ToChat(raw []byte, o Options) (*Request, error) {
	d := openai.DefaultLimits()
	o.Limits.MaxParts = cmp.Or(max(o.Limits.MaxParts, 0), d.MaxParts)
	o.Limits.MaxMessages = cmp.Or(max(o.Limits.MaxMessages, 0), d.MaxMessages)
	o.Limits.MaxDepth = cmp.Or(max(o.Limits.MaxDepth, 0), d.MaxDepth)
	if deeper(raw, o.Limits.MaxDepth) {
		return nil, bad("", "the body is nested deeper than %d levels", o.Limits.MaxDepth)
	}
	t := &translator{opts: o, size: cap(raw)}
	t.out = Request{Exact: true, Chat: make([]byte, 0, len(raw)+len(raw)/8+64)}
	if err := t.body(raw); err != nil {
		return nil, err
	}
	return &t.out, nil
}

// top is the members of a body that are translated; the others go on as they are.
type top struct {
	model, messages, system, maxTokens, stream, stop, tools, choice, thinking, config, format,
	metadata []byte
}

func (t *translator) body(raw []byte) error {
	var b top
	t.out.Chat = append(t.out.Chat, '{')
	err := members(raw, "", func(name string, v []byte) error {
		if to := b.place(name); to != nil {
			*to = v
			return nil
		}
		return t.other(name, v)
	})
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name string
		v    []byte
	}{{"model", b.model}, {"messages", b.messages}, {"max_tokens", b.maxTokens}} {
		if m.v == nil && (m.name != "max_tokens" || !t.opts.Counting) {
			return bad(m.name, "is required")
		}
	}
	for _, f := range []func(*top) error{
		t.basics, t.conversation, t.tools, t.toolChoice, t.config, t.thinking,
	} {
		if err := f(&b); err != nil {
			return err
		}
	}
	t.out.Chat = append(t.out.Chat, '}')
	return nil
}

// place is where the member of a name is kept; nil for one that is not translated.
func (b *top) place(name string) *[]byte {
	switch name {
	case "model":
		return &b.model
	case "messages":
		return &b.messages
	case "system":
		return &b.system
	case "max_tokens":
		return &b.maxTokens
	case "stream":
		return &b.stream
	case "stop_sequences":
		return &b.stop
	case "tools":
		return &b.tools
	case "tool_choice":
		return &b.choice
	case "thinking":
		return &b.thinking
	case "output_config":
		return &b.config
	case "output_format": // where betas before output_config had it
		return &b.format
	case "metadata":
		return &b.metadata
	}
	return nil
}

// other takes a member that is not translated. What a chat completion calls otherwise is refused:
// the translation writes it, or a client that means it speaks the wrong API.
func (t *translator) other(name string, v []byte) error {
	switch name {
	case "service_tier", "context_management", "inference_geo", "speed", "betas", "anthropic_beta":
		t.leaveOut(name)
		return nil
	case "cache_control":
		t.cacheControl(v, name)
		return nil
	case "container", "mcp_servers":
		if string(v) == "[]" {
			return nil
		}
		return bad(name, "is for what Anthropic's own servers run, which is not there here")
	case "stop", "stream_options", "n", "best_of", "functions", "function_call", "response_format",
		"parallel_tool_calls", "reasoning_effort", "max_completion_tokens", "user":
		return bad(name, "is a member of chat completions and not of this API")
	}
	t.member(name, v)
	return nil
}

func (t *translator) member(name string, v []byte) {
	t.out.Chat = appendMember(t.out.Chat, name, v)
}

// appendMember appends a member to an object that is open, with a comma where it is not the first.
func appendMember(b []byte, name string, v []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b, _ = jsontext.AppendQuote(b, name)
	return append(append(b, ':'), v...)
}

// leaveOut notes what has no place in a chat.
func (t *translator) leaveOut(name string) {
	t.out.Exact = false
	if len(t.out.LeftOut) < maxLeftOut && !slices.Contains(t.out.LeftOut, name) {
		t.out.LeftOut = append(t.out.LeftOut, name)
	}
}

// unknown notes a member of a block that nobody here knows. in is what the block is.
func (t *translator) unknown(in, name string) {
	if len(name) > len("eager_input_streaming_of_a_longer_name") ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		name = "?"
	}
	t.leaveOut(in + "." + name)
}

// cacheControl takes a mark of what to cache. Servers here cache every prefix by themselves, so it
// has no meaning; one of another form than the API has may hold anything.
func (t *translator) cacheControl(v []byte, at string) {
	var squeezed []byte
	squeezed = append(squeezed, v...)
	if (*jsontext.Value)(&squeezed).Compact() != nil {
		squeezed = nil
	}
	switch string(squeezed) {
	case `{"type":"ephemeral"}`, `{"type":"ephemeral","ttl":"5m"}`, `{"type":"ephemeral","ttl":"1h"}`,
		`{"ttl":"5m","type":"ephemeral"}`, `{"ttl":"1h","type":"ephemeral"}`:
	default:
		t.leaveOut(at)
	}
}

// basics translates what is one value in both APIs.
func (t *translator) basics(b *top) error {
	if s, err := text(b.model, "model"); err != nil {
		return err
	} else if len(s) == 0 {
		return bad("model", "must not be empty")
	}
	t.member("model", b.model)
	start := t.size - cap(b.model) // it is a part of the body
	t.out.Model = openai.Span{Start: start, End: start + len(b.model)}
	if b.maxTokens != nil {
		if _, err := whole(b.maxTokens, "max_tokens", 1); err != nil {
			return err
		}
		t.member("max_tokens", b.maxTokens)
	}
	if b.stream != nil {
		streaming, err := flag(b.stream, "stream")
		if err != nil {
			return err
		}
		t.member("stream", b.stream)
		if streaming { // the API always tells it
			t.member("stream_options", []byte(`{"include_usage":true}`))
		}
	}
	if b.stop != nil {
		err := elements(b.stop, "stop_sequences", func(at string, v []byte) error {
			_, err := text(v, at)
			return err
		})
		if err != nil {
			return err
		}
		if !bytes.Equal(b.stop, []byte("[]")) {
			t.member("stop", b.stop)
		}
	}
	if b.metadata == nil {
		return nil
	}
	return members(b.metadata, "metadata", func(name string, v []byte) error {
		if name != "user_id" {
			t.unknown("metadata", name)
			return nil
		}
		if _, err := text(v, "metadata.user_id"); err != nil {
			return err
		}
		t.member("user", v)
		return nil
	})
}

// config translates how much the model is to think and the form that its answer has to have.
func (t *translator) config(b *top) error {
	if b.format != nil {
		if err := t.format(b.format, "output_format"); err != nil {
			return err
		}
	}
	if b.config != nil {
		err := members(b.config, "output_config", func(name string, v []byte) (err error) {
			at := join("output_config", name)
			switch name {
			case "effort":
				t.effort, err = word(v, at)
				if err == nil && !slices.Contains(efforts(), t.effort) {
					err = bad(at, "must be one of %s", strings.Join(efforts(), ", "))
				}
				return err
			case "format":
				if t.form != nil {
					return bad(at, "stands beside output_format, which says the same")
				}
				return t.format(v, at)
			}
			t.unknown("output_config", name)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if t.form != nil {
		t.member("response_format", t.form)
	}
	return nil
}

func efforts() []string { return []string{"low", "medium", "high", "xhigh", "max"} }

func (t *translator) format(raw []byte, at string) error {
	var kind string
	var schema []byte
	err := members(raw, at, func(name string, v []byte) (err error) {
		switch name {
		case "type":
			kind, err = word(v, join(at, name))
		case "schema":
			schema = v
		default:
			t.unknown("output_config.format", name)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case kind != "json_schema":
		return bad(join(at, "type"), "must be json_schema")
	case schema == nil || schema[0] != '{':
		return bad(join(at, "schema"), "must be an object")
	}
	t.out.form = at
	const head = `{"type":"json_schema","json_schema":{"name":"output","strict":true,"schema":`
	t.form = append([]byte(head), schema...)
	t.form = append(t.form, "}}"...)
	return nil
}

// Budgets of thinking, in tokens, up to which an effort is low, and medium: a fifth and four fifths
// of the way, on a logarithmic scale, from the least that the API takes, 1,024, to 32,768, above
// which Anthropic advises batches (docs: extended thinking, working with thinking budgets).
const (
	lowBudget    = 2048
	mediumBudget = 16_384
)

// thinking translates a budget, or the want of thinking, to an effort. An effort that the client
// names itself stands.
func (t *translator) thinking(b *top) error {
	kind, budget, shown := "", int64(0), Shown
	if b.thinking != nil {
		err := members(b.thinking, "thinking", func(name string, v []byte) (err error) {
			at := join("thinking", name)
			switch name {
			case "type":
				kind, err = word(v, at)
			case "budget_tokens":
				budget, err = whole(v, at, 1)
			case "display":
				var how string
				how, err = word(v, at)
				switch {
				case err != nil:
				case how == "omitted":
					shown = Omitted
				case how != "summarized" && how != "updates":
					err = bad(at, "must be one of summarized, omitted, updates")
				}
			default:
				t.unknown("thinking", name)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	effort := t.effort
	switch kind {
	case "":
		if b.thinking != nil {
			return bad("thinking.type", "is required")
		}
	case "adaptive":
		t.out.Thinking = shown
	case "disabled":
		effort = "none"
	case "enabled":
		t.out.Thinking, t.out.Budget = shown, budget
		switch {
		case budget == 0:
			return bad("thinking.budget_tokens", "is required")
		case effort != "":
		case budget <= lowBudget:
			effort = "low"
		case budget <= mediumBudget:
			effort = "medium"
		default:
			effort = "high"
		}
	default:
		return bad("thinking.type", "must be one of enabled, adaptive, disabled")
	}
	if effort != "" {
		t.member("reasoning_effort", []byte(`"`+effort+`"`))
	}
	return nil
}
