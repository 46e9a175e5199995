package evidence

import "strings"

// IsHeading reports whether sentence i is a Markdown heading. i is an index such as
// Premise.Sentence.
func (e *Evidence) IsHeading(i int) bool { return e.rankOf(i) > 0 }

// Heads reports whether sentence i is in the section of heading h, including its subsections.
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

// rankOf returns the number of # marks of a heading, or 0 if sentence i is not one.
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
