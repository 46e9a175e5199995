package response

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Change replaces the bytes [From, To) of a delta's Text by Text. An empty Text takes them out, an
// empty range puts Text in. Offsets inside of a character take in the whole character; those beyond
// the text mean its end.
type Change struct {
	Delta    int // index in Event.Deltas
	From, To int
	Text     []byte // without escapes; bytes that are no UTF-8 become U+FFFD
}

// Rewrite is what changes in an event.
type Rewrite struct {
	// Changes must not overlap. Log probabilities and token ids that spell again what is replaced
	// become null, or an empty list in the Responses API. What is only put in is none of the
	// model's tokens: those stay as they are.
	Changes []Change
	// Cuts end choices of a body, each of them once.
	Cuts []Cut
	// Unspelled does that to all log probabilities and token ids of the event.
	Unspelled bool
	// Unweighed does it to all log probabilities alone.
	Unweighed bool
	// Finish replaces the reason of every choice that ends in this event, with Cuts of those that
	// are cut; empty leaves it. In the Responses API the event becomes a response.incomplete, or
	// the body an incomplete response, for this reason; the name of the server-sent event is the
	// caller's to change.
	Finish string
	// Output is a JSON list in place of the output of a response; empty leaves it.
	Output []byte
	// Extension is a JSON value for the member x_signalbox of the top level, in place of one that
	// is there. Empty adds none.
	Extension []byte
}

// edit replaces a range of the data by patch[from:to].
type edit struct {
	at       openai.Span
	from, to int
}

// Append appends the event's data to dst with a rewrite done to it; all other bytes stay. Nothing
// is done to an Opaque event.
func (e *Event) Append(dst []byte, w Rewrite) []byte {
	e.edits, e.patch = e.edits[:0], e.patch[:0]
	if e.Shape != Opaque {
		e.rewrite(&w)
	}
	slices.SortStableFunc(e.edits, func(a, b edit) int { return cmp.Compare(a.at.Start, b.at.Start) })
	pos := 0
	for _, d := range e.edits {
		if d.at.Start < pos { // the logprobs of two texts of one choice
			continue
		}
		dst = append(dst, e.data[pos:d.at.Start]...)
		dst = append(dst, e.patch[d.from:d.to]...)
		pos = d.at.End
	}
	return append(dst, e.data[pos:]...)
}

// rewrite notes the edits that a rewrite amounts to. Of two that overlap the one that begins first
// is done, or where they begin together the one that is noted first.
func (e *Event) rewrite(w *Rewrite) {
	for i := range w.Changes {
		e.change(&w.Changes[i])
	}
	for i := 0; w.Unspelled && i < len(e.layout.slots); i++ {
		e.unspell(&e.layout.slots[i])
	}
	for i := 0; w.Unweighed && i < len(e.layout.slots); i++ {
		e.unspell(&slot{logprobs: e.layout.slots[i].logprobs})
	}
	e.cuts(w.Cuts)
	if w.Finish != "" {
		e.refinish(w)
	}
	e.set(e.layout.output, "output", w.Output)
	e.set(e.Extension, "x_signalbox", w.Extension)
}

// edit replaces a range by what was appended to patch from an offset on.
func (e *Event) edit(at openai.Span, from int) {
	e.edits = append(e.edits, edit{at, from, len(e.patch)})
}

// replace replaces a range.
func (e *Event) replace(at openai.Span, by string) {
	from := len(e.patch)
	e.patch = append(e.patch, by...)
	e.edit(at, from)
}

// change edits one text.
func (e *Event) change(c *Change) {
	d := &e.Deltas[c.Delta]
	if e.substitute(d, c.From, c.To, c.Text); c.To > c.From {
		e.unspell(&e.layout.slots[d.slot])
	}
}

// substitute puts text in place of a range of a text, and of its twin.
func (e *Event) substitute(d *Delta, from, to int, text []byte) {
	from, to = max(0, from), max(from, to)
	patch := len(e.patch)
	e.patch = appendInside(e.patch, text)
	e.edit(d.raw(e.data, from, to), patch)
	if d.twin != (openai.Span{}) {
		twin := *d
		twin.At, twin.escaped = d.twin, d.spelled
		e.edits = append(e.edits, edit{twin.raw(e.data, from, to), patch, len(e.patch)})
	}
}

