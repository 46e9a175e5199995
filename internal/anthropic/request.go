package anthropic

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Thinking is what a client wants to receive of the reasoning before an answer.
type Thinking uint8

const (
	// Unseen: the client did not request thinking and gets no blocks of it.
	Unseen Thinking = iota
	// Omitted: the client gets thinking blocks without their text.
	Omitted
	// Shown: the client gets complete thinking blocks.
	Shown
)

// Request is a request to the Messages API as a chat completion.
type Request struct {
	Chat     []byte // the body of the chat completion
	Thinking Thinking
	Budget   int64 // for thinking, in tokens; 0 if the body specifies none
	// LeftOut names the members of the body that were left out, such as tools.defer_loading,
	// without indices: members for Anthropic's own servers, and unknown ones. Each is listed once,
	// in order.
	LeftOut []string
	Model   openai.Span // the value of model in the body as received
	// Places holds, for each message of Chat, its place in the body as received.
	Places []openai.Place
	// Exact reports that nothing was left out, nor changed beyond the differences between the two
	// APIs. Whatever a server would read in the received body is then contained in Chat.
	Exact bool

	form string // the field that response_format was made from
}

// Options are options of a translation.
type Options struct {
	Counting bool // the request counts tokens: max_tokens is not required
	Limits   openai.Limits
}

// maxLeftOut limits the number of names in Request.LeftOut.
const maxLeftOut = 16

// translator builds the chat completion.
type translator struct {
	out    Request
	opts   Options
	size   int          // capacity of the body
	parts  int          // number of blocks so far
	inside int          // nesting depth of contents within blocks
	place  openai.Place // of the part being translated
	effort string       // of output_config
	form   []byte       // response_format
}

// ToChat translates the body of a request. Errors are *openai.Error with status 400 and name the
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

// top holds the members of a body that are translated; the others are copied unchanged.
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

// place returns where the member with a name is stored, or nil for one that is not translated.
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
	case "output_format": // used by betas before output_config
		return &b.format
	case "metadata":
		return &b.metadata
	}
	return nil
}

// other handles a member that is not translated. Members to which a chat completion gives another
// meaning are refused: the translation itself writes them, or the client uses the wrong API.
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

// appendMember appends a member to an open object, preceded by a comma if it is not the first.
func appendMember(b []byte, name string, v []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b, _ = jsontext.AppendQuote(b, name)
	return append(append(b, ':'), v...)
}

// leaveOut records a member that a chat cannot express.
func (t *translator) leaveOut(name string) {
	t.out.Exact = false
	if len(t.out.LeftOut) < maxLeftOut && !slices.Contains(t.out.LeftOut, name) {
		t.out.LeftOut = append(t.out.LeftOut, name)
	}
}

// unknown records an unknown member of a block; in is the kind of the block.
func (t *translator) unknown(in, name string) {
	if len(name) > len("eager_input_streaming_of_a_longer_name") ||
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		name = "?"
	}
	t.leaveOut(in + "." + name)
}

// cacheControl handles a mark of what to cache. Servers here cache every prefix automatically, so
// it has no meaning; but a mark in a form that the API does not define may hold anything.
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

// basics translates the members that are single values in both APIs.
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
		if streaming { // this API always reports the usage
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

// config translates the amount of thinking and the required format of the answer.
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

// Budgets of thinking, in tokens, up to which the effort is low and medium. On a logarithmic scale
// they are at a fifth and four fifths of the range from the API's minimum, 1,024, to 32,768, above
// which Anthropic recommends batches (docs: extended thinking, working with thinking budgets).
const (
	lowBudget    = 2048
	mediumBudget = 16_384
)

// thinking translates a thinking budget, or disabled thinking, to an effort. An effort that the
// client set explicitly takes precedence.
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
