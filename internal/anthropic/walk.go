package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// walker reads one JSON value level by level. The decoder refuses duplicate names, invalid UTF-8
// and lone surrogates anywhere in it.
type walker struct {
	dec  jsontext.Decoder
	body bytes.Buffer
}

//nolint:gochecknoglobals // memory that has no owner
var walkers = sync.Pool{New: func() any { return new(walker) }}

func takeWalker(raw []byte) *walker {
	w := walkers.Get().(*walker) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	w.body = *bytes.NewBuffer(raw)
	w.dec.Reset(&w.body)
	return w
}

func (w *walker) release() {
	w.body = bytes.Buffer{}
	w.dec.Reset(&w.body) // so that the body is not retained
	walkers.Put(w)
}

// value returns the next value, which aliases raw, the input of the walker.
func (w *walker) value(raw []byte) ([]byte, error) {
	v, err := w.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(w.dec.InputOffset())
	return raw[end-len(v) : end], nil
}

// deeper reports whether objects and lists nest more than levels deep. Invalid JSON is tolerated.
func deeper(raw []byte, levels int) bool {
	for depth := 0; len(raw) > 0; raw = raw[1:] {
		switch raw[0] {
		case '{', '[':
			if depth++; depth > levels {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			raw = raw[stringEnd(raw):]
		}
	}
	return false
}

// stringEnd returns the index of the closing quote of the string at the start of raw, or of raw's
// last byte.
func stringEnd(raw []byte) int {
	for i := 1; ; i++ {
		n := bytes.IndexByte(raw[i:], '"')
		if n < 0 {
			return len(raw) - 1
		}
		i += n
		escapes := 0
		for raw[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// members calls f for each member of an object, which at names in errors. Members that are null are
// skipped, because null means absent.
func members(raw []byte, at string, f func(name string, v []byte) error) error {
	w := takeWalker(raw)
	defer w.release()
	if kind := w.dec.PeekKind(); kind != '{' {
		if _, err := w.value(raw); err != nil {
			return malformed(err)
		}
		if at == "" {
			return bad(at, "the body must be an object")
		}
		return bad(at, "must be an object")
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return malformed(err)
	}
	for w.dec.PeekKind() == '"' {
		tok, err := w.dec.ReadToken()
		if err != nil {
			return malformed(err)
		}
		name := tok.String()
		v, err := w.value(raw)
		if err != nil {
			return malformed(err)
		}
		if v[0] == 'n' {
			continue
		}
		if err := f(name, v); err != nil {
			return err
		}
	}
	if _, err := w.dec.ReadToken(); err != nil {
		return malformed(err)
	}
	switch _, err := w.dec.ReadToken(); {
	case err == nil:
		return bad("", "invalid JSON at byte %d: data after the body's object", w.dec.InputOffset())
	case !errors.Is(err, io.EOF):
		return malformed(err)
	}
	return nil
}

// elements calls f for each element of a list that is valid JSON. at names the list in errors.
func elements(raw []byte, at string, f func(at string, v []byte) error) error {
	if raw[0] != '[' {
		return bad(at, "must be a list")
	}
	w := takeWalker(raw)
	defer w.release()
	if _, err := w.dec.ReadToken(); err != nil {
		return malformed(err)
	}
	for i := 0; w.dec.PeekKind() != ']'; i++ {
		v, err := w.value(raw)
		if err != nil {
			return malformed(err)
		}
		if err := f(at+"["+strconv.Itoa(i)+"]", v); err != nil {
			return err
		}
	}
	return nil
}

// isText reports whether an argument of a message is more than a number, so that it may contain
// text of the request.
func isText(arg any) bool {
	switch arg.(type) {
	case int, int64:
		return false
	}
	return true
}

// bad returns an error about a field.
func bad(at, format string, args ...any) *openai.Error {
	msg, plain := fmt.Sprintf(format, args...), ""
	if !slices.ContainsFunc(args, isText) {
		plain = msg
	}
	if at != "" {
		msg = at + " " + msg
	}
	return &openai.Error{
		Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: at, Message: msg, Plain: plain,
	}
}

// malformed returns the error for a body that is not JSON.
func malformed(err error) error {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e
	}
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		e := bad("", "invalid JSON at byte %d: %s", se.ByteOffset,
			strings.TrimPrefix(se.Err.Error(), "jsontext: "))
		e.Param, e.Plain = openai.FieldOf(err), fmt.Sprintf("invalid JSON at byte %d", se.ByteOffset)
		return e
	}
	return bad("", "invalid JSON at byte 0: empty body")
}

// join returns the path of a member.
func join(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// text checks that a value is a string, and returns it without quotes, still escaped.
func text(v []byte, at string) ([]byte, error) {
	if v[0] != '"' {
		return nil, bad(at, "must be a string")
	}
	return v[1 : len(v)-1], nil
}

// word reads a string that must be one of a few values.
func word(v []byte, at string) (string, error) {
	s, err := text(v, at)
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s), nil
	}
	out, err := jsontext.AppendUnquote(nil, v)
	return string(out), err
}

// flag reads true or false.
func flag(v []byte, at string) (bool, error) {
	switch v[0] {
	case 't', 'f':
		return v[0] == 't', nil
	}
	return false, bad(at, "must be true or false")
}

// whole reads an integer that is at least least.
func whole(v []byte, at string, least int64) (int64, error) {
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < least {
		return 0, bad(at, "must be an integer of at least %d", least)
	}
	return n, nil
}
