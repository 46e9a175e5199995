package evidence

import "strings"

// IsHeading reports whether sentence i is a heading of Markdown. i comes from a Premise or a finding.
func (e *Evidence) IsHeading(i int) bool { return e.rankOf(i) > 0 }

// Heads reports whether sentence i stands in the section of heading h, under headings of lower rank or
// not.
func (e *Evidence) Heads(h, i int) bool {
	if i <= h || e.sentences[h].source != e.sentences[i].source {
		return false
	}
	rank := e.rankOf(h)
	for k := h + 1; k <= i; k++ {
		if r := e.rankOf(k); r > 0 && r <= rank {
			return false
		}
	}
	return true
}

// rankOf is how many marks a heading has, 0 where sentence i is none.
func (e *Evidence) rankOf(i int) int {
	s := &e.sentences[i]
	if s.start <= 0 {
		return 0
	}
	text := strings.TrimRight(e.sources[s.source].Text[:s.start], " ")
	marks := len(text) - len(strings.TrimRight(text, "#"))
	if marks > 0 && marks < len(text) && text[len(text)-marks-1] != '\n' {
		return 0
	}
	return marks
}
