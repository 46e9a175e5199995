package response

import "bytes"

// Useless reports that no client can use a whole body of an API that answers in JSON: it is empty,
// something else than JSON or a part of it, or tells of an error of the server's own and nothing
// besides. JSON is not checked further: clients read what is no good JSON, such as NaN.
func Useless(body []byte) bool {
	body = trimmed(body)
	return len(body) == 0 || !begins(body) || cut(body) || tellsFault(body)
}

// BeginsUseless is Useless for the beginning of a body.
func BeginsUseless(part []byte) bool {
	part = trimmed(part)
	return len(part) > 0 && !begins(part)
}

// EndsUseless is Useless for the end of a body, before and last together.
func EndsUseless(before, last []byte) bool {
	if last = bytes.TrimSpace(last); len(last) == 0 {
		last = bytes.TrimSpace(before)
	}
	return len(last) > 0 && last[len(last)-1] != '}' && last[len(last)-1] != ']'
}

// trimmed is a body without blanks around it, and without a mark of its encoding, which clients take.
func trimmed(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
}

func begins(body []byte) bool { return body[0] == '{' || body[0] == '[' }

// cut reports that JSON ends within a string, an array or an object.
func cut(body []byte) bool {
	depth := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			n := stringEnd(body[i+1:])
			if n < 0 {
				return true
			}
			i += 1 + n
		}
	}
	return depth > 0
}

// stringEnd is where a string ends, behind its first quote: the place of the last one, -1 for none.
func stringEnd(b []byte) int {
	for at := 0; ; {
		n := bytes.IndexByte(b[at:], '"')
		if n < 0 {
			return -1
		}
		end, escapes := at+n, 0
		for escapes < n && b[end-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return end
		}
		at = end + 1
	}
}

// tellsFault reports that a body is an error of the server's own.
func tellsFault(body []byte) bool {
	_, rest, ok := bytes.Cut(body, []byte(`"error"`))
	if !ok || bytes.HasPrefix(bytes.TrimLeft(rest, ": \t\r\n"), []byte("null")) { // as in every response
		return false
	}
	e := new(Reader).ReadBody(body)
	return e.ownFault() && len(e.layout.choices) == 0
}
