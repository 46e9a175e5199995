package views

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalise undoes disguises that use characters beyond ASCII and returns the payloads hidden in
// invisible characters. ASCII text is returned unchanged.
func normalise(text string) (normal string, hidden []string) {
	n := normaliser{text: text}
	for i := nextForeign(text, 0); i < len(text); i = nextForeign(text, i) {
		i = n.step(i)
	}
	if n.written == 0 && n.b.Len() == 0 {
		return text, n.hidden
	}
	n.b.WriteString(text[n.written:])
	normal = n.b.String()
	if n.splits >= minSplits && n.strays > 0 {
		normal = strings.Map(func(c rune) rune {
			if c == 0xAD || c == 0xFEFF || c >= 0x200B && c <= 0x200F || c == 0x2060 {
				return -1
			}
			return c
		}, normal)
	}
	return normal, n.hidden
}

// normaliser rewrites a text from left to right; b contains the result for everything before
// written.
type normaliser struct {
	text     string
	b        strings.Builder
	written  int
	hidden   []string
	turnedTo int // end of the last line that was rotated
	splits   int // number of words from which invisible characters were removed
	strays   int // number of invisible characters left between words
}

// nextForeign returns the offset of the first byte beyond ASCII from i on.
func nextForeign(text string, i int) int {
	for i < len(text) && text[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// replace replaces text[start:end] by with.
func (n *normaliser) replace(start, end int, with string) {
	n.b.WriteString(n.text[n.written:start])
	n.b.WriteString(with)
	n.written = end
}

// step processes the character at i, the first one beyond ASCII, and returns where to continue.
func (n *normaliser) step(i int) int {
	c, size := utf8.DecodeRuneInString(n.text[i:])
	switch kind := kindOf(c); {
	case kind == kindPlain:
		return i + size
	case kind == kindIgnorable && (i == n.written || letterOf[n.text[i-1]] == 0 || n.endsWord(i, c)):
		return n.invisible(i)
	}
	// The whole word around it, back to the end of what has been processed.
	start := i
	for start > n.written && (classOf[n.text[start-1]]&(isLetter|isDigit) != 0) {
		start--
	}
	end := i
	var w word
	for _, c := range n.text[start:i] {
		w.take(c, kindASCII)
	}
	for end < len(n.text) && end-start < maxWordBytes {
		c, size := utf8.DecodeRuneInString(n.text[end:])
		kind := kindOf(c)
		if c < utf8.RuneSelf && classOf[c]&(isLetter|isDigit) == 0 || kind == kindPlain {
			break
		}
		if kind == kindIgnorable && n.endsWord(end, c) {
			break
		}
		w.take(c, kind)
		end += size
	}
	if w.turned > 0 {
		n.turn(start)
	}
	if w.plain() || w.foreign() && !n.looksLatin(i, end) {
		return max(end, i+size)
	}
	if folded, ok := n.fold(start, end, &w); ok {
		n.splits += min(w.ignorable, 1)
		n.replace(start, end, folded)
	}
	return max(end, i+size)
}

// maxWordBytes is the maximum length of a word; longer ones are folded in parts.
const maxWordBytes = 512

// maxStack is the maximum number of combining marks on one letter in any orthography.
const maxStack = 2

// minRaised is the minimum number of superscripts, subscripts or mathematical letters that may be a
// word.
const minRaised = 3

// minSplit is the minimum number of letters of a word in which invisible characters count as
// hidden.
const minSplit = 3

// minOperators is a number of invisible operators in a word of Latin letters that no formula has.
const minOperators = 4

// operator reports whether a character is an invisible sign of mathematics, such as a
// multiplication sign.
func operator(c rune) bool {
	return c >= 0x2061 && c <= 0x2064
}

// word counts the kinds of characters in a word.
type word struct {
	// ASCII letters, further Latin ones, letters of scripts with look-alikes
	latin, extended, others int
	// variants of letters, and those of them that are superscript or subscript
	compat, raised        int
	operators             int // invisible signs of mathematics, which formulas have between letters
	wide, ignorable       int // full-width letters and digits, invisible characters
	marks, stack, highest int // combining marks, those on this letter, maximum on one letter
	overlays              int
	turned                int
}

func (w *word) take(c rune, kind kind) {
	if kind != kindMark {
		w.stack = 0
	}
	switch kind {
	case kindASCII:
		if letterOf[c&0x7f] != 0 {
			w.latin++
		}
	case kindLatin:
		w.extended++
		if turned(c) {
			w.turned++
		}
	case kindAlike:
		w.others++
	case kindCompat:
		w.compat++
		switch {
		case raised(c):
			w.raised++
		case c >= 0xFF00 && c < 0x10000:
			w.wide++
		}
	case kindIgnorable:
		if operator(c) {
			w.operators++
			break
		}
		w.ignorable++
	case kindMark:
		w.marks++
		w.stack++
		w.highest = max(w.highest, w.stack)
		if c >= 0x334 && c <= 0x338 {
			w.overlays++
		}
	case kindPlain:
	}
}

// plain reports whether a word has nothing to undo: Latin letters, with accents as used in
// orthographies.
func (w *word) plain() bool {
	if w.others > 0 || w.noisy() {
		return false
	}
	letters := w.latin + w.extended + w.compat
	if w.ignorable > 0 && letters >= minSplit || w.operators >= minOperators && w.latin == letters {
		return false
	}
	if w.compat == w.raised || w.compat == letters {
		return w.compat < minRaised // an index, an exponent, a mathematical symbol
	}
	return w.compat == 0
}

// foreign reports whether a word is entirely in scripts with look-alikes and has nothing else to
// undo.
func (w *word) foreign() bool {
	return w.latin+w.extended+w.compat+w.ignorable == 0 && !w.noisy()
}

// looksLatin reports whether all letters of text[start:end] look exactly like Latin ones.
func (n *normaliser) looksLatin(start, end int) bool {
	for _, c := range n.text[start:end] {
		if kindOf(c) == kindAlike {
			if _, same := lookOf(c); !same {
				return false
			}
		}
	}
	return true
}

// noisy reports whether the combining marks of a word only serve to obscure it.
func (w *word) noisy() bool {
	return w.overlays > 0 || w.highest > maxStack || w.marks >= 3 && w.latin > 0 && w.marks >= w.latin+w.extended
}

// fold returns the word text[start:end] without its disguise. ok is false if it has none.
func (n *normaliser) fold(start, end int, w *word) (folded string, ok bool) {
	raw := n.text[start:end]
	var buf [maxWordBytes]byte
	out := buf[:0]
	for _, c := range raw {
		switch kindOf(c) {
		case kindIgnorable:
			if !operator(c) || w.operators >= minOperators {
				continue
			}
		case kindMark:
			if w.noisy() {
				continue
			}
		case kindCompat:
			out = appendCompat(out, c)
			continue
		case kindPlain, kindASCII, kindLatin, kindAlike:
		}
		out = utf8.AppendRune(out, c)
	}
	if w.wide == w.compat && w.compat > 0 && w.compat == w.latin+w.extended+w.others+w.compat && !wideWord(string(out)) {
		return raw, false
	}
	if w.others > 0 || w.compat > 0 {
		if latin, ok := n.alike(start, end, string(out)); ok {
			out = append(out[:0], latin...)
		}
	}
	folded = string(out)
	return folded, folded != raw
}

// wideWord reports whether full-width letters spell a word. Japanese uses them for numbers,
// initials and abbreviations.
func wideWord(s string) bool {
	return len(s) >= 3 && onlyLetters(s) && known(s) || len(s) >= 5 && strings.ToUpper(s) != s
}

// appendCompat appends the letters that a compatibility character represents.
func appendCompat(dst []byte, c rune) []byte {
	if small, ok := smallCapitals[c]; ok {
		return append(dst, small)
	}
	if letter, ok := enclosed(c); ok {
		return append(dst, letter)
	}
	var in [utf8.UTFMax]byte
	k := utf8.EncodeRune(in[:], c)
	out := norm.NFKC.Append(dst, in[:k]...)
	if len(out)-len(dst) > 3*k {
		return append(dst, in[:k]...) // a ligature that is a whole phrase
	}
	return out
}

// alike returns the Latin reading of a word with letters that look Latin. A word that mixes scripts
// is read so if all its letters have a Latin look and the result is long or known. A word of one
// script is read so only if the result is a known word, all letters look identical, and no other
// letter of that script that looks different is near, as there would be in ordinary text.
func (n *normaliser) alike(start, end int, s string) (latin string, ok bool) {
	var buf [maxWordBytes]byte
	out := buf[:0]
	ascii, letters, alikes := 0, 0, 0
	exact, greek := true, false
	for _, c := range s {
		switch {
		case c < utf8.RuneSelf:
			out = append(out, byte(c))
			if letterOf[c] != 0 {
				ascii++
				letters++
			}
			continue
		case kindOf(c) != kindAlike:
			out = utf8.AppendRune(out, c)
			continue
		}
		look, same := lookOf(c)
		if look == 0 {
			return "", false
		}
		letters++
		alikes++
		exact = exact && same
		greek = greek || c < 0x400
		out = append(out, look)
	}
	if alikes == 0 {
		return "", false
	}
	latin = string(out)
	good := onlyLetters(latin) && known(latin)
	if !good {
		_, good = unleet(latin)
	}
	if ascii > 0 {
		return latin, n.disguised(start, end, letters, mix{good, exact, greek, alikes})
	}
	return latin, good && exact && letters >= 3 && !n.honest(start, end)
}

// mix describes a word of Latin letters and look-alikes.
type mix struct {
	known, exact, greek bool // the Latin reading is a word; all letters look the same; Greek is in it
	alikes              int
}

// disguised reports whether a mixed word is a Latin one in disguise. Formulas mix Greek and Latin
// letters, so a word with Greek ones must be longer.
func (n *normaliser) disguised(start, end, letters int, m mix) bool {
	switch {
	case m.known && letters >= 4, m.exact && letters >= 7 && m.alikes >= 2:
		return true
	case m.greek:
		return m.known && letters == 3 && !n.honest(start, end)
	}
	return m.known && letters == 3 || m.exact && letters >= 5 || m.known && letters == 2 && !n.honest(start, end)
}

// neighbourhood is the distance, in bytes, within which honest searches for letters of a script.
const neighbourhood = 96

// honest reports whether letters without a Latin look occur near text[start:end], outside of it.
func (n *normaliser) honest(start, end int) bool {
	from := max(start-neighbourhood, 0)
	for from < start && !utf8.RuneStart(n.text[from]) {
		from++
	}
	for _, part := range [...]string{n.text[from:start], n.text[end:min(end+neighbourhood, len(n.text))]} {
		for _, c := range part {
			if c < utf8.RuneSelf || kindOf(c) != kindAlike {
				continue
			}
			if _, same := lookOf(c); !same {
				return true
			}
		}
	}
	return false
}

// minSplits is the number of words containing invisible characters from which those between words
// are not typesetting either.
const minSplits = 2

// endsWord reports whether an invisible character at i belongs between words rather than into one:
// hidden data, which invisible processes, and the joiners of scripts that need them.
func (n *normaliser) endsWord(i int, c rune) bool {
	if tag(c) || variation(c) || longRun(n.text[i:]) {
		return true
	}
	if c == 0x200D || c == 0x200C {
		before, _ := utf8.DecodeLastRuneInString(n.text[:i])
		return joins(before)
	}
	return false
}

// longRun reports whether a text starts with at least minInvisible invisible characters.
func longRun(text string) bool {
	for range minInvisible {
		c, size := utf8.DecodeRuneInString(text)
		if kindOf(c) != kindIgnorable {
			return false
		}
		text = text[size:]
	}
	return true
}

// invisible processes the invisible characters from i on, outside of words, and returns where to
// continue.
func (n *normaliser) invisible(i int) int {
	end, first, count := i, rune(0), 0
	for end < len(n.text) {
		c, size := utf8.DecodeRuneInString(n.text[end:])
		if kindOf(c) != kindIgnorable {
			break
		}
		if count == 0 {
			first = c
		}
		count++
		end += size
	}
	run := n.text[i:end]
	before, _ := utf8.DecodeLastRuneInString(n.text[:i])
	switch {
	case i == 0 && run == "\ufeff":
		return end // a byte order mark
	case before == 0x1F3F4 && tag(first) && count <= 7:
		return end // the flag of a region: https://www.unicode.org/reports/tr51/#valid-emoji-tag-sequences
	case count <= 2 && (variation(first) || first == 0x200C || first == 0x200D) && joins(before):
		return end // emoji and scripts that use joiners and variation selectors
	}
	after, _ := utf8.DecodeRuneInString(n.text[end:])
	if s, ok := smuggled(run); ok {
		n.hidden = append(n.hidden, s)
	} else if count < minInvisible && !turnsText(run) && (!logographic(before) || !logographic(after)) {
		n.strays += count
		return end // stray marks of typesetting between words
	}
	n.replace(i, end, "")
	return end
}

// turnsText reports whether a run contains controls that change the direction of text.
func turnsText(run string) bool {
	return strings.ContainsFunc(run, func(c rune) bool { return c >= 0x202A && c <= 0x202E || c >= 0x2066 && c <= 0x2069 })
}

// minInvisible is a number of consecutive invisible characters that typesetting never produces.
const minInvisible = 8

// joins reports whether joiners and variation selectors are legitimate after a character: symbols,
// ideographs, scripts with contextual shapes.
func joins(c rune) bool {
	return c == '#' || c == '*' || c >= '0' && c <= '9' || c >= 0x590 && c < 0x1100 || c >= 0x1780 && c < 0x1900 ||
		c >= 0x2100 && !unicode.IsSpace(c) && !tag(c) && !variation(c) && c != utf8.RuneError || c == 0xA9 || c == 0xAE
}

// turn reads the line around byte i rotated by 180 degrees and keeps the result if it is text.
func (n *normaliser) turn(i int) {
	if i < n.turnedTo {
		return
	}
	start, end := n.turnedTo, len(n.text)
	if k := strings.LastIndexByte(n.text[start:i], '\n'); k >= 0 {
		start += k + 1
	}
	if k := strings.IndexByte(n.text[i:], '\n'); k >= 0 {
		end = i + k
	}
	n.turnedTo = end
	if s, ok := turnBack(strings.TrimSpace(n.text[start:end])); ok {
		n.hidden = append(n.hidden, s)
	}
}
