package memory

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// canonical is content in the form in which it is stored and sent.
type canonical struct {
	kind     ledger.Kind
	fragment []byte
	text     string // the input of Derive
}

// canon brings content into its canonical form. Text is kept byte for byte, with the shortest JSON
// escapes. Messages lose white space, their members are sorted by name, and non-integer numbers
// take the form of RFC 8785. Errors are *InvalidError.
func canon(c Content) (canonical, error) {
	switch {
	case c.Text != "" && len(c.Messages) > 0:
		return canonical{}, &InvalidError{Field: "content", Reason: "and messages exclude each other"}
	case c.Text != "":
		return canonText(c.Text)
	case len(c.Messages) > 0:
		return canonMessages(c.Messages)
	}
	return canonical{}, &InvalidError{Field: "content", Reason: "or messages must be given"}
}

func canonText(text string) (canonical, error) {
	if !utf8.ValidString(text) {
		return canonical{}, &InvalidError{Field: "content", Reason: "is not valid UTF-8"}
	}
	return canonical{kind: ledger.Text, fragment: escape(make([]byte, 0, len(text)+len(text)/16), text), text: text}, nil
}

func canonMessages(list []byte) (canonical, error) {
	r, err := parseMessages(list)
	if err != nil {
		return canonical{}, err
	}
	var out []byte
	for i, m := range r.Messages {
		v := jsontext.Value(bytes.Clone(r.Raw[m.Span.Start:m.Span.End]))
		if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
			return canonical{}, &InvalidError{Field: "messages", Reason: "cannot be brought into canonical form"}
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	// of the canonical form, because its order is that of the members
	text, err := textOf(ledger.Messages, [][]byte{out})
	return canonical{kind: ledger.Messages, fragment: out, text: text}, err
}

// parseMessages parses a list of messages like a chat completion.
func parseMessages(list []byte) (*openai.Request, error) {
	if v := jsontext.Value(list); v.Kind() != '[' || !v.IsValid() {
		return nil, &InvalidError{Field: "messages", Reason: "must be a JSON list"}
	}
	const head = `{"model":"none","messages":`
	body := append(append(append(make([]byte, 0, len(head)+len(list)+1), head...), list...), '}')
	r, err := openai.ParseChat(body, openai.Limits{})
	if err == nil {
		return r, nil
	}
	reason := "are not a list of chat messages"
	if wire := (*openai.Error)(nil); errors.As(err, &wire) {
		reason = "are refused: " + wire.Message
	}
	return nil, &InvalidError{Field: "messages", Reason: reason}
}

func plainText(r *openai.Request) string {
	t := r.Text()
	var b strings.Builder
	for i, s := range t.Segments {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s.Text)
	}
	return b.String()
}

// textOf returns the text of stored content.
func textOf(kind ledger.Kind, fragments [][]byte) (string, error) {
	joined := join(kind, fragments)
	if kind == ledger.Messages {
		r, err := parseMessages(append(append([]byte{'['}, joined...), ']'))
		if err != nil {
			return "", err
		}
		return plainText(r), nil
	}
	text, err := jsontext.AppendUnquote(make([]byte, 0, len(joined)), append(append([]byte{'"'}, joined...), '"'))
	if err != nil {
		return "", &InvalidError{Field: "content", Reason: "is no JSON"}
	}
	return string(text), nil
}

// glue returns the separator between segments of a kind.
func glue(kind ledger.Kind) []byte {
	if kind == ledger.Messages {
		return []byte{','}
	}
	return nil
}

func join(kind ledger.Kind, fragments [][]byte) []byte { return bytes.Join(fragments, glue(kind)) }

// sumOf returns the sum of the joined fragments, without joining them.
func sumOf(kind ledger.Kind, fragments [][]byte) blob.Sum {
	h := sha256.New()
	for i, f := range fragments {
		if i > 0 {
			h.Write(glue(kind))
		}
		h.Write(f)
	}
	return blob.Sum(h.Sum(nil))
}
