package openai

import (
	"bytes"
	"cmp"
	"slices"
)

// edit replaces a range of the body, or inserts text if the range is empty.
type edit struct {
	at   Span
	text []byte
}

// apply returns raw with the edits applied, in one allocation, or raw itself if there are none.
// Edits must not overlap; of edits that start at the same offset the earlier in the list comes
// first.
func apply(raw []byte, edits []edit) []byte {
	if len(edits) == 0 {
		return raw
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.at.Start, b.at.Start) })
	size := len(raw)
	for _, e := range edits {
		size += len(e.text) - (e.at.End - e.at.Start)
	}
	out := make([]byte, 0, size)
	pos := 0
	for _, e := range edits {
		out = append(append(out, raw[pos:e.at.Start]...), e.text...)
		pos = e.at.End
	}
	return append(out, raw[pos:]...)
}

// spliceObject edits an object whose members were found at the given offsets of raw.
func spliceObject(edits []edit, raw []byte, members []member, fields []fieldEdit) []edit {
	if len(fields) == 0 {
		return edits
	}
	lastKept := -1
	removed := make([]bool, len(members))
	seen := make([]bool, len(fields))
	for i, m := range members {
		j := slices.IndexFunc(fields, func(f fieldEdit) bool { return nameIs(raw, m, f.name) })
		if j < 0 {
			lastKept = i
			continue
		}
		seen[j] = true
		if fields[j].removed {
			removed[i] = true
			continue
		}
		lastKept = i
		if !bytes.Equal(raw[m.value.Start:m.value.End], fields[j].value) {
			edits = append(edits, edit{m.value, fields[j].value})
		}
	}
	if added := newMembers(fields, seen); len(added) > 0 {
		at := bytes.IndexByte(raw, '{') + 1
		switch {
		case lastKept >= 0:
			at = members[lastKept].value.End
		case len(members) > 0:
			at, added = members[0].name.Start, added[1:]
		default:
			added = added[1:]
		}
		edits = append(edits, edit{Span{at, at}, added})
	}
	whole := func(i int) Span { return Span{members[i].name.Start, members[i].value.End} }
	return removeRuns(edits, len(members), whole, func(i int) bool { return removed[i] })
}

// newMembers encodes the fields that the object does not have yet, each preceded by a comma.
func newMembers(fields []fieldEdit, seen []bool) []byte {
	var b []byte
	for j, f := range fields {
		if !seen[j] && !f.removed {
			b = appendString(append(b, ','), f.name)
			b = append(append(b, ':'), f.value...)
		}
	}
	return b
}

// removeRuns removes elements from a list of n, together with the commas that are no longer needed.
func removeRuns(edits []edit, n int, span func(i int) Span, removed func(i int) bool) []edit {
	for i := 0; i < n; i++ {
		if !removed(i) {
			continue
		}
		first := i
		for i+1 < n && removed(i+1) {
			i++
		}
		at := Span{span(first).Start, span(i).End}
		switch {
		case i+1 < n:
			at.End = span(i + 1).Start
		case first > 0:
			at.Start = span(first - 1).End
		}
		edits = append(edits, edit{at: at})
	}
	return edits
}

// scanObject finds the members of an object; it returns false if raw is not an object.
func scanObject(raw []byte) ([]member, bool) {
	if len(raw) == 0 {
		return nil, false // usually the value is absent
	}
	s := newScanner(raw, Accepted())
	defer s.release()
	if s.kind() != '{' || s.open() != nil {
		return nil, false
	}
	var members []member
	for {
		name, more, err := s.member()
		if err != nil {
			return nil, false
		}
		if !more {
			return members, s.finish() == nil
		}
		s.kind() // moves on to the value
		start := s.start()
		if s.skip() != nil {
			return nil, false
		}
		members = append(members, member{name: name, value: Span{start, s.end()}})
	}
}

// contentPart is the layout of one element of a content list.
type contentPart struct {
	span    Span
	texts   []Span // spans of JSON strings that are text
	carries int    // index of the first non-empty text, else 0
	media   bool
}

// scanParts finds the elements of a content list that has been parsed before. Offsets refer to raw.
func scanParts(raw []byte, content Span) []contentPart {
	s := newScanner(raw[content.Start:content.End], Accepted())
	defer s.release()
	var parts []contentPart
	err := s.elements(func() error {
		start := s.start()
		p, err := s.layout()
		p.span = Span{start, s.end()}
		p.shift(content.Start)
		parts = append(parts, p)
		return err
	})
	if err != nil {
		return nil
	}
	return parts
}

func (p *contentPart) shift(by int) {
	p.span = Span{p.span.Start + by, p.span.End + by}
	for i, t := range p.texts {
		p.texts[i] = Span{t.Start + by, t.End + by}
	}
}

// layout reads one element of a content list. It recognises the same texts as chatParser.part.
func (s *scanner) layout() (contentPart, error) {
	var p contentPart
	if s.kind() == '"' {
		err := s.note(&p)
		return p, err
	}
	var seen part
	err := s.members(func() error {
		switch name := string(s.name); {
		case name == "type":
			kind, err := s.strOrNull()
			seen.see(kind)
			return err
		case isTextField(name):
			return s.note(&p)
		default:
			seen.see(name)
			return s.skip()
		}
	})
	p.media = seen.media
	return p, err
}

// note reads a text, or a null in its place, and adds its span.
func (s *scanner) note(p *contentPart) error {
	isString := s.kind() == '"'
	start := s.start()
	if err := s.skip(); err != nil || !isString {
		return err
	}
	at := Span{start, s.end()}
	if n := len(p.texts); n > 0 && p.texts[p.carries].End-p.texts[p.carries].Start == len(`""`) {
		p.carries = n // everything before it is empty
	}
	p.texts = append(p.texts, at)
	return nil
}
