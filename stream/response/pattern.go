package response

import "bytes"

// pattern is the JSON around the text of the last chunk, including the quotes. The chunks of a
// stream usually differ only in one text, so for the next matching one only the text has to be
// read.
type pattern struct{ before, behind []byte }

// maxPattern is the maximum size of a pattern in bytes.
const maxPattern = 4 << 10

// keepPattern records the pattern of an event with one text of a choice and nothing that changes
// with it.
func (r *Reader) keepPattern(e *Event) {
	r.pattern.before = r.pattern.before[:0]
	if e.layout.fresh || e.Shape != Chat && e.Shape != Completion || len(e.Deltas) != 1 ||
		len(e.Finishes) > 0 || len(e.data) > maxPattern || e.HasUsage || e.Failed || e.Unread ||
		e.layout.twins || e.Extension.Present() || e.Stop != nil {
		return
	}
	for i := range e.layout.slots {
		if e.layout.slots[i] != (slot{}) {
			return
		}
	}
	at := e.Deltas[0].At
	r.pattern.before = append(r.pattern.before, e.data[:at.Start]...)
	r.pattern.behind = append(r.pattern.behind[:0], e.data[at.End:]...)
}

// follow reads data that differs from the previous event only in its text. It returns false for
// other data, and has read nothing then.
func (r *Reader) follow(data []byte) bool {
	p, e := &r.pattern, &r.event
	from, to := len(p.before), len(data)-len(p.behind)
	if from == 0 || from >= to ||
		!bytes.HasPrefix(data, p.before) || !bytes.HasSuffix(data, p.behind) {
		return false
	}
	s := scanner{b: data, i: from - 1}
	if !s.str() || s.i != to+1 {
		return false
	}
	d := &e.Deltas[0]
	moved := to - d.At.End
	d.At.End, d.escaped, d.high = to, s.escaped, s.high
	e.reset(data)
	l := &e.layout
	if l.usage.Start >= from {
		l.usage.Start, l.usage.End = l.usage.Start+moved, l.usage.End+moved
	}
	for i := range l.head {
		if l.head[i].Start >= from {
			l.head[i].Start, l.head[i].End = l.head[i].Start+moved, l.head[i].End+moved
		}
	}
	if l.end >= from {
		l.end += moved
	}
	e.unescape(d)
	return true
}

// reset gives an event other data, and clears the memory for what is derived from it.
func (e *Event) reset(data []byte) {
	if cap(e.text) > keptText {
		e.text = nil
	}
	if cap(e.patch) > keptText {
		e.patch = nil
	}
	e.data, e.text, e.edits, e.patch = data, e.text[:0], e.edits[:0], e.patch[:0]
}
