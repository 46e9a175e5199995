package redact

// Models that write Markdown escape what is special in it: \[EMAIL_1\], [PERSON\_1]. Such a
// placeholder is restored as the plain one is. In the JSON of an answer each of these backslashes is
// written as two, and in the arguments of a call, which are JSON inside of a string, as four.

// maxEscape is how many backslashes of an answer, as it stands on the wire, escape one character.
const maxEscape = 4

// escapes returns how many backslashes b begins with; one more than maxEscape stands for all above.
func escapes(b []byte) int {
	n := 0
	for n < len(b) && n <= maxEscape && b[n] == '\\' {
		n++
	}
	return n
}

// isEscape reports whether so many backslashes escape a character, or none stand there.
func isEscape(n int) bool { return n <= maxEscape && n%2 == 0 }

// at looks at a '[' or an unescaped backslash at the front of b, the inside of a JSON string. It
// returns the secret whose placeholder b begins with, and its length there; else partial tells
// whether b, to its end, may still become one. Backslashes in front belong to a placeholder only
// where as many stand in front of its last bracket: those of C:\[PERSON_1] are the path's.
func (v *Vault) at(b []byte) (s *secret, length int, partial bool) {
	opened := escapes(b)
	switch {
	case opened == len(b):
		return nil, 0, opened <= maxEscape && v.longest > 0
	case !isEscape(opened) || b[opened] != '[':
		return nil, 0, false
	}
	s, length, shut, partial := v.read(b[opened:])
	if s == nil || opened != 0 && opened != shut {
		return nil, 0, partial
	}
	return s, opened + length, false
}

// read is at for what begins with a bracket; shut is how many backslashes stand in front of the last
// one.
func (v *Vault) read(b []byte) (s *secret, length, shut int, partial bool) {
	var plain [maxLiteral]byte // without backslashes
	n := 0
	for i := 0; i < len(b); i++ {
		if n == v.longest {
			return nil, 0, 0, false
		}
		shut = escapes(b[i:])
		if i += shut; i == len(b) {
			return nil, 0, 0, shut <= maxEscape && v.goesOn(plain[:n+1])
		}
		if shut > 0 && (!isEscape(shut) || b[i] != '_' && b[i] != ']') {
			return nil, 0, 0, false
		}
		plain[n] = b[i]
		n++
		if b[i] == ']' {
			return v.secrets[string(plain[:n])], i + 1, shut, false
		}
	}
	_, partial = v.prefixes[string(plain[:n])]
	return nil, 0, 0, partial
}

// goesOn reports whether a placeholder has one of the characters that are escaped in the last place
// of front, which is overwritten.
func (v *Vault) goesOn(front []byte) bool {
	last := &front[len(front)-1]
	*last = '_'
	if _, ok := v.prefixes[string(front)]; ok {
		return true
	}
	*last = ']'
	return v.secrets[string(front)] != nil
}

// unescaped is the text of the front of a placeholder, which has no other escapes than backslashes.
// It overwrites front.
func unescaped(front []byte) []byte {
	n := 0
	for i := 0; i < len(front); i++ {
		if front[i] == '\\' && i+1 < len(front) {
			i++
		}
		front[n] = front[i]
		n++
	}
	return front[:n]
}
