package simulator

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxChoices limits `n` times the number of prompts, so that a request cannot allocate unlimited
// memory.
const maxChoices = 128

// imageTokens is the number of tokens that an image part counts as, independent of its size.
const imageTokens = 256

// maxSaltBytes limits the size of cache_salt.
const maxSaltBytes = 1024

// sampling holds the parameters that chat and text completions share. vLLM fields without effect
// here are accepted and ignored, as are unknown ones. Whole numbers may be written `5.0`, which
// pydantic accepts as well.
type sampling struct {
	Model         string         `json:"model"`
	MaxTokens     *float64       `json:"max_tokens"`
	MinTokens     float64        `json:"min_tokens"`
	IgnoreEOS     bool           `json:"ignore_eos"`
	N             *float64       `json:"n"`
	Seed          *float64       `json:"seed"`
	Stop          stopStrings    `json:"stop"`
	Stream        bool           `json:"stream"`
	StreamOptions *streamOptions `json:"stream_options"`
	CacheSalt     *string        `json:"cache_salt"`
	Priority      float64        `json:"priority"`
	Transfer      transferParams `json:"kv_transfer_params"`
	forms
}

// transferParams is the simulated part of kv_transfer_params: another server's main memory to take
// blocks from (the p2p tier of vLLM's offloading connector).
type transferParams struct {
	RemoteKVSource struct {
		Host string `json:"remote_host"`
		Port int    `json:"remote_port"`
	} `json:"remote_kv_source"`
}

type streamOptions struct {
	IncludeUsage         *bool `json:"include_usage"`
	ContinuousUsageStats bool  `json:"continuous_usage_stats"`
}

