package views

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"unicode/utf16"
)

const (
	// minBlob is the minimum length of base64 that is decoded if the result consists of known
	// words.
	minBlob = 8
	// sureBlob is the minimum length of base64 that is decoded if the result is any text.
	sureBlob = 16
	// minHex is the minimum number of hexadecimal digits that are decoded.
	minHex = 12
	// minBits is the minimum number of binary digits that are decoded.
	minBits = 32
	// brokenLine is the minimum length of a line after which a run may continue on the next.
	brokenLine = 32
)

// inBlob marks the characters of base64, base64url and what is written with fewer of them.
//
//nolint:gochecknoglobals // constant table
var inBlob = func() (t [256]bool) {
	for c := range t {
		t[c] = letterOf[c] != 0 || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
	}
	return t
}()

// blobs decodes the runs of base64 and similar encodings that start in a token. A run that fills
// its line continues on the next.
func (r *reading) blobs(start, end int) {
	for i := max(start, r.done); i < end; {
		if !inBlob[r.text[i]] {
			i++
			continue
		}
		j := blobEnd(r.text, i)
		if j-i < minBlob {
			i = j
			continue
		}
		if j-i >= brokenLine {
			if stop := r.broken(j); stop > j {
				r.lines(i, stop)
				i = stop
				continue
			}
		}
		if s, ok := r.decodeBlob(r.text[i:j]); ok {
			r.payload(s)
			r.done = j
		}
		i = j
	}
}

// lines decodes a run of several lines as a whole or, if that is not an encoding, line by line.
func (r *reading) lines(start, stop int) {
	r.done = stop
	parts := strings.Fields(r.text[start:stop])
	if s, ok := r.decodeBlob(strings.Join(parts, "")); ok {
		r.payload(s)
		return
	}
	for _, part := range parts {
		if len(part) < minBlob {
			continue
		}
		if s, ok := r.decodeBlob(part); ok {
			r.payload(s)
		}
	}
}

// blobEnd returns the end of the run at i, including its padding.
func blobEnd(text string, i int) int {
	for i < len(text) && inBlob[text[i]] {
		i++
	}
	for range 6 { // base32 has up to six
		if i < len(text) && text[i] == '=' {
			i++
		}
	}
	return i
}

// broken returns the end of a run that ends at i but may continue on the following lines.
func (r *reading) broken(i int) int {
	text := r.text
	for i < len(text) && (text[i] == '\n' || text[i] == '\r') {
		from := i + 1
		if text[i] == '\r' && from < len(text) && text[from] == '\n' {
			from++
		}
		to := blobEnd(text, from)
		if to-from < 2 || to < len(text) && classOf[text[to]] != isSpace {
			break
		}
		i = to
		if to-from < brokenLine {
			break
		}
	}
	return i
}

// decodeBlob decodes a run of letters, digits and +/-_= to text.
func (r *reading) decodeBlob(blob string) (text string, ok bool) {
	if len(blob) > minHex && blob[0] == '0' && blob[1]|0x20 == 'x' {
		blob = blob[2:]
	}
	if s, ok := r.decodeWhole(blob); ok {
		return s, true
	}
	// A path, or words joined by slashes: its longest part may be encoded.
	if strings.IndexByte(blob, '/') < 0 || len(blob) > 4096 {
		return "", false
	}
	longest := ""
	for part := range strings.SplitSeq(blob, "/") {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if len(longest) < minBlob {
		return "", false
	}
	return r.decodeWhole(longest)
}

// alphabets is the set of characters in a run.
type alphabets struct {
	bits, hexadecimal, upper32, lower32, url bool
	lower, upper, digit                      bool // the kinds of characters it contains
}

func (r *reading) decodeWhole(blob string) (text string, ok bool) {
	bare := strings.TrimRight(blob, "=")
	a := alphabetsOf(bare)
	if a.bits && len(bare) >= minBits && len(bare)%8 == 0 {
		if s, ok := r.decodeBits(bare); ok {
			return s, true
		}
	}
	if a.hexadecimal && len(bare) >= minHex && len(bare)%2 == 0 {
		if raw, err := hex.DecodeString(bare); err == nil {
			if s, ok := r.readable(raw); ok {
				return s, true
			}
		}
	}
	if !a.mixed() {
		return "", false
	}
	if (a.upper32 || a.lower32) && len(bare) >= sureBlob {
		raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(bare))
		if err == nil {
			if s, ok := r.readable(raw); ok {
				return s, true
			}
		}
	}
	return r.decode64(bare, a.url)
}

