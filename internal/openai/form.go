package openai

import (
	"bytes"
	"mime"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"signalbox/internal/signal"
)

// The form fields for which the value may be taken from one field alone. A prompt guides a
// transcription.
const (
	formModel  = "model"
	formPrompt = "prompt"
)

// maxFormField is the maximum length of a field that is read, in bytes, and maxFormHead that of the
// head of a part.
const (
	maxFormField = 64 << 10
	maxFormHead  = 8 << 10
)

// ParseForm reads a multipart/form-data body (RFC 7578) that names a model in the field model, such
// as one with a recording to be transcribed. contentType is the header of the request. The request
// is of kind Other and has media. Text reports all fields that are not files as text of the user,
// prompt last, because it is not known which of them a server shows its model. Not read are the
// members of Exemptions, numbers, words of the API and language tags. A Patch may name another
// model and edit nothing else.
//
// Anything that two readers could understand differently is refused: relevant fields that are
// repeated or spelled in another case, names that need escaping, encoded parts, and anything around
// the parts. A field that is neither a file nor text is refused as well. Any error is an *Error
// with status 400 that names the field at fault, if there is one. raw is retained as by ParseChat.
func ParseForm(contentType string, raw []byte, l Limits) (*Request, error) {
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil || media != "multipart/form-data" || !isBoundary(params["boundary"]) {
		return nil, invalidForm("", "the body must be multipart/form-data, with its boundary in the header Content-Type")
	}
	f := formParser{raw: raw, mark: []byte("--" + params["boundary"]), most: l.orDefault().MaxMembers, req: &Request{API: Other, Raw: raw, SystemIndex: -1, HasMedia: true, form: true}}
	if err := f.parts(); err != nil {
		return nil, err
	}
	if f.req.Model == "" {
		return nil, invalidForm(formModel, "is required")
	}
	f.keep(text{text: strings.Join(f.short, "\n"), list: true})
	f.keep(text{text: f.prompt})
	return f.req, nil
}

// isBoundary reports whether s is a boundary that all readers interpret alike: 1 to 70 characters
// of RFC 2046, section 5.1.1, without spaces.
func isBoundary(s string) bool {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'()+_,-./:=?"
	return len(s) >= 1 && len(s) <= 70 && strings.Trim(s, plain) == ""
}

func invalidForm(field, what string) *Error {
	message := what
	if field != "" {
		message = field + ": " + what
	}
	return Invalid(field, message)
}

// formParser iterates over the parts of a form.
type formParser struct {
	raw  []byte
	mark []byte // the delimiter between parts
	most int    // maximum number of parts
	seen [2]bool
	req  *Request

	short  []string // short values of all fields except the prompt
	prompt string
}

// parts reads all parts. The body must begin with the first delimiter, each part must end before a
// delimiter on a line of its own, and only a line break may follow the last delimiter.
func (f *formParser) parts() error {
	broken := invalidForm("", "the form is malformed")
	if !bytes.HasPrefix(f.raw, f.mark) {
		return broken
	}
	delimiter := append([]byte("\r\n"), f.mark...)
	at := len(f.mark)
	for range f.most {
		rest := f.raw[at:]
		if end, ok := bytes.CutPrefix(rest, []byte("--")); ok {
			if len(end) > 0 && string(end) != "\r\n" {
				return broken
			}
			return nil
		}
		if !bytes.HasPrefix(rest, []byte("\r\n")) {
			return broken
		}
		at += 2
		n := bytes.Index(f.raw[at:], []byte("\r\n\r\n"))
		if n < 0 || n > maxFormHead {
			return broken
		}
		head := f.raw[at : at+n]
		at += n + 4
		size := bytes.Index(f.raw[at:], delimiter)
		// for some readers a delimiter at the start of a value ends it
		if size < 0 || bytes.HasPrefix(f.raw[at:], f.mark) {
			return broken
		}
		if err := f.part(head, Span{at, at + size}); err != nil {
			return err
		}
		at += size + len(delimiter)
	}
	return invalidForm("", "the form has too many parts")
}

