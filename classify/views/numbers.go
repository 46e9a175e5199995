package views

import "strings"

// minNumbers is the minimum length of a list of character codes.
const minNumbers = 6

// numbers decodes a list of character codes that starts at byte start: "105 103 110", "69 67 6e",
// "0x69, 0x67", "01101001 01100111", "151 147 156". Base 10, 2, 16 and 8 are tried in this order.
func (r *reading) numbers(start int) {
	for start < len(r.text) && classOf[r.text[start]] == isMark {
		start++
	}
	if start < r.done {
		return
	}
	list, stop := r.numberList(start)
	if len(list) < minNumbers {
		return
	}
	// Whether or not it is text, no number in it starts another list.
	r.done = stop
	for _, base := range [...]int{10, 2, 16, 8} {
		raw, ok := codes(list, base)
		if !ok {
			continue
		}
		if s, ok := r.readable(raw); ok && (!printable(s) || hasWord(s) || r.depth == 0 && len(s) >= sureBlob && !isText(s)) {
			r.payload(s)
			return
		}
	}
}

// numberList splits the numbers from byte i on, with one or two separators between them, and
// returns the end of the last one.
func (r *reading) numberList(i int) (list []string, stop int) {
	text := r.text
	for i < len(text) {
		from := i
		if i+2 < len(text) && text[i] == '0' && (text[i+1] == 'x' || text[i+1] == 'b') {
			from, i = i+2, i+2
		}
		for i < len(text) && digit(text[i]) >= 0 && i-from < 9 {
			i++
		}
		if n := i - from; n < 2 || n > 8 || i < len(text) && (classOf[text[i]]&(isLetter|isDigit|isForeign) != 0) {
			break
		}
		list, stop = append(list, text[from:i]), i
		gap := i
		for i < len(text) && i-gap < 2 && strings.IndexByte(" ,;:-\n\t|", text[i]) >= 0 {
			i++
		}
		if i == gap {
			break
		}
	}
	return list, stop
}

// codes parses the numbers in a base, if all of them are bytes written with the usual number of
// digits.
func codes(list []string, base int) (raw []byte, ok bool) {
	for _, s := range list {
		switch {
		case base == 2 && len(s) != 8 && len(s) != 7,
			base == 8 && len(s) != 3,
			base == 10 && len(s) > 3,
			base == 16 && len(s) != 2:
			return nil, false
		}
		v := 0
		for i := range len(s) {
			d := int(digit(s[i]))
			if d >= base {
				return nil, false
			}
			v = v*base + d
		}
		if v > 255 {
			return nil, false
		}
		raw = append(raw, byte(v))
	}
	return raw, true
}

// morseRun is a sequence of tokens of dots and dashes.
type morseRun struct {
	start, stop, count int
}

// minMorse is the minimum number of signs that are decoded.
const minMorse = 5

func isMorse(token string) bool {
	for i := range len(token) {
		switch token[i] {
		case '.', '-', '_', '/', '|':
		default:
			return false
		}
	}
	return token != ""
}

func (m *morseRun) add(r *reading, start, end int) {
	r.singles.end(r)
	if m.count == 0 {
		m.start = start
	}
	m.count++
	m.stop = end
}

func (m *morseRun) end(r *reading) {
	if m.count == 0 {
		return
	}
	count := m.count
	m.count = 0
	if count < minMorse {
		return
	}
	if s, ok := decodeMorse(r.text[m.start:m.stop]); ok {
		r.payload(s)
	}
}

// morseCode is the international code of ITU-R M.1677-1, letters and digits.
//
//nolint:gochecknoglobals // constant table
var morseCode = map[string]byte{
	".-": 'a', "-...": 'b', "-.-.": 'c', "-..": 'd', ".": 'e', "..-.": 'f', "--.": 'g', "....": 'h', "..": 'i', ".---": 'j', "-.-": 'k', ".-..": 'l',
	"--": 'm', "-.": 'n', "---": 'o', ".--.": 'p', "--.-": 'q', ".-.": 'r', "...": 's', "-": 't', "..-": 'u', "...-": 'v', ".--": 'w', "-..-": 'x',
	"-.--": 'y', "--..": 'z', "-----": '0', ".----": '1', "..---": '2', "...--": '3', "....-": '4', ".....": '5', "-....": '6', "--...": '7', "---..": '8', "----.": '9',
}

// decodeMorse decodes signs separated by white space, words separated by slashes or bars.
func decodeMorse(signs string) (text string, ok bool) {
	var b strings.Builder
	signs = strings.NewReplacer("/", " / ", "|", " / ", "_", "-").Replace(signs)
	for sign := range strings.FieldsSeq(signs) {
		if sign == "/" {
			b.WriteByte(' ')
			continue
		}
		c, ok := morseCode[sign]
		if !ok {
			if strings.Trim(sign, ".") == "" || strings.Trim(sign, "-") == "" {
				return "", false
			}
			continue // a sign of punctuation
		}
		b.WriteByte(c)
	}
	s := strings.TrimSpace(b.String())
	if allKnown(s) {
		return s, true
	}
	if strings.IndexByte(s, ' ') < 0 && onlyLetters(s) && len(s) <= maxSingles {
		words, share := segment(s)
		return words, share >= minShare && len(s) >= minSingles
	}
	return "", false
}
