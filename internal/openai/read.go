package openai

import (
	"bytes"
	"strings"

	"signalbox/internal/signal"
)

// Whatever a body holds is read, unless it is exempt (exempt.go) or a word of the API (words.go):
// what servers make of a member that nobody here knows is not known either. Strings become texts of
// their own, but for short ones in places where most are names: these, and the names of members,
// are read together as one text of the member or the message that they are in, a line each. Each
// text that is read costs a part of a pass, and schemas made by programs have a title for every
// field.

// longestName is up to how many bytes a string is short.
const longestName = 32

// as says whose the texts are that are kept from now on, outside of messages.
func (p *chatParser) as(role string, from signal.Origin) *chatParser {
	p.role, p.origin = role, from
	return p
}

// keep keeps a text of the message being read, or of whom as has named.
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

// keepShort keeps the short strings since it was last called as one text.
func (p *chatParser) keepShort() {
	if len(p.list) > 0 {
		p.add(text{text: string(p.list), list: true})
		p.list = p.list[:0]
	}
}

// other reads a member that is not one of names, which are those that the object around it may
// have.
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

// short keeps a string that is most likely a name.
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

// shortString reads a string that is most likely a name, which is next.
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

// anything reads a value of which most strings are names, and keeps all of it. A description is a
// text of its own.
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

// harvest reads a value of which every string is a text.
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

// texts is harvest for values that have members of the API among others: what steers it is short,
// and pictures and recordings are no text.
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

// steers reports whether a member of this name mostly steers the API.
func steers(name string) bool {
	switch name {
	case "type", "status", "role":
		return true
	}
	return false
}

// isID reports whether a member of this name mostly holds what a program called something.
func isID(name string) bool {
	switch name {
	case "id", "call_id", "tool_call_id", "file_id":
		return true
	}
	return false
}

// identifier is anything for a member that holds an ID. One that a program made is no text: each
// call of a tool has another, and each would cost a part of a pass.
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
	longestID   = 48 // bytes behind the prefix
	digitsOfOne = 8  // one after another: those of a card, an account or a telephone are more
)

// madePrefixes are what servers and clients put before IDs of calls, results, responses and files.
//
//nolint:gochecknoglobals // constant table
var madePrefixes = []string{
	"chatcmpl-tool-", "chatcmpl-", "call_", "call-", "toolu_", "tooluse_", "tool_", "fc_", "fcr_", "msg_", "resp_", "rs_",
	"item_", "file-", "file_", "ctc_", "ws_", "run_", "step_",
}

// isMade reports whether s, the inside of a JSON string, is an ID that a program made: a UUID, or letters
// and digits in one piece behind a prefix of such IDs. There is no room for a sentence, the number of
// a card or a key of an API in it.
func isMade(s []byte) bool {
	for _, prefix := range madePrefixes {
		if rest, ok := bytes.CutPrefix(s, []byte(prefix)); ok {
			return isUUID(rest) || len(rest) > 0 && len(rest) <= longestID && onePiece(rest)
		}
	}
	return isUUID(s)
}

// onePiece reports whether s is letters and digits, with no number that is long.
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

// isAddress reports whether a member of this name mostly holds an image, a sound or a file, or says
// where one is.
func isAddress(name string) bool {
	switch name {
	case "url", "data", "image_url", "audio_url", "video_url", "file_url", "file_data":
		return true
	}
	return false
}

// address reads a string that is a text, unless it holds a file as bytes.
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

// minFile is from how many bytes on base64 is taken for that of a file: a text that is not meant to
// be decoded could not be read, and any other is shorter.
const minFile = 1024

// IsFile reports whether s, the inside of a JSON string, is the bytes of a file: a data URL (RFC
// 2397) in base64, or base64 alone, of 1024 bytes and more. Of another data URL, and of less, it
// reports false.
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

// plainType reports whether s can be the type of a data URL, and is not long enough for more.
func plainType(s []byte) bool {
	const longest = 80
	return len(s) <= longest && bytes.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') &&
			!strings.ContainsRune("0123456789/.+-;=", r)
	}) < 0
}

// isBase64 reports whether c occurs in base64 inside of a JSON string, where a slash may be
// escaped.
func isBase64(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' ||
		c == '=' || c == '-' || c == '_' || c == '\\'
}

// isMedium reports whether a member of a content part holds an image, a sound, a video or a file.
func isMedium(name string) bool { return exempt(inPart, name) }

// medium reads the value of such a member. Where the bytes are, or what they are, is not read.
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
