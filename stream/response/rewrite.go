package response

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Change replaces the bytes [From, To) of a delta's Text by Text. An empty Text removes them; an
// empty range inserts Text. Offsets inside a character include the whole character; offsets beyond
// the text mean its end.
type Change struct {
	Delta    int // index in Event.Deltas
	From, To int
	Text     []byte // unescaped; invalid UTF-8 bytes become U+FFFD
}

// Rewrite is a set of changes to an event.
type Rewrite struct {
	// Changes must not overlap. Log probabilities and token ids that repeat replaced text become
	// null, or an empty list in the Responses API. For insertions they remain, because inserted
	// text is not part of the model's tokens.
	Changes []Change
	// Cuts end choices of a body, at most one per choice.
	Cuts []Cut
	// Unspelled removes all log probabilities and token ids of the event.
	Unspelled bool
	// Unweighed removes only the log probabilities.
	Unweighed bool
	// Finish replaces the finish reason of every choice that ends in this event or, with Cuts, of
	// those that are cut; empty leaves it. In the Responses API the event becomes a
	// response.incomplete, or the body an incomplete response, with this reason. The caller must
	// change the name of the server-sent event.
	Finish string
	// Output is a JSON list that replaces the output of a response; empty leaves it.
	Output []byte
	// Extension is a JSON value for the top-level member x_signalbox, replacing an existing one.
	// Empty adds none.
	Extension []byte
}

// edit replaces a range of the data by patch[from:to].
type edit struct {
	at       openai.Span
	from, to int
}

// Append appends the event's data to dst with a rewrite applied; all other bytes are unchanged. An
// Opaque event is appended unchanged.
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

// rewrite records the edits of a rewrite. If two overlap, the one that begins first applies or, if
// both begin together, the one recorded first.
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

// substitute replaces a range of a text, and of its twin.
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

// unspell removes what repeats the texts of a slot.
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

// Spelled reports whether there are log probabilities or token ids, which repeat a text.
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

// Logprobs yields the log probabilities as they are in the data. Its signature is that of iter.Seq.
func (e *Event) Logprobs(yield func(value []byte) bool) {
	for i := range e.layout.slots {
		at := e.layout.slots[i].logprobs
		if at.Present() && !isEmpty(e.data[at.Start:at.End]) && !yield(e.data[at.Start:at.End]) {
			return
		}
	}
}

// raw returns the position in the data of the bytes [from, to) of the text.
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

// wholeRunes extends a range of text to whole characters.
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

// refinish changes the reason why the answer ended.
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

// set gives a top-level member a value, unless the value is empty. at is the position of the
// existing value; if there is none, the member is added at the end.
func (e *Event) set(at openai.Span, name string, value []byte) {
	if len(value) == 0 {
		return
	}
	from := len(e.patch)
	// Every shape except Opaque has a member before it.
	if !at.Present() {
		at = openai.Span{Start: e.layout.end, End: e.layout.end}
		e.patch = append(append(append(e.patch, `,"`...), name...), `":`...)
	}
	e.patch = append(e.patch, value...)
	e.edit(at, from)
}

func appendQuoted[text ~string | ~[]byte](dst []byte, s text) []byte {
	// The error only reports the replacement of invalid UTF-8.
	dst, _ = jsontext.AppendQuote(dst, s)
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
