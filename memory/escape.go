package memory

// escape appends text, which must be valid UTF-8, as the inside of a JSON string with the shortest
// escapes: two bytes where JSON has such a form, six for other control characters, nothing else
// (RFC 8259, section 7).
func escape(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for at := plain(text, 0); at < len(text); at = plain(text, from) {
		dst = append(dst, text[from:at]...)
		c := text[at]
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		from = at + 1
	}
	return append(dst, text[from:]...)
}

// plain returns the index of the first byte at or after from that JSON has to escape, or the length of
// text. It examines eight bytes at a time, because texts are long and such bytes are rare: a byte
// of x is below n, at most 128, where x-n borrows from its highest bit and x has none (Anderson,
// "Bit Twiddling Hacks", hasless).
func plain(text string, from int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	at := from
	for ; at+8 <= len(text); at += 8 {
		b := text[at : at+8]
		x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		quote, slash := x^('"'*ones), x^('\\'*ones)
		if ((x-' '*ones)&^x|(quote-ones)&^quote|(slash-ones)&^slash)&highs != 0 {
			break
		}
	}
	for ; at < len(text); at++ {
		if c := text[at]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return at
}