type chatRequest struct {
	sampling
	Messages            []message      `json:"messages"`
	MaxCompletionTokens *float64       `json:"max_completion_tokens"`
	ReasoningEffort     string         `json:"reasoning_effort"`
	ChatTemplateKwargs  jsontext.Value `json:"chat_template_kwargs"`
	Tools               []tool         `json:"tools"`
	ToolChoice          toolChoice     `json:"tool_choice"`
	Logprobs            bool           `json:"logprobs"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

type tool struct {
	Function struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  jsontext.Value `json:"parameters"`
	} `json:"function"`
}

type completionRequest struct {
	sampling
	Prompt prompts `json:"prompt"`
}

type tokenizeRequest struct {
	Model               string    `json:"model"`
	Prompt              *string   `json:"prompt"`
	Messages            []message `json:"messages"`
	Tools               []tool    `json:"tools"`
	AddGenerationPrompt *bool     `json:"add_generation_prompt"`
	ReturnTokenStrs     bool      `json:"return_token_strs"`
}

// content is a message's text, from a string or from the text parts of an array, with the number of
// parts that are not text.
type content struct {
	text  string
	other int
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *content) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	kind := dec.PeekKind()
	if kind == jsontext.KindNull {
		return dec.SkipValue()
	}
	if kind != jsontext.KindBeginArray {
		return json.UnmarshalDecode(dec, &c.text)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.UnmarshalDecode(dec, &parts); err != nil {
		return err
	}
	var text []string
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			text = append(text, p.Text)
		default:
			c.other++
		}
	}
	c.text = strings.Join(text, "\n")
	return nil
}

// stopStrings is `stop`: a string, an array of them, or null.
type stopStrings []string

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (s *stopStrings) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindString {
		return json.UnmarshalDecode(dec, (*[]string)(s))
	}
	*s = make(stopStrings, 1)
	return json.UnmarshalDecode(dec, &(*s)[0])
}

// prompts is the `prompt` of a text completion: a string, an array of strings, an array of token
// ids, or an array of such arrays. Token ids have no text here.
type prompts []prompt

type prompt struct {
	text   string
	tokens int
	ids    []uint32 // if they were sent as such
}

// appendIDs appends the token ids of a prompt.
func (p *prompt) appendIDs(dst []uint32) []uint32 {
	if p.ids != nil {
		return append(dst, p.ids...)
	}
	eachToken(p.text, func(token string) { dst = append(dst, uint32(tokenID(token))) })
	return dst
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (p *prompts) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var raw any
	if err := json.UnmarshalDecode(dec, &raw); err != nil {
		return err
	}
	items, isList := raw.([]any)
	if !isList {
		items = []any{raw}
	}
	if len(items) > 0 {
		if _, isTokens := items[0].(float64); isTokens {
			items = []any{items}
		}
	}
	for _, item := range items {
		switch v := item.(type) {
		case string:
			*p = append(*p, prompt{text: v, tokens: CountTokens(v)})
		case []any:
			one := prompt{text: fmt.Sprintf("(%d token ids)", len(v)), tokens: len(v), ids: make([]uint32, 0, len(v))}
			for _, id := range v {
				n, isNumber := id.(float64)
				if !isNumber {
					return errors.New("prompt must be a string, a list of strings, or token ids")
				}
				one.ids = append(one.ids, uint32(n))
			}
			*p = append(*p, one)
		default:
			return errors.New("prompt must be a string, a list of strings, or token ids")
		}
	}
	return nil
}

// toolChoice is `tool_choice`: a mode ("none", "auto", "required") or a named function.
type toolChoice struct {
	mode string
	name string
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom.
func (c *toolChoice) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return json.UnmarshalDecode(dec, &c.mode)
	}
	var named struct {
		Name     string `json:"name"` // in the Responses API
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	err := json.UnmarshalDecode(dec, &named)
	c.mode, c.name = "named", cmp.Or(named.Function.Name, named.Name)
	return err
}

// requestError is an error response in vLLM's format. kind is the `type` on the wire, param its
// `param` (empty for null).
type requestError struct {
	status  int
	kind    string
	param   string
	message string
}

// Error implements error.
func (e *requestError) Error() string { return e.message }

func badRequest(param, format string, args ...any) *requestError {
	return &requestError{http.StatusBadRequest, "BadRequestError", param, fmt.Sprintf(format, args...)}
}

// decode parses body like Python's json module and pydantic: names are case-sensitive, the last of
// two equal names applies, invalid UTF-8 is replaced.
func decode(body []byte, into any) error {
	err := json.Unmarshal(body, into, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err == nil {
		return nil
	}
	param := ""
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		param = strings.ReplaceAll(strings.TrimPrefix(string(semantic.JSONPointer), "/"), "/", ".")
	}
	return &requestError{http.StatusBadRequest, "Bad Request", param, err.Error()}
}

// limits are the checked numbers of a request.
type limits struct {
	choices   int
	maxTokens int // completion tokens a choice may have
	minTokens int // completion tokens a choice must have
	asked     int // max_tokens as sent, or -1
}

// promptSize is the length of a prompt in tokens and the request field it came from.
type promptSize struct {
	param  string
	tokens int
}

// check validates the shared parameters and derives the limits. fallback is the endpoint's default
// of max_tokens, -1 for the rest of the context window.
func (o Options) check(s *sampling, sentMax *float64, prompt promptSize, fallback int) (limits, error) {
	if s.Model != "" && s.Model != o.Model {
		return limits{}, &requestError{
			http.StatusNotFound, "NotFoundError", "model",
			fmt.Sprintf("The model `%s` does not exist.", s.Model),
		}
	}
	if s.StreamOptions != nil && !s.Stream {
		return limits{}, badRequest("stream_options", "Stream options can only be defined when `stream=True`.")
	}
	if err := o.checkPlace(s); err != nil {
		return limits{}, err
	}
	l := limits{choices: 1, asked: -1}
	var err error
	if s.N != nil {
		if l.choices, err = whole("n", *s.N, 1, maxChoices); err != nil {
			return l, err
		}
	}
	if l.minTokens, err = whole("min_tokens", s.MinTokens, 0, o.MaxModelLen); err != nil {
		return l, err
	}
	room := o.MaxModelLen - prompt.tokens
	l.maxTokens = room
	if sentMax != nil {
		if l.asked, err = whole("max_tokens", *sentMax, 1, math.MaxInt32); err != nil {
			return l, err
		}
		l.maxTokens = l.asked
	} else if fallback >= 0 {
		l.maxTokens = min(fallback, room)
	}
	if room < 1 || l.maxTokens > room {
		return l, badRequest(prompt.param,
			"This model's maximum context length is %d tokens. However, the request has %d tokens of prompt and asks for %d of completion.",
			o.MaxModelLen, prompt.tokens, max(l.asked, 1))
	}
	if l.minTokens > l.maxTokens {
		return l, badRequest("min_tokens", "min_tokens must be less than or equal to max_tokens=%d, got %d.", l.maxTokens, l.minTokens)
	}
	if s.IgnoreEOS {
		l.minTokens = l.maxTokens
	}
	return l, nil
}

// checkPlace validates the parameters of a request for the cache and the queue.
func (o Options) checkPlace(s *sampling) error {
	if s.CacheSalt != nil && (*s.CacheSalt == "" || len(*s.CacheSalt) > maxSaltBytes) {
		return badRequest("cache_salt", "Parameter 'cache_salt' must be a non-empty string of at most %d bytes if provided.", maxSaltBytes)
	}
	if s.Priority != 0 && !o.PriorityScheduling {
		return badRequest("priority", "Got priority %v but Priority scheduling is not enabled.", s.Priority)
	}
	_, err := whole("priority", s.Priority, math.MinInt32, math.MaxInt32)
	return err
}

// whole returns v as an int in [low, high], or an error that names the parameter.
func whole(param string, v float64, low, high int) (int, error) {
	if v != math.Trunc(v) || v < float64(low) || v > float64(high) {
		return 0, badRequest(param, "%s must be a whole number from %d to %d, got %v.", param, low, high, v)
	}
	return int(v), nil
}
