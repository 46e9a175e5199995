package tokenize

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// whiteSpace is the Unicode property White_Space as the inside of a character class; \s of RE2 is
// ASCII only.
const whiteSpace = `\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`

// lookahead ends the splitting patterns of GPT-like models. RE2 has no lookahead, so pattern
// captures the run of white space as group 1 and returns its last character if text follows.
const lookahead = `|\s+(?!\S)|\s+`

// pattern is a literal or a regular expression of a tokenizer.json, in RE2.
type pattern struct {
	literal  []byte // when re is nil
	re       *regexp.Regexp
	giveBack bool
}

// compile translates an Oniguruma pattern. What RE2 cannot express is an error.
func compile(source string) (pattern, error) {
	p := pattern{}
	if s, ok := strings.CutSuffix(source, lookahead); ok {
		source, p.giveBack = s+`|(\s+)`, true
	}
	var b strings.Builder
	class := 0
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c == '\\' && i+1 < len(source):
			i++
			b.WriteString(escape(source[i], class > 0))
			continue
		case c == '[':
			class++
		case c == ']':
			class--
		}
		b.WriteByte(c)
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return pattern{}, fmt.Errorf("pattern %q: %w", source, err)
	}
	if p.giveBack && re.NumSubexp() != 1 {
		return pattern{}, fmt.Errorf("pattern %q: capturing groups are not supported", source)
	}
	p.re = re
	return p, nil
}

// escape returns the escape \c in RE2 syntax.
func escape(c byte, inClass bool) string {
	switch {
	case c == 's' && inClass:
		return whiteSpace
	case c == 's':
		return "[" + whiteSpace + "]"
	case c == 'S' && !inClass:
		return "[^" + whiteSpace + "]"
	}
	return `\` + string(c)
}

// next returns the first match in b, or from < 0.
func (p pattern) next(b []byte) (from, to int) {
	if p.re == nil {
		if from = bytes.Index(b, p.literal); from < 0 {
			return -1, -1
		}
		return from, from + len(p.literal)
	}
	if !p.giveBack {
		m := p.re.FindIndex(b)
		if m == nil {
			return -1, -1
		}
		return m[0], m[1]
	}
	m := p.re.FindSubmatchIndex(b)
	if m == nil {
		return -1, -1
	}
	from, to = m[0], m[1]
	if m[2] >= 0 && to < len(b) {
		if _, n := utf8.DecodeLastRune(b[from:to]); to-n > from {
			to -= n
		}
	}
	return from, to
}

// behavior is what happens to text that a splitting pattern matches.
type behavior string

const (
	isolated           behavior = "Isolated"
	removed            behavior = "Removed"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

func (v behavior) valid() bool {
	switch v {
	case isolated, removed, mergedWithPrevious, mergedWithNext, contiguous:
		return true
	}
	return false
}

// cutter converts the alternation of matched and unmatched text to words.
type cutter struct {
	behavior behavior
	invert   bool // the pattern describes the text between the matches
	start    int  // of the text that is not emitted yet
	last     bool // whether that text is a match, for Contiguous
}

// segment is a run of text that either is one match or holds none.
type segment struct {
	span
	match bool
}

func (c *cutter) add(w *work, g segment) {
	if g.to == g.from {
		return
	}
	g.match = g.match != c.invert
	switch c.behavior {
	case isolated:
		w.emit(g.from, g.to)
		c.start = g.to
	case removed:
		if !g.match {
			w.emit(g.from, g.to)
		}
		c.start = g.to
	case mergedWithPrevious:
		if g.match {
			w.emit(c.start, g.to)
			c.start = g.to
		}
	case mergedWithNext:
		if g.match {
			w.emit(c.start, g.from)
			c.start = g.from
		}
	case contiguous:
		if g.match != c.last {
			w.emit(c.start, g.from)
			c.start = g.from
		}
		c.last = g.match
	}
}

// splitPattern splits at the matches of p, as c says.
func splitPattern(p pattern, c cutter) func(w *work, s span) {
	return func(w *work, s span) {
		c := c
		c.start = s.from
		done := s.from // text before it was given to c
		for i := s.from; i < s.to; {
			from, to := p.next(w.text.b[i:s.to])
			if from < 0 {
				break
			}
			from, to = i+from, i+to
			if to == from { // an empty match splits nothing
				_, n := utf8.DecodeRune(w.text.b[from:s.to])
				i = from + max(n, 1)
				continue
			}
			c.add(w, segment{span{done, from}, false})
			c.add(w, segment{span{from, to}, true})
			i, done = to, to
		}
		c.add(w, segment{span{done, s.to}, false})
		w.emit(c.start, s.to)
	}
}
