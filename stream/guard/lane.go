package guard

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
	"signalbox/stream/check"
	"signalbox/stream/claims"
	"signalbox/stream/response"
)

// lane is one text of an answer: that of a choice, or of a part of an output item. Offsets are in
// bytes from its start.
type lane struct {
	choice, part int
	kind         response.Kind
	like         response.Delta // its last piece, without the text
	last         *item          // item with its last piece, until that is written
	streamed     bool           // it arrived in pieces
	marked       []mark         // the marks in it
	owed         []*record      // claims whose marks wait for a place outside of code and words
	tail         byte           // last byte of the text so far
	word         bool           // the text may have stopped within a word
	form         form           // by its start
	head         []byte         // that start, until the form is known

	split    *claims.Splitter
	hash     maphash.Hash
	fed      int
	fedRunes int
	base     claims.Span // bytes (Start) and code points (End) before the splitter's text
	closed   bool        // nothing more is expected
	before   string      // the previous claim

	entered int       // claims so far
	passed  int       // of these, claims that have a verdict, as have all before them
	open    []*record // the others, in order
	clear   int       // text before this offset is free to go
	refused []stretch // text that failed, in order, without overlaps
}

// mark is a marker in a text.
type mark struct {
	at   int    // offset in the lane
	text []byte // one of the stream's forms of the marker
}

// record is a claim and its verdict.
type record struct {
	lane     *lane
	claim    claims.Claim // with spans relative to the lane
	fallback check.Result // result without a model
	result   check.Result
	decided  bool
	failed   bool
	place    claims.Place // where its mark is placed
	withheld bool         // the client has not received all of its text
	lost     bool         // a model should have read it but has not
	half     bool         // the text stopped in the middle of it
	since    time.Time
	deadline time.Time // for the result of a model
}

// newLane returns a lane. With values, JSON is read value by value. Checkers for other purposes
// than truth have to read all of it.
func newLane(d *response.Delta, part int, seed maphash.Seed, values bool) *lane {
	split, err := claims.New(claims.Options{Blocks: d.Kind == response.Text, Values: values && d.Kind == response.Text})
	if err != nil {
		panic(err) // the defaults are valid
	}
	l := &lane{choice: d.Choice, part: part, kind: d.Kind, split: split}
	l.hash.SetSeed(seed)
	return l
}

// feed processes the next piece of text and returns the claims that it finished, valid until the
// next call. text must not be empty.
func (l *lane) feed(text []byte) []claims.Claim {
	if l.closed {
		l.reopen()
	}
	_, _ = l.hash.Write(text) // never fails
	l.fed += len(text)
	l.tail = text[len(text)-1]
	r, size := utf8.DecodeLastRune(text)
	if rest := text[:len(text)-size]; len(rest) > 0 {
		before, _ := utf8.DecodeLastRune(rest)
		l.word = spaced(before)
	}
	l.word = spaced(r) || l.word && strings.ContainsRune(joints, r)
	l.fedRunes += utf8.RuneCount(text)
	return l.rebase(l.split.FeedBytes(text))
}

// free reports whether a mark may follow the text so far, or the word in which it stopped.
func (l *lane) free() bool { return l.closed || l.split.Place() == claims.Free }

// within reports whether the text so far may have stopped within a word.
func (l *lane) within() bool { return l.word && !l.closed }

// joints may occur inside a word or number: "3.5", "10:30", "don't", "well-known", "a/b". If no
// letter follows, the mark has only waited for the next space.
const joints = ".,:'’-/@_"

// spaced reports whether a rune belongs to a word of a script that separates words by spaces.
func spaced(r rune) bool {
	return (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)) && !script.IsUnspaced(r)
}

// wordEnd returns the end of the word that the text begins within. It returns false if the text
// does not contain that end, or if code may begin before it.
func wordEnd(text []byte) (int, bool) {
	at := bytes.IndexFunc(text, unicode.IsSpace)
	return at, at >= 0 && !bytes.ContainsAny(text[:at], "`$\\<{|")
}

// close ends the text and returns the claims that were open.
func (l *lane) close() []claims.Claim {
	if l.closed {
		return nil
	}
	l.closed = true
	return l.rebase(l.split.Flush())
}

// reopen prepares the lane for text after its end.
func (l *lane) reopen() {
	l.split.Continue()
	l.base = claims.Span{Start: l.fed, End: l.fedRunes}
	l.closed = false
}

func (l *lane) rebase(list []claims.Claim) []claims.Claim {
	for i := range list {
		c := &list[i]
		c.Bytes.Start, c.Bytes.End = c.Bytes.Start+l.base.Start, c.Bytes.End+l.base.Start
		c.Runes.Start, c.Runes.End = c.Runes.Start+l.base.End, c.Runes.End+l.base.End
	}
	return list
}

// is reports whether the lane has brought exactly this text.
func (l *lane) is(text []byte) bool {
	return l.fed == len(text) && l.hash.Sum64() == maphash.Bytes(l.hash.Seed(), text)
}

// advance computes how far the text is free to go: up to the first claim without a verdict. If two
// claims overlap, both need one.
func (l *lane) advance() {
	switch {
	case len(l.open) > 0:
		l.clear = l.open[0].claim.Bytes.Start
	case l.closed:
		l.clear = l.fed
	default:
		l.clear = l.fed - l.split.Pending()
	}
}

// stretch is text that must not go to the client.
type stretch struct {
	claims.Span
	silent bool // no marker replaces it
}

// refuse records that a stretch of text must not go to the client. Claims arrive in order, but one
// may begin before the previous one ends.
func (l *lane) refuse(at stretch) {
	if n := len(l.refused); n > 0 && at.Start < l.refused[n-1].End {
		l.refused[n-1].End = max(l.refused[n-1].End, at.End)
		return
	}
	if at.End > at.Start {
		l.refused = append(l.refused, at)
	}
}

// touches reports whether [from, to) contains refused text.
func (l *lane) touches(from, to int) bool {
	return slices.ContainsFunc(l.refused, func(r stretch) bool { return r.Start < to && from < r.End })
}

// changes appends the changes that remove refused text from [from, to) of the lane. The marker is
// inserted where a refused stretch begins.
func (l *lane) changes(dst []response.Change, delta, from, to int, marker []byte) []response.Change {
	for _, r := range l.refused {
		if r.Start >= to || r.End <= from {
			continue
		}
		c := response.Change{Delta: delta, From: max(r.Start, from) - from, To: min(r.End, to) - from}
		if r.Start >= from && !r.silent {
			c.Text = marker
		}
		dst = append(dst, c)
	}
	return dst
}

// mend appends text, which is at offset from in the lane, without what is refused.
func (l *lane) mend(dst, text []byte, from int, marker []byte) []byte {
	at := 0
	for _, c := range l.changes(nil, 0, from, from+len(text), marker) {
		dst = append(append(dst, text[at:c.From]...), c.Text...)
		at = c.To
	}
	return append(dst, text[at:]...)
}
