package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// scanner walks a body with jsontext, which refuses duplicate names, invalid UTF-8 and lone
// surrogates. It adds limits, byte offsets and errors that name the field at fault.
type scanner struct {
	*scratch

	raw    []byte
	limits Limits
}

// scratch is the memory of a scanner, reused by the next one.
type scratch struct {
	dec  jsontext.Decoder
	body bytes.Buffer // input of dec
	name []byte       // the last member name, decoded; reused
	buf  []byte       // the last string with escapes, decoded; reused
	list []byte       // short strings that are joined, one per line; reused
}

// maxScratch is the maximum size of a body whose scratch is reused, because the scratch retains the
// names of its objects.
const maxScratch = 64 << 10

//nolint:gochecknoglobals // memory that has no owner
var scratches = sync.Pool{New: func() any { return new(scratch) }}

// newScanner returns a scanner at the beginning of raw. The caller must release it.
func newScanner(raw []byte, l Limits) scanner {
	s := scratches.Get().(*scratch) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	// The decoder reads straight from a bytes.Buffer, so its offsets are offsets into raw.
	s.body = *bytes.NewBuffer(raw)
	s.dec.Reset(&s.body)
	s.list = s.list[:0] // parsing of the last body may have been aborted
	return scanner{scratch: s, raw: raw, limits: l}
}

// release returns the scanner's memory. The scanner must not be used afterwards; its results stay
// valid.
func (s *scanner) release() {
	if len(s.raw) > maxScratch {
		return
	}
	s.body = bytes.Buffer{}
	s.dec.Reset(&s.body) // so that the body is not retained
	scratches.Put(s.scratch)
}

// kind returns the kind of the next value without consuming it: n, f, t, ", 0, {, }, [ or ]. At a
// syntax error it returns NUL, and the following read returns the error.
func (s *scanner) kind() byte { return byte(s.dec.PeekKind()) }

// start returns the offset of the next value. Call it after kind has returned the kind of a value.
func (s *scanner) start() int {
	i := int(s.dec.InputOffset())
	for i < len(s.raw) {
		switch s.raw[i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			return i
		}
	}
	return i
}

func (s *scanner) end() int { return int(s.dec.InputOffset()) }

// open consumes the start of an object or array and checks the depth.
func (s *scanner) open() error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	if s.dec.StackDepth() > s.limits.MaxDepth {
		return s.invalid("nested deeper than %d levels", s.limits.MaxDepth)
	}
	return nil
}

// close consumes the end of an object or array.
func (s *scanner) close() error {
	_, err := s.dec.ReadToken()
	return err
}

// members reads an object, the next value: it calls read for the value of each member, whose name
// is in s.name.
func (s *scanner) members(read func() error) error {
	if err := s.open(); err != nil {
		return err
	}
	for {
		_, more, err := s.member()
		if err != nil || !more {
			return err
		}
		if err := read(); err != nil {
			return err
		}
	}
}

// elements reads a list, the next value: it calls read for each element.
func (s *scanner) elements(read func() error) error {
	if err := s.open(); err != nil {
		return err
	}
	for s.kind() != ']' {
		if err := read(); err != nil {
			return err
		}
	}
	return s.close()
}

// member reads the next name of an object into s.name, or the end of the object, for which more is
// false. at is the span of the name with its quotes.
func (s *scanner) member() (at Span, more bool, err error) {
	if s.kind() != '"' {
		return Span{}, false, s.close()
	}
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return Span{}, false, err
	}
	end := s.end()
	at = Span{end - len(quoted), end}
	s.name = appendUnquoted(s.name[:0], quoted)
	if _, n := s.dec.StackIndex(s.dec.StackDepth()); n > 2*int64(s.limits.MaxMembers) {
		return at, false, s.invalid("more than %d members in an object", s.limits.MaxMembers)
	}
	return at, true, nil
}

// skip skips the next value.
func (s *scanner) skip() error {
	base := s.dec.StackDepth()
	for {
		tok, err := s.dec.ReadToken()
		if err != nil {
			return err
		}
		depth := s.dec.StackDepth()
		switch byte(tok.Kind()) {
		case '{', '[':
			if depth > s.limits.MaxDepth {
				return s.invalid("nested deeper than %d levels", s.limits.MaxDepth)
			}
		case '"':
			if kind, n := s.dec.StackIndex(depth); kind == '{' && n > 2*int64(s.limits.MaxMembers) {
				return s.invalid("more than %d members in an object", s.limits.MaxMembers)
			}
		}
		if depth <= base {
			return nil
		}
	}
}

// mistyped skips the next value, so that malformed JSON is reported as such, and returns the error
// that the value should have another type.
func (s *scanner) mistyped(want string) error {
	if err := s.skip(); err != nil {
		return err
	}
	return s.invalid("must be %s", want)
}

func (s *scanner) str() (string, error) {
	if s.kind() != '"' {
		return "", s.mistyped("a string")
	}
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return "", err
	}
	return s.unquote(quoted), nil
}

// minShared is the length in bytes from which a string that makes up most of its body is not
// copied.
const minShared = 16 << 10

