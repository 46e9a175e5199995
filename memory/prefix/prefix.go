// Package prefix puts contexts into requests so that every request that names the same contexts
// begins, after the model server's template, with the same bytes; only then can the server use
// again what it has computed.
//
// The order is fixed: contexts as they are named, the prompt of the proxy (domain prompt), the
// caller's own system text, history, question. Texts are joined by Separator and share one leading
// message with what is said by the system. Nothing that changes from request to request stands in
// front of the end of the contexts. Contexts that are messages keep their messages; what the system
// says follows them in a message of its own.
//
// Stored bytes are not copied: a compiled Body refers to them and to the request. Functions are
// pure and safe for concurrent use.
package prefix

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/memory/ledger"
)

// Separator stands between texts. It is part of the format: another would change every prefix.
const Separator = "\n\n"

// separator is Separator inside a JSON string.
const separator = `\n\n`

// ErrUnsupported says that contexts cannot be put into this kind of request.
var ErrUnsupported = errors.New("contexts cannot be inserted into this request")

// Role is who says the leading message.
type Role uint8

const (
	// System is for templates that take a system message, which most do.
	System Role = iota
	// User is for templates that do not; the caller's system text moves into the message.
	User
)

// String is the role in a message.
func (r Role) String() string {
	if r == User {
		return "user"
	}
	return "system"
}

// Context is one context in its canonical form, as memory.Snapshot has it.
type Context struct {
	Kind      ledger.Kind
	Fragments [][]byte // to be joined: those of messages by commas
}

// Request is what a body is made of.
type Request struct {
	API      openai.API
	Body     []byte    // a request that was accepted, without the proxy's object
	Contexts []Context // in order
	Domain   string    // prompt of the proxy, empty for none
	Role     Role
}

// Compile puts contexts and domain prompt into a body. Without both the body is returned as it is.
// The result refers to the request's slices, which must not be written to while it is in use.
// Errors wrap ErrUnsupported.
//
// In a Completion everything goes in front of the prompt, or of each prompt; token ids and contexts
// that are messages are not supported. In a Response texts go in front of the instructions and
// messages in front of the input; instructions that differ then part the prefixes of contexts that
// are messages.
func Compile(r Request) (Body, error) {
	if len(r.Contexts) == 0 && r.Domain == "" {
		return Body{r.Body}, nil
	}
	domain, err := quote(r.Domain)
	if err != nil {
		return nil, fmt.Errorf("domain prompt: %w", err)
	}
	switch r.API {
	case openai.Chat:
		return chat(r, domain)
	case openai.Completion:
		return completion(r, domain)
	case openai.Response:
		return response(r, domain)
	case openai.Other:
	}
	return nil, fmt.Errorf("%w: %v", ErrUnsupported, r.API)
}

// quote is a text as the inside of a JSON string.
func quote(text string) ([]byte, error) {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return nil, fmt.Errorf("spell text: %w", err)
	}
	return b[1 : len(b)-1], nil
}

// writer collects parts of a body.
type writer struct{ parts Body }

func (w *writer) raw(b []byte) {
	if len(b) > 0 {
		w.parts = append(w.parts, b)
	}
}

func (w *writer) str(s string) { w.raw([]byte(s)) }

// context writes the fragments of a context.
func (w *writer) context(c Context) {
	for i, f := range c.Fragments {
		if i > 0 && c.Kind == ledger.Messages {
			w.str(",")
		}
		w.raw(f)
	}
}

// texts writes what stands in front of a string: contexts that are texts, and the domain prompt,
// with separators between them and last behind them.
func (w *writer) texts(contexts []Context, domain []byte, last string) {
	left := 0
	for _, c := range contexts {
		if c.Kind == ledger.Text {
			left++
		}
	}
	if len(domain) > 0 {
		left++
	}
	behind := func() {
		if left--; left > 0 {
			w.str(separator)
			return
		}
		w.str(last)
	}
	for _, c := range contexts {
		if c.Kind == ledger.Text {
			w.context(c)
			behind()
		}
	}
	if len(domain) > 0 {
		w.raw(domain)
		behind()
	}
}

// before is what stands in front of a JSON string that is not empty.
func before(str span) string {
	if str.end-str.start == len(`""`) {
		return ""
	}
	return separator
}

func completion(r Request, domain []byte) (Body, error) {
	for _, c := range r.Contexts {
		if c.Kind != ledger.Text {
			return nil, fmt.Errorf("%w: a context of messages needs a chat", ErrUnsupported)
		}
	}
	prompt, ok := field(r.Body, "prompt")
	if !ok {
		return nil, fmt.Errorf("%w: it has no prompt", ErrUnsupported)
	}
	prompts := []span{prompt}
	if r.Body[prompt.start] == '[' {
		prompts = elements(r.Body, prompt)
	}
	w, at := writer{}, 0
	for _, p := range prompts {
		if r.Body[p.start] != '"' {
			return nil, fmt.Errorf("%w: the prompt is no text", ErrUnsupported)
		}
		w.raw(r.Body[at : p.start+1])
		w.texts(r.Contexts, domain, before(p))
		at = p.start + 1
	}
	w.raw(r.Body[at:])
	return w.parts, nil
}

func response(r Request, domain []byte) (Body, error) {
	edits := make([]insertion, 0, 2)
	texts, messages := split(r.Contexts)
	if len(texts) > 0 || len(domain) > 0 {
		e, err := instruct(r.Body, texts, domain)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	if len(messages) > 0 {
		e, err := precede(r.Body, messages)
		if err != nil {
			return nil, err
		}
		edits = append(edits, e)
	}
	return insert(r.Body, edits), nil
}

func split(contexts []Context) (texts, messages []Context) {
	for _, c := range contexts {
		if c.Kind == ledger.Text {
			texts = append(texts, c)
		} else {
			messages = append(messages, c)
		}
	}
	return texts, messages
}

// instruct puts texts in front of the instructions.
func instruct(body []byte, texts []Context, domain []byte) (insertion, error) {
	var w writer
	at, ok := field(body, "instructions")
	switch {
	case !ok:
		start := 0
		for body[start] != '{' {
			start++
		}
		w.str(`"instructions":"`)
		w.texts(texts, domain, "")
		w.str(`",`) // a request has a model
		return insertion{span{start + 1, start + 1}, w.parts}, nil
	case body[at.start] == 'n':
		w.str(`"`)
		w.texts(texts, domain, "")
		w.str(`"`)
		return insertion{at, w.parts}, nil
	case body[at.start] == '"':
		w.texts(texts, domain, before(at))
		return insertion{span{at.start + 1, at.start + 1}, w.parts}, nil
	}
	return insertion{}, fmt.Errorf("%w: the instructions are no text", ErrUnsupported)
}

// precede puts messages in front of the input.
func precede(body []byte, messages []Context) (insertion, error) {
	at, ok := field(body, "input")
	var w writer
	for i, c := range messages {
		if i > 0 {
			w.str(",")
		}
		w.context(c)
	}
	switch {
	case ok && body[at.start] == '"':
		w.parts = append(Body{[]byte("[")}, w.parts...)
		w.str(`,{"role":"user","content":`)
		w.raw(body[at.start:at.end])
		w.str("}]")
		return insertion{at, w.parts}, nil
	case ok && body[at.start] == '[':
		if len(elements(body, at)) > 0 {
			w.str(",")
		}
		return insertion{span{at.start + 1, at.start + 1}, w.parts}, nil
	}
	return insertion{}, fmt.Errorf("%w: the input is no list", ErrUnsupported)
}
