package openai

import (
	"bytes"
	"strings"

	"signalbox/internal/signal"
)

// Everything in a body is read, unless it is exempt (exempt.go) or a word of the API (words.go),
// because servers may show a model any unknown member. Strings become texts of their own, except
// short strings in places where most strings are names. These, and the names of members, are joined
// into one text per message or member of the body, one per line: each text costs a part of a
// classifier pass, and generated schemas have a title for every field.

// longestName is the maximum length in bytes of a short string.
const longestName = 32

// as sets the role and origin of texts outside of messages that are kept from now on.
func (p *chatParser) as(role string, from signal.Origin) *chatParser {
	p.role, p.origin = role, from
	return p
}

// keep adds a text of the current message, or with the role and origin set by as.
func (p *chatParser) keep(t string) { p.add(text{text: t}) }

func (p *chatParser) add(t text) {
	if p.inMessage {
		t.message = len(p.req.Messages) - 1
		p.req.texts = append(p.req.texts, t)
		return
	}
	t.role, t.origin = p.role, p.origin
	p.req.loose = append(p.req.loose, t)
}

// keepShort adds the short strings collected since its last call as one text.
func (p *chatParser) keepShort() {
	if len(p.list) > 0 {
		p.add(text{text: string(p.list), list: true})
		p.list = p.list[:0]
	}
}

// other reads a member that is not one of names, the known members of the enclosing object.
func (p *chatParser) other(names []string) error {
	if err := p.fold(names); err != nil {
		return err
	}
	return p.named(p.anything)
}

// otherField is other for a member of the body itself.
func (p *chatParser) otherField(names []string) error {
	if exempt(inBody, string(p.name)) {
		return p.skip()
	}
	return p.other(names)
}

// named keeps the name of a member; read reads its value.
func (p *chatParser) named(read func() error) error {
	if err := p.short(p.name); err != nil {
		return err
	}
	return read()
}

// short keeps a string that is probably a name.
func (p *chatParser) short(t []byte) error {
	switch {
	case len(t) == 0 || IsWord(t):
		return nil
	case len(t) > longestName || bytes.IndexByte(t, '\n') >= 0:
		if err := p.countPart(); err != nil {
			return err
		}
		p.keep(string(t))
		return nil
	}
	if len(p.list) > 0 {
		p.list = append(p.list, '\n')
	}
	p.list = append(p.list, t...)
	return nil
}

// shortString reads the next value, a string that is probably a name.
func (p *chatParser) shortString() error {
	quoted, err := p.dec.ReadValue()
	if err != nil {
		return err
	}
	t := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(t, '\\') >= 0 {
		p.buf = appendUnquoted(p.buf[:0], quoted)
		t = p.buf
	}
	return p.short(t)
}

// anything reads a value in which most strings are names, and keeps all of it. A description
// becomes a text of its own.
func (p *chatParser) anything() error {
	switch p.kind() {
	case '"':
		return p.shortString()
	case '[':
		return p.elements(p.anything)
	case '{':
		return p.members(func() error {
			if string(p.name) == "description" && p.kind() == '"' {
				return p.harvest()
			}
			return p.named(p.anything)
		})
	default:
		return p.skip()
	}
}

// harvest reads a value and keeps every string in it as a text.
func (p *chatParser) harvest() error {
	switch p.kind() {
	case '"':
		if err := p.countPart(); err != nil {
			return err
		}
		t, err := p.str()
		if err == nil && t != "" {
			p.keep(t)
		}
		return err
	case '[':
		return p.elements(p.harvest)
	case '{':
		return p.members(func() error { return p.named(p.harvest) })
	default:
		return p.skip()
	}
}

// texts is harvest for values that contain members of the API among others: control values are
// treated as short strings, and images and recordings are not text.
func (p *chatParser) texts() error {
	switch p.kind() {
	case '[':
		return p.elements(p.texts)
	case '{':
		return p.members(func() error {
			switch name := string(p.name); {
			case isID(name) && p.kind() == '"':
				return p.identifier()
			case steers(name) && p.kind() == '"':
				return p.shortString()
			case isAddress(name) && p.kind() == '"':
				return p.address()
			}
			return p.named(p.texts)
		})
	default:
		return p.harvest()
	}
}

// steers reports whether a member of this name usually is a control value of the API.
func steers(name string) bool {
	switch name {
	case "type", "status", "role":
		return true
	}
	return false
}

// isID reports whether a member of this name usually holds an identifier.
func isID(name string) bool {
	switch name {
	case "id", "call_id", "tool_call_id", "file_id":
		return true
	}
	return false
}