// unquote decodes a valid JSON string. A large one that makes up most of the body shares its
// memory, so that retaining it retains at most twice its size. That memory is never written to, see
// Request.Raw.
func (s *scanner) unquote(quoted []byte) string {
	text := quoted[1 : len(quoted)-1]
	shared := len(text) >= max(minShared, cap(s.raw)/2)
	if bytes.IndexByte(text, '\\') < 0 {
		if shared {
			return unsafe.String(unsafe.SliceData(text), len(text)) //nolint:gosec // nobody writes to a body
		}
		return string(text)
	}
	s.buf, _ = jsontext.AppendUnquote(s.buf[:0], quoted) // validated by the decoder
	if shared && len(s.buf) > cap(s.buf)/2 {
		own := s.buf
		s.buf = nil
		return unsafe.String(unsafe.SliceData(own), len(own)) //nolint:gosec // given away above
	}
	return string(s.buf)
}

func (s *scanner) appendStr(b []byte) ([]byte, error) {
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return b, err
	}
	return appendUnquoted(b, quoted), nil
}

// null consumes a null if that is the next value. It leaves malformed literals to the next read.
func (s *scanner) null() bool {
	if s.kind() != 'n' {
		return false
	}
	_, err := s.dec.ReadToken()
	return err == nil
}

func (s *scanner) strOrNull() (string, error) {
	switch s.kind() {
	case '"':
		return s.str()
	case 'n':
		return "", s.skip()
	default:
		return "", s.mistyped("a string or null")
	}
}

func (s *scanner) boolOrNull() (bool, error) {
	switch s.kind() {
	case 't', 'f':
		tok, err := s.dec.ReadToken()
		if err != nil {
			return false, err
		}
		return tok.Kind() == 't', nil
	case 'n':
		return false, s.skip()
	default:
		return false, s.mistyped("true or false")
	}
}

// intOrNull reads an integer in any spelling without a fraction: 16, 16.0 and 1.6e1 are the same
// number to the upstream as well.
func (s *scanner) intOrNull() (*int64, error) {
	switch s.kind() {
	case '0':
	case 'n':
		return nil, s.skip()
	default:
		return nil, s.mistyped("an integer")
	}
	num, err := s.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	if n, err := strconv.ParseInt(string(num), 10, 64); err == nil {
		return &n, nil
	}
	// Beyond 2^53 a float does not identify a single integer.
	f, err := strconv.ParseFloat(string(num), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return nil, s.invalid("must be an integer")
	}
	n := int64(f)
	return &n, nil
}

// finish checks that nothing follows the value.
func (s *scanner) finish() error {
	switch _, err := s.dec.ReadToken(); {
	case err == nil:
		return invalidAt("", "invalid JSON at byte %d: data after the body's object", s.end())
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// invalid returns an error about the value or name that was read last.
func (s *scanner) invalid(format string, args ...any) *Error {
	return invalidAt(param(s.dec.StackPointer()), format, args...)
}

// invalidIn returns an error about a member, present or not, of the current object or array.
func (s *scanner) invalidIn(name, format string, args ...any) *Error {
	at := param(s.dec.StackPointer())
	if at != "" {
		at += "."
	}
	return invalidAt(at+name, format, args...)
}

// invalidAt returns an error about the field at. args must not contain text of the request.
func invalidAt(at, format string, args ...any) *Error {
	plain := fmt.Sprintf(format, args...)
	msg := plain
	if at != "" {
		msg = at + " " + msg
	}
	return &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest, Param: at, Message: msg, Plain: plain}
}

// fold refuses the current name if it differs only by case from a name that is read here. Go's
// encoding/json among others would accept it as that name, Python would not: the two would read
// different requests from the same bytes. Case is Unicode simple folding, so ſ equals s.
func (s *scanner) fold(known []string) error {
	// Folding changes a letter's length from 1 to at most 3 bytes, and no known name is longer.
	if len(s.name) > 3*maxKnownName {
		return nil
	}
	name := string(s.name)
	for _, k := range known {
		if name != k && strings.EqualFold(name, k) {
			return s.invalid("is spelled differently from %q", k)
		}
	}
	return nil
}

// asError turns a syntax error into the error that the client sees.
func asError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	out := &Error{Status: http.StatusBadRequest, Type: TypeInvalidRequest}
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		out.Param = param(se.JSONPointer)
		out.Plain = fmt.Sprintf("invalid JSON at byte %d", se.ByteOffset)
		// the message may quote the body
		out.Message = out.Plain + ": " + strings.TrimPrefix(se.Err.Error(), "jsontext: ")
		return out
	}
	// The remaining case is io.EOF, for a body without a value.
	out.Plain = "invalid JSON at byte 0: empty body"
	out.Message = out.Plain
	return out
}

// maxParam bounds the bytes of a field's name in an error: names come from the client.
const maxParam = 200

// param converts a JSON pointer (RFC 6901) to the notation of API errors: /messages/0/content is
// messages[0].content.
func param(p jsontext.Pointer) string {
	var b strings.Builder
	for tok := range p.Tokens() {
		switch {
		case isIndex(tok):
			b.WriteString("[" + tok + "]")
		case b.Len() > 0:
			b.WriteString("." + tok)
		default:
			b.WriteString(tok)
		}
		if b.Len() > maxParam {
			break
		}
	}
	out := b.String()
	if len(out) <= maxParam {
		return out
	}
	cut := maxParam
	for cut > 0 && !utf8.RuneStart(out[cut]) {
		cut--
	}
	return out[:cut] + "…"
}

func isIndex(tok string) bool { return tok != "" && strings.Trim(tok, "0123456789") == "" }

// appendUnquoted appends the decoded form of a valid JSON string.
func appendUnquoted(b, quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return append(b, quoted[1:len(quoted)-1]...)
	}
	b, _ = jsontext.AppendUnquote(b, quoted) // validated by the decoder
	return b
}
