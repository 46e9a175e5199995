// Package prefix inserts contexts into requests so that all requests with the same contexts begin,
// after the model server's template, with the same bytes; only then can the server reuse its prefix
// cache.
//
// The order is fixed: contexts in the order of the request, the proxy's prompt (domain prompt), the
// caller's own system text, history, question. Texts are joined by Separator and share one leading
// message with the system text. Nothing that varies between requests precedes the end of the
// contexts. Contexts that are messages remain messages; the system text follows them in a message
// of its own.
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

// Separator separates texts. It is part of the format: changing it would change every prefix.
const Separator = "\n\n"

// separator is Separator inside a JSON string.
const separator = `\n\n`

// ErrUnsupported reports that contexts cannot be inserted into this kind of request.
var ErrUnsupported = errors.New("contexts cannot be inserted into this request")

// Role is the role of the leading message.
type Role uint8

const (
	// System is for templates that accept a system message, which most do.
	System Role = iota
	// User is for templates that do not; the caller's system text moves into the message.
	User
)

// String returns the role as used in messages.
func (r Role) String() string {
	if r == User {
		return "user"
	}
	return "system"
}

// Context is one context in its canonical form, as in memory.Snapshot.
type Context struct {
	Kind      ledger.Kind
	Fragments [][]byte // consecutive parts; those of messages are joined by commas
}

// Request holds the parts of a compiled body.
type Request struct {
	API      openai.API
	Body     []byte    // an accepted request, without the proxy's object
	Contexts []Context // in order
	Domain   string    // the proxy's prompt, empty for none
	Role     Role
}

// Compile inserts contexts and domain prompt into a body. Without both it returns the body
// unchanged. The result refers to the request's slices, which must not be modified while it is in
// use. Errors wrap ErrUnsupported.
//
// In a Completion everything is inserted before the prompt, or before each prompt; token ids and
// contexts that are messages are not supported. In a Response texts are inserted before the
// instructions and messages before the input; different instructions then lead to different
// prefixes for contexts that are messages.
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

// quote returns a text as the inside of a JSON string.
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

// texts writes everything before a string: contexts that are texts, and the domain prompt, with
// separators between them and last after them.
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

// before returns the separator before a JSON string, if that is not empty.
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

// instruct inserts texts before the instructions.
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
		w.str(`",`) // a request always has a model
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

// precede inserts messages before the input.
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
