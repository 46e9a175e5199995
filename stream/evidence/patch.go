package evidence

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hunk matches the header of a hunk in a unified diff.
var hunk = regexp.MustCompile(`(?m)^@@ -\d+(?:,(\d{1,6}))? \+\d+(?:,(\d{1,6}))? @@.*\n?`)

// patch splits the hunks of unified diffs in a source into one sentence per line that describes the
// file as it is now. A replaced line is appended to its replacement,
//
//	timeout: 60 (was 30)
//
// so that a removed line is not read as a current one. patch returns the text outside of hunks. It
// returns false, without adding sentences, if there is no hunk.
func (e *Evidence) patch(source int) ([]prose, bool) {
	text := e.sources[source].Text
	heads := hunk.FindAllStringSubmatchIndex(text, -1)
	if heads == nil {
		return nil, false
	}
	var around []prose
	end := 0
	for _, at := range heads {
		if at[0] < end { // a line of the previous hunk
			continue
		}
		if at[0] > end {
			around = append(around, prose{text: text[end:at[0]], at: end})
		}
		c := change{old: lines(text, at[2:4]), now: lines(text, at[4:6])}
		for end = at[1]; end < len(text) && c.has(text[end]); {
			line, _, _ := strings.Cut(text[end:], "\n")
			end = min(end+len(line)+1, len(text))
			e.changed(source, &c, strings.TrimRight(line, "\r"))
		}
		e.endChange(source, &c)
	}
	if end < len(text) {
		around = append(around, prose{text: text[end:], at: end})
	}
	return around, true
}

// lines returns how many lines of one side a hunk has, according to its header.
func lines(text string, at []int) int {
	if at[0] < 0 {
		return 1
	}
	n, _ := strconv.Atoi(text[at[0]:at[1]])
	return n
}

// change collects removed lines and the added lines directly after them, and how many lines of each
// side of the hunk are still to come.
type change struct {
	gone, come []string
	old, now   int
}

// has reports whether a line with the given first character belongs to the hunk.
func (c *change) has(sign byte) bool {
	switch sign {
	case '-':
		return c.old > 0
	case '+':
		return c.now > 0
	case ' ', '\n', '\r':
		return c.old > 0 && c.now > 0
	}
	return sign == '\\'
}

// changed processes a line of a hunk.
func (e *Evidence) changed(source int, c *change, line string) {
	switch {
	case strings.HasPrefix(line, "-"):
		if len(c.come) > 0 {
			e.endChange(source, c)
		}
		c.old--
		c.gone = append(c.gone, strings.TrimSpace(line[1:]))
	case strings.HasPrefix(line, "+"):
		c.now--
		c.come = append(c.come, strings.TrimSpace(line[1:]))
	case strings.HasPrefix(line, `\`): // no newline at the end of the file
	default:
		c.old, c.now = c.old-1, c.now-1
		e.endChange(source, c)
		e.row(source, strings.TrimSpace(line))
	}
}

// endChange adds the sentences of a change. An added line replaces the first removed line that
// begins alike and is not taken yet. The order is kept, so that this takes linear time.
func (e *Evidence) endChange(source int, c *change) {
	gone := c.gone
	for _, now := range c.come {
		row := now
		for i, was := range gone[:min(len(gone), maxApart)] {
			n := alike(was, now)
			if n == 0 {
				continue
			}
			for _, left := range gone[:i] {
				e.row(source, removed(left))
			}
			if gone = gone[i+1:]; was != now {
				row = now + " (was " + was[n:] + ")"
			}
			break
		}
		e.row(source, row)
	}
	for _, left := range gone {
		e.row(source, removed(left))
	}
	c.gone, c.come = c.gone[:0], c.come[:0]
}

// maxApart is how many removed lines an added one is compared with; our choice.
const maxApart = 16

func removed(line string) string {
	if line == "" {
		return ""
	}
	return "removed: " + line
}

// alike returns the offset of the first word in which two lines differ. It returns 0 if they differ
// from the start.
func alike(a, b string) int {
	n := 0
	for i, r := range a {
		if i >= len(b) || !strings.HasPrefix(b[i:], a[i:i+utf8.RuneLen(r)]) {
			return n
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '.' && r != '-' {
			n = i + utf8.RuneLen(r)
		}
	}
	return n
}

// row adds a sentence that is not in the source as it is.
func (e *Evidence) row(source int, text string) {
	if text != "" {
		e.sentences = append(e.sentences, sentence{source: source, text: cutRow(text), start: -1, end: -1})
	}
}

// cutRow returns the start of a line, at most maxRow bytes.
func cutRow(line string) string {
	if len(line) <= maxRow {
		return line
	}
	return strings.ToValidUTF8(line[:maxRow], "")
}