// unspell takes out what tells the texts of a slot another time.
func (e *Event) unspell(s *slot) {
	nothing := "null"
	if e.Shape == Response {
		nothing = "[]"
	}
	for _, at := range [...]openai.Span{s.logprobs, s.tokens, s.token} {
		if at != (openai.Span{}) {
			e.replace(at, nothing)
		}
	}
}

// Spelled reports whether there are log probabilities or token ids, which tell a text another time.
func (e *Event) Spelled() bool {
	for i := range e.layout.slots {
		s := &e.layout.slots[i]
		for _, at := range [...]openai.Span{s.logprobs, s.tokens, s.token} {
			if at != (openai.Span{}) && !isEmpty(e.data[at.Start:at.End]) {
				return true
			}
		}
	}
	return false
}

// Logprobs gives the values of log probabilities as they stand in the data.
func (e *Event) Logprobs(yield func(value []byte) bool) {
	for i := range e.layout.slots {
		at := e.layout.slots[i].logprobs
		if at.Present() && !isEmpty(e.data[at.Start:at.End]) && !yield(e.data[at.Start:at.End]) {
			return
		}
	}
}

// raw returns where in the data the bytes [from, to) of the text are spelled.
func (d *Delta) raw(data []byte, from, to int) openai.Span {
	if !d.escaped {
		from, to = wholeRunes(d.Text, from, to)
		return openai.Span{Start: d.At.Start + from, End: d.At.Start + to}
	}
	inside := data[d.At.Start:d.At.End]
	start, _, _ := locate(inside, from)
	end := start
	if to > from {
		first, last, begins := locate(inside, to)
		if end = last; begins {
			end = first
		}
	}
	return openai.Span{Start: d.At.Start + start, End: d.At.Start + end}
}

// wholeRunes widens a range of text to whole characters.
func wholeRunes(text []byte, from, to int) (first, last int) {
	from, to = min(from, len(text)), min(to, len(text))
	empty := from >= to
	for from > 0 && from < len(text) && !startsRune(text[from]) {
		from--
	}
	if empty {
		return from, from
	}
	for to < len(text) && !startsRune(text[to]) {
		to++
	}
	return from, to
}

// refinish changes why the answer ended.
func (e *Event) refinish(w *Rewrite) {
	why := w.Finish
	if len(e.Finishes) == 0 {
		return
	}
	if e.Shape != Response {
		for i := range e.Finishes {
			if len(w.Cuts) > 0 && !slices.ContainsFunc(w.Cuts, func(c Cut) bool {
				return e.Deltas[c.Delta].Choice == e.Finishes[i].Choice
			}) {
				continue
			}
			from := len(e.patch)
			e.patch = appendQuoted(e.patch, why)
			e.edit(e.Finishes[i].at, from)
		}
		return
	}
	l := &e.layout
	none := openai.Span{}
	if len(e.Type) > 0 && l.typeName != none {
		e.replace(l.typeName, `"`+typeIncomplete+`"`)
	}
	from := len(e.patch)
	switch {
	case l.incomplete != none:
		e.patch = appendDetails(e.patch, why)
		e.edit(l.incomplete, from)
		if l.status != none {
			e.replace(l.status, `"incomplete"`)
		}
	case l.status != none:
		e.patch = append(e.patch, `"incomplete","incomplete_details":`...)
		e.patch = appendDetails(e.patch, why)
		e.edit(l.status, from)
	}
}

// set gives a member of the top level a value, unless that is empty. at is the place of the value
// that is there; without one the member is added at the end.
func (e *Event) set(at openai.Span, name string, value []byte) {
	if len(value) == 0 {
		return
	}
	from := len(e.patch)
	if !at.Present() { // every shape that is not opaque has a member before it
		at = openai.Span{Start: e.layout.end, End: e.layout.end}
		e.patch = append(append(append(e.patch, `,"`...), name...), `":`...)
	}
	e.patch = append(e.patch, value...)
	e.edit(at, from)
}

func appendQuoted[text ~string | ~[]byte](dst []byte, s text) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error reports only the replacement of invalid UTF-8
	return dst
}

// appendInside appends the inside of a JSON string.
func appendInside(dst, s []byte) []byte {
	n := len(dst)
	dst = appendQuoted(dst, s)
	copy(dst[n:], dst[n+1:len(dst)-1])
	return dst[:len(dst)-len(`""`)]
}

func appendDetails(dst []byte, why string) []byte {
	return append(appendQuoted(append(dst, `{"reason":`...), why), '}')
}
