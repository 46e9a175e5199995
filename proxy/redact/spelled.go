package redact

// Models that write Markdown escape its special characters: \[EMAIL_1\], [PERSON\_1]. Such a
// placeholder is restored like a plain one. In the JSON of a response each of these backslashes is
// written as two; in the arguments of a call, which are JSON inside a string, as four.

// maxEscape is the maximum number of backslashes on the wire that escape one character.
const maxEscape = 4

// escapes returns the number of backslashes at the beginning of b, at most maxEscape+1.
func escapes(b []byte) int {
	n := 0
	for n < len(b) && n <= maxEscape && b[n] == '\\' {
		n++
	}
	return n
}

// isEscape reports whether n backslashes are none, or escape one character.
func isEscape(n int) bool { return n <= maxEscape && n%2 == 0 }

// at examines b, the contents of a JSON string from a '[' or an unescaped backslash on. If b begins
// with a placeholder, it returns its secret and length. Otherwise partial reports whether all of b
// may still become one. Leading backslashes belong to a placeholder only if its closing bracket has
// as many: those of C:\[PERSON_1] belong to the path.
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

// read is at for text that begins with a bracket; shut is the number of backslashes before the
// closing bracket.
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

// goesOn reports whether front continues a placeholder when its last character, which it
// overwrites, is one of the characters that Markdown escapes.
func (v *Vault) goesOn(front []byte) bool {
	last := &front[len(front)-1]
	*last = '_'
	if _, ok := v.prefixes[string(front)]; ok {
		return true
	}
	*last = ']'
	return v.secrets[string(front)] != nil
}

// unescaped removes the backslashes from the beginning of a placeholder, which contains no other
// escapes. It overwrites front.
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