// identifier is anything for a member that holds an identifier. Identifiers made by a program are
// not kept as text: each tool call has another one, and each would cost a part of a pass.
func (p *chatParser) identifier() error {
	if p.kind() != '"' {
		return p.anything()
	}
	quoted, err := p.dec.ReadValue()
	if err != nil || isMade(quoted[1:len(quoted)-1]) {
		return err
	}
	return p.short([]byte(p.unquote(quoted)))
}

const (
	longestID   = 48 // bytes after the prefix
	digitsOfOne = 8  // consecutive digits; card, account and telephone numbers have more
)

// madePrefixes are what servers and clients put before IDs of calls, results, responses and files.
//
//nolint:gochecknoglobals // constant table
var madePrefixes = []string{
	"chatcmpl-tool-", "chatcmpl-", "call_", "call-", "toolu_", "tooluse_", "tool_", "fc_", "fcr_", "msg_", "resp_", "rs_",
	"item_", "file-", "file_", "ctc_", "ws_", "run_", "step_",
}

// isMade reports whether s, the inside of a JSON string, is an identifier made by a program: a
// UUID, or letters and digits without separators after a known prefix. The accepted length leaves
// no room for a sentence, a card number or an API key.
func isMade(s []byte) bool {
	for _, prefix := range madePrefixes {
		if rest, ok := bytes.CutPrefix(s, []byte(prefix)); ok {
			return isUUID(rest) || len(rest) > 0 && len(rest) <= longestID && onePiece(rest)
		}
	}
	return isUUID(s)
}

// onePiece reports whether s consists of letters and digits, without a long number.
func onePiece(s []byte) bool {
	digits := 0
	for _, c := range s {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			digits = 0
		default:
			return false
		}
		if digits > digitsOfOne {
			return false
		}
	}
	return true
}

// isUUID reports whether s has the form of a UUID (RFC 9562, section 4).
func isUUID(s []byte) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range s {
		switch dash := i == 8 || i == 13 || i == 18 || i == 23; {
		case dash != (c == '-'):
			return false
		case !dash && bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) < 0:
			return false
		}
	}
	return true
}

// isAddress reports whether a member of this name usually holds an image, audio or a file, or its
// URL.
func isAddress(name string) bool {
	switch name {
	case "url", "data", "image_url", "audio_url", "video_url", "file_url", "file_data":
		return true
	}
	return false
}

// address reads a string and keeps it as text, unless it is the bytes of a file.
func (p *chatParser) address() error {
	quoted, err := p.dec.ReadValue()
	if err != nil || IsFile(quoted[1:len(quoted)-1]) {
		return err
	}
	if t := p.unquote(quoted); t != "" {
		if err := p.countPart(); err != nil {
			return err
		}
		p.keep(t)
	}
	return nil
}

// minFile is the length in bytes from which base64 is treated as a file: longer text that is not
// meant to be decoded would be unreadable, and other text is shorter.
const minFile = 1024

// IsFile reports whether s, the inside of a JSON string, is the bytes of a file: a base64 data URL
// (RFC 2397), or plain base64, of at least 1024 bytes.
func IsFile(s []byte) bool {
	const scheme, encoding = "data:", ";base64,"
	if len(s) < minFile {
		return false
	}
	if bytes.HasPrefix(s, []byte(scheme)) {
		head := s[:256]
		at := bytes.Index(head, []byte(encoding))
		if at < 0 || !plainType(head[len(scheme):at]) {
			return false
		}
		s = s[at+len(encoding):]
	}
	for _, c := range s {
		if !isBase64(c) {
			return false
		}
	}
	return true
}

// plainType reports whether s can be the media type of a data URL, and is too short to contain
// anything else.
func plainType(s []byte) bool {
	const longest = 80
	return len(s) <= longest && bytes.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
			!strings.ContainsRune("0123456789/.+-;=", r)
	}) < 0
}

// isBase64 reports whether c can occur in base64 inside a JSON string, where a slash may be
// escaped.
func isBase64(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' ||
		c == '=' || c == '-' || c == '_' || c == '\\'
}

// isMedium reports whether a member of a content part holds an image, audio, a video or a file.
func isMedium(name string) bool { return exempt(inPart, name) }

// medium reads the value of such a member. Neither the bytes, nor their URL or type, are kept as
// text.
func (p *chatParser) medium() error {
	switch p.kind() {
	case '[':
		return p.elements(p.medium)
	case '{':
		return p.members(func() error {
			if exempt(inMedium, string(p.name)) {
				return p.skip()
			}
			return p.named(p.anything)
		})
	default:
		return p.skip()
	}
}
