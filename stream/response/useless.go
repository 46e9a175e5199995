package response

import "bytes"

// Useless reports whether a whole body of a JSON API is of no use to any client: it is empty, not
// JSON or only a part of it, or only an error of the server itself. JSON is not validated further,
// because clients accept some invalid JSON, such as NaN.
func Useless(body []byte) bool {
	body = trimmed(body)
	return len(body) == 0 || !begins(body) || cut(body) || tellsFault(body)
}

// BeginsUseless is Useless for the beginning of a body.
func BeginsUseless(part []byte) bool {
	part = trimmed(part)
	return len(part) > 0 && !begins(part)
}

// EndsUseless is Useless for the end of a body, given by its last two pieces.
func EndsUseless(before, last []byte) bool {
	if last = bytes.TrimSpace(last); len(last) == 0 {
		last = bytes.TrimSpace(before)
	}
	return len(last) > 0 && last[len(last)-1] != '}' && last[len(last)-1] != ']'
}

// trimmed returns a body without surrounding white space and without a byte order mark, which
// clients accept.
func trimmed(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\ufeff")))
}

func begins(body []byte) bool { return body[0] == '{' || body[0] == '[' }

// cut reports whether JSON ends within a string, an array or an object.
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

// stringEnd returns the index of the closing quote of a string that begins before b, or -1.
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

// tellsFault reports whether a body is an error of the server itself.
func tellsFault(body []byte) bool {
	_, rest, ok := bytes.Cut(body, []byte(`"error"`))
	// as in every response
	if !ok || bytes.HasPrefix(bytes.TrimLeft(rest, ": \t\r\n"), []byte("null")) {
		return false
	}
	e := new(Reader).ReadBody(body)
	return e.ownFault() && len(e.layout.choices) == 0
}
