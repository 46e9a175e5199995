package evidence

// Item returns the text of sentence i, and the heading of the list it is an item of, or "". i is an
// index such as Premise.Sentence.
func (e *Evidence) Item(i int) (text, heading string) {
	s := &e.sentences[i]
	if s.under > 0 {
		heading = e.sentences[s.under-1].text
	}
	return s.text, heading
}

// Box reports whether sentence i is an item with a checkbox (ok), and whether it is ticked: "- [x]
// search".
func (e *Evidence) Box(i int) (ticked, ok bool) {
	s := &e.sentences[i]
	text := s.text
	if s.start >= 4 && (len(text) < 3 || text[0] != '[') {
		text = e.sources[s.source].Text[s.start-4 : s.end]
	}
	if len(text) < 4 || text[0] != '[' || text[2] != ']' {
		return false, false
	}
	switch text[1] {
	case 'x', 'X':
		return true, true
	case ' ':
		return false, true
	}
	return false, false
}