func (f *formParser) part(head []byte, value Span) error {
	if bytes.Contains(head, f.mark) {
		return invalidForm("", "the form is malformed")
	}
	name, file, err := formName(head)
	if err != nil {
		return err
	}
	f.req.parts = append(f.req.parts, name)
	for i, known := range [...]string{formModel, formPrompt} {
		switch {
		case name != known && strings.EqualFold(name, known):
			return invalidForm(known, "is given in another case")
		case name != known:
			continue
		case f.seen[i]:
			return invalidForm(known, "is given twice")
		case file:
			return invalidForm(known, "must be text")
		}
		f.seen[i] = true
	}
	if file {
		return nil
	}
	return f.field(name, value)
}

// field reads a field that is not a file.
func (f *formParser) field(name string, value Span) error {
	raw := f.raw[value.Start:value.End]
	switch {
	case formMedia(name):
		return nil
	case len(raw) > maxFormField, !utf8.Valid(raw):
		return invalidForm(name, "must be a file, or text of at most 64 KiB")
	}
	switch s := string(raw); {
	case name == formModel:
		f.req.Model, f.req.modelAt = s, value
	case name == formPrompt:
		f.prompt = s
	case exempt(inBody, name), plainField(name, s):
	case len(s) <= longestName:
		f.short = append(f.short, s)
	default:
		f.keep(text{text: s})
	}
	return nil
}

// keep adds a text of the user.
func (f *formParser) keep(t text) {
	if t.text != "" {
		t.role, t.origin = roleUser, signal.OriginUser
		f.req.loose = append(f.req.loose, t)
	}
}

// formMedia reports whether a field holds recordings, possibly sent as text: reference voices are
// data URLs.
func formMedia(name string) bool {
	return name == "file" || strings.TrimSuffix(name, "[]") == "known_speaker_references"
}

// formWords are the values that fields of transcriptions have beside those of IsWord.
//
//nolint:gochecknoglobals // constant table
var formWords = strings.Fields("true false null srt vtt verbose_json diarized_json word segment server_vad")

// plainField reports whether a value has no meaning for a model: a number, a word of the API, or,
// in language fields, a language tag (RFC 5646, language and region).
func plainField(name, s string) bool {
	if s == "" || IsWord([]byte(s)) || slices.Contains(formWords, s) {
		return true
	}
	if name == "language" || name == "to_language" {
		primary, region, _ := strings.Cut(s, "-")
		return len(primary) <= 3 && len(region) <= 4 && isToken(primary+"x"+region) &&
			!strings.ContainsFunc(primary+region, func(r rune) bool { return r|0x20 < 'a' || r|0x20 > 'z' })
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil && strings.Trim(s, "+-.eE0123456789") == ""
}

// formName parses the head of a part and returns the name of its field, and whether it is a file.
func formName(head []byte) (name string, file bool, err error) {
	broken := invalidForm("", "a part of the form has a malformed head")
	found := false
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		key, value, ok := strings.Cut(string(line), ":")
		if !ok || !isToken(key) || strings.ContainsFunc(value, isControl) {
			return "", false, broken
		}
		switch textproto.CanonicalMIMEHeaderKey(key) {
		case "Content-Transfer-Encoding":
			return "", false, invalidForm("", "a part of the form is in an encoding")
		case "Content-Disposition":
			if found {
				return "", false, broken
			}
			found = true
			if name, file, err = dispositionName(strings.TrimSpace(value)); err != nil {
				return "", false, err
			}
		}
	}
	if !found {
		return "", false, broken
	}
	return name, file, nil
}

// isToken reports whether s is a valid header field name (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	const others = "!#$%&'*+-.^_`|~0123456789"
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(others, r)
	})
}

// isControl reports characters that field values must not contain (RFC 9110, section 5.5); some
// readers refuse the form because of them.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// dispositionName parses form-data; name="x"; filename="y". Escaped or extended names are refused,
// because readers interpret them differently.
func dispositionName(value string) (name string, file bool, err error) {
	broken := invalidForm("", "a part of the form has a malformed name")
	kind, params, perr := mime.ParseMediaType(value)
	if perr != nil || kind != "form-data" {
		return "", false, broken
	}
	name = params["name"]
	if _, after, ok := strings.Cut(value, `name="`); !ok || name == "" || !strings.HasPrefix(after, name+`"`) || strings.Contains(value, `\`) || strings.Count(strings.ToLower(value), "name*") > 0 {
		return "", false, broken
	}
	_, file = params["filename"]
	return name, file, nil
}