// mixed reports whether a run has letters of both cases, or digits among letters: words and numbers
// do not, encodings of 8 bytes or more nearly always do.
func (a alphabets) mixed() bool {
	return a.lower && a.upper || a.digit && (a.lower || a.upper)
}

func alphabetsOf(s string) alphabets {
	a := alphabets{bits: true, hexadecimal: true, upper32: true, lower32: true}
	for i := range len(s) {
		c := s[i]
		lower, upper := c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z'
		digit := c >= '0' && c <= '9'
		a.bits = a.bits && (c == '0' || c == '1')
		a.lower, a.upper, a.digit = a.lower || lower, a.upper || upper, a.digit || digit
		a.hexadecimal = a.hexadecimal && (digit || c|0x20 >= 'a' && c|0x20 <= 'f')
		five := c >= '2' && c <= '7'
		a.upper32 = a.upper32 && (upper || five)
		a.lower32 = a.lower32 && (lower || five)
		a.url = a.url || c == '-' || c == '_'
	}
	return a
}

//nolint:revive // flag-parameter: which of two alphabets
func (r *reading) decode64(bare string, url bool) (text string, ok bool) {
	if len(bare)%4 == 1 {
		bare = bare[:len(bare)-1]
	}
	if len(bare) < minBlob || len(bare) < sureBlob && !maybeASCII(bare) {
		return "", false
	}
	enc := base64.RawStdEncoding
	if url {
		enc = base64.RawURLEncoding
	}
	// Most runs are not text; the beginning shows that.
	var sample [24]byte
	n, err := enc.Decode(sample[:], []byte(bare[:min(len(bare)&^3, 32)]))
	if err != nil || !noControls(sample[:n]) {
		return "", false
	}
	raw, err := enc.DecodeString(bare)
	if err != nil {
		return "", false
	}
	s, ok := r.readable(raw)
	if !ok || len(bare) < sureBlob && !allKnown(s) {
		return "", false
	}
	return s, true
}

// maybeASCII reports whether base64 can encode printable ASCII: the first of every four characters
// holds the top six bits of a byte from 0x20 to 0x7f.
func maybeASCII(blob string) bool {
	for i := 0; i < len(blob); i += 4 {
		if c := blob[i]; (c < 'I' || c > 'Z') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// noControls reports whether bytes may be text in UTF-8, or in UTF-16 with every other byte zero.
func noControls(raw []byte) bool {
	odd := 0
	for i, c := range raw {
		switch {
		case c == 0 && i%2 == 1:
			odd++
		case c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f:
			return false
		}
	}
	return odd == 0 || odd >= len(raw)/2-1
}

// readable returns bytes as text if they are text, or if they contain another layer of encoded
// text.
func (r *reading) readable(raw []byte) (text string, ok bool) {
	text, ok = readable(raw)
	if ok || r.depth+1 >= maxDepth || len(text) < sureBlob || !printable(text) {
		return text, ok
	}
	inner := reading{text: text, depth: r.depth + 1}
	inner.run()
	return text, inner.edited() != text || len(inner.payloads) > 0
}

// printable reports whether a text is printable ASCII and white space.
func printable(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= 0x7f || c < ' ' && classOf[c] != isSpace {
			return false
		}
	}
	return true
}

// readable returns bytes as text and whether they are text.
func readable(raw []byte) (text string, ok bool) {
	if len(raw) >= 8 && raw[1] == 0 && raw[3] == 0 {
		units := make([]uint16, len(raw)/2)
		for i := range units {
			units[i] = uint16(raw[2*i]) | uint16(raw[2*i+1])<<8
		}
		raw = []byte(string(utf16.Decode(units)))
	}
	s := strings.TrimRight(string(raw), "\n\r\t \x00")
	return s, isText(s)
}

func (r *reading) decodeBits(bits string) (text string, ok bool) {
	raw := make([]byte, len(bits)/8)
	for i := range bits {
		raw[i/8] = raw[i/8]<<1 | bits[i]&1
	}
	return r.readable(raw)
}
