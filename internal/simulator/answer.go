package simulator

import (
	_ "embed" // of the filler sentences
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// quoteRunes is the number of characters of a question or a system prompt that a response repeats.
const quoteRunes = 80

// usualTokens is the length that filler sentences extend a short response to, unless the request
// asks for another one.
const usualTokens = 44

// The finish reasons of the OpenAI API that a simulated response can have.
const (
	finishStop      = "stop"
	finishLength    = "length"
	finishToolCalls = "tool_calls"
)

// pieceKind is the field of a delta that a token belongs to.
type pieceKind uint8

const (
	contentPiece pieceKind = iota
	reasoningPiece
	callPiece // the head of a tool call: its text is the function's name
	argumentsPiece
)

// piece is one generated token.
type piece struct {
	kind pieceKind
	text string
}

// choice is one complete response, generated before its first token is sent; the sender does the
// pacing.
type choice struct {
	pieces     []piece
	callID     string
	finish     string
	stopReason string // the stop string that matched, empty for none
}

// text joins the pieces of one kind.
func (c *choice) text(kind pieceKind) string {
	n := 0
	for _, p := range c.pieces {
		if p.kind == kind {
			n += len(p.text)
		}
	}
	var b strings.Builder
	b.Grow(n)
	for _, p := range c.pieces {
		if p.kind == kind {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func (c *choice) has(kind pieceKind) bool {
	return slices.ContainsFunc(c.pieces, func(p piece) bool { return p.kind == kind })
}

// add splits text into tokens and appends them.
func (c *choice) add(kind pieceKind, text string) {
	for text != "" {
		n := pieceLen(text)
		c.pieces = append(c.pieces, piece{kind, text[:n]})
		text = text[n:]
	}
}

// cut shortens the response to limit tokens.
func (c *choice) cut(limit int) {
	if len(c.pieces) > limit {
		c.pieces, c.finish = c.pieces[:limit], finishLength
	}
}

// reasoning is what a chat request specifies about reasoning.
type reasoning struct {
	wanted    bool
	sentences int
	echo      string // the parameters as sent
}

// readReasoning derives reasoning from `reasoning_effort` and the two common switches of chat
// templates: `enable_thinking` (Qwen3, GLM) and `thinking` (DeepSeek, Granite).
func readReasoning(req *chatRequest) reasoning {
	r := reasoning{sentences: 1}
	var said []string
	if e := req.ReasoningEffort; e != "" {
		said = append(said, "effort "+e)
		r.wanted = e != "none"
		switch e {
		case "medium":
			r.sentences = 2
		case "high", "xhigh", "max":
			r.sentences = 3
		}
	}
	if len(req.ChatTemplateKwargs) > 0 && string(req.ChatTemplateKwargs) != "null" {
		var kwargs map[string]any
		if json.Unmarshal(req.ChatTemplateKwargs, &kwargs, jsontext.AllowDuplicateNames(true)) == nil {
			for _, key := range [...]string{"enable_thinking", "thinking"} {
				if on, isBool := kwargs[key].(bool); isBool {
					r.wanted = on
				}
			}
		}
		said = append(said, "chat_template_kwargs "+clip(string(req.ChatTemplateKwargs)))
	}
	r.echo = noReasoning
	if said != nil {
		r.echo = strings.Join(said, ", ")
	}
	return r
}

// think returns the reasoning text that precedes a response.
func (r reasoning) think(model, question string) string {
	sentences := [...]string{
		"I am " + model + ". The user asks: " + quoted(question),
		" First I restate the question and name what is given.",
		" Then I check the answer once more before I send it.",
	}
	return strings.Join(sentences[:r.sentences], "")
}

// PrefaceHeader is the response header in which a server describes itself and the request: the
// served model's name in brackets, the question, the system prompt, the reasoning parameters and
// the token limit. Texts are cut after 80 characters; characters that are not printable ASCII are
// escaped as in Go.
const PrefaceHeader = "X-Simulator"

// noReasoning is the text of the preface for a request without reasoning.
const noReasoning = "not asked for"

// preface returns the value of PrefaceHeader. maxTokens is -1 for a request without a limit.
func preface(model, question, system, reasoningEcho string, maxTokens int) string {
	var b strings.Builder
	b.Grow(2*quoteRunes + 128)
	b.WriteString("[" + model + "] I am a simulated server. I was asked: " + quoted(question))
	b.WriteString(". System prompt: ")
	if system == "" {
		b.WriteString("none")
	} else {
		b.WriteString(quoted(system))
	}
	b.WriteString(". Reasoning: " + reasoningEcho + ". max_tokens: ")
	if maxTokens < 0 {
		b.WriteString("not set.")
	} else {
		b.WriteString(strconv.Itoa(maxTokens) + ".")
	}
	return printable(b.String())
}

// printable escapes characters that a header cannot contain.
func printable(s string) string {
	plain := func(r rune) bool { return r >= ' ' && r <= '~' }
	if strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	out := make([]byte, 0, 2*len(s))
	for _, r := range s {
		if plain(r) {
			out = append(out, byte(r))
		} else {
			q := strconv.AppendQuoteRuneToASCII(nil, r)
			out = append(out, q[1:len(q)-1]...)
		}
	}
	return string(out)
}

// names reports whether a text contains the name of a tool as separate words: "get weather" also
// matches get_weather.
func names(text, tool string) bool {
	text, tool = " "+words(text)+" ", words(tool)
	return tool != "" && strings.Contains(text, " "+tool+" ")
}

// words returns text in lower case, with a space between its runs of letters and digits.
func words(text string) string {
	list := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
	return strings.Join(list, " ")
}

// opening begins every response in free form, so that it is not mistaken for a model's.
const opening = "This text is simulated."

// fill appends filler sentences, selected by seed, until the response has at least want tokens.
func (c *choice) fill(seed uint64, want int) {
	for i := uint64(0); len(c.pieces) < want; i++ {
		c.add(contentPiece, fillers[mix(seed+i)%uint64(len(fillers))])
	}
}

//go:embed fillers.txt
var fillerLines string

// fillers are the sentences that lengthen a response. Each begins with a space.
//
//nolint:gochecknoglobals // constant table
var fillers = strings.Split(strings.TrimSuffix(fillerLines, "\n"), "\n")

// applyStop cuts text at the first stop string, which is removed, and returns the string that
// matched or "".
func applyStop(text string, stops []string) (kept, matched string) {
	kept = text
	for _, stop := range stops {
		if stop == "" {
			continue
		}
		if i := strings.Index(kept, stop); i >= 0 {
			kept, matched = kept[:i], stop
		}
	}
	return kept, matched
}

// arguments returns a JSON object with a valid value for every required property of a function's
// parameters; an empty object if that is impossible.
func arguments(parameters jsontext.Value) string {
	if !given(parameters) {
		return "{}"
	}
	text, err := makeValue(parameters, true)
	if err != nil || !strings.HasPrefix(text, "{") {
		return "{}"
	}
	return text
}

// pick returns the tool that the request forces the model to call, or nil.
func (c *toolChoice) pick(tools []tool) (*tool, error) {
	switch c.mode {
	case "required":
		if len(tools) == 0 {
			return nil, badRequest("tools", "When using `tool_choice`, `tools` must be set.")
		}
		return &tools[0], nil
	case "named":
		for i := range tools {
			if tools[i].Function.Name == c.name {
				return &tools[i], nil
			}
		}
		return nil, badRequest("tool_choice", "The tool specified in `tool_choice` does not match any of the specified `tools`: %q.", c.name)
	case "", "none", "auto":
		return nil, nil
	default:
		return nil, badRequest("tool_choice", "Invalid value for `tool_choice`: %q.", c.mode)
	}
}

// clip returns text on one line, cut after quoteRunes characters.
func clip(text string) string {
	end, runes := 0, 0
	for end < len(text) && runes < quoteRunes {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
		runes++
	}
	clipped := strings.Join(strings.Fields(text[:end]), " ")
	if end < len(text) {
		clipped += "..."
	}
	return clipped
}

// quoted is clip in quotation marks.
func quoted(text string) string { return `"` + clip(text) + `"` }

// describe describes a question without text.
func (c *content) describe() string {
	if c.text == "" && c.other > 0 {
		return fmt.Sprintf("(%d parts that are not text)", c.other)
	}
	return c.text
}
