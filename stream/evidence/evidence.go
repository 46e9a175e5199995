// Package evidence prepares facts and documents so that a claim finds the sentences it is checked
// against: those about the same thing, and those with another number for it.
//
// An Evidence is built once, is immutable and safe for concurrent use. It holds the sentences of
// its sources, an index of their words weighted by rarity, in which names weigh more than other
// words, and an index of their numbers and dates (numeric.Index). A query takes well under a
// millisecond for 64 KiB of facts and needs no model. A caller with embeddings can re-rank the
// result through Options.Rerank.
package evidence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"signalbox/stream/claims"
	"signalbox/stream/numeric"
)

// ErrTooLarge is wrapped by the errors of New if the facts or documents exceed the limits of the
// options.
var ErrTooLarge = errors.New("evidence too large")

// Source is one fact, or one document, that claims are checked against.
type Source struct {
	ID   string // names the source in verdicts; may be empty
	Text string
	Fact bool // pinned, not found in a document; ranks above equal documents
}

// Options are the limits of an Evidence. Zero fields take the value of DefaultOptions.
type Options struct {
	MaxFacts int // sources with Fact set
	MaxBytes int // text of all sources together
	// WindowWords is the length up to which a premise is extended with the sentences around it. 0
	// selects the default, 1 turns it off. Facts with fewer words are one premise each.
	WindowWords int
	// Rerank, if set, puts the premises of a claim into a better order and may change their scores.
	// It receives up to four times as many as were requested. It must be safe for concurrent use
	// and must not keep the slice.
	Rerank func(claim string, premises []Premise)
}

// DefaultOptions returns 512 facts, 64 KiB, windows of 48 words and no re-ranking.
func DefaultOptions() Options { return Options{MaxFacts: 512, MaxBytes: 64 << 10, WindowWords: 48} }

// Validate returns an error for every field out of range.
func (o Options) Validate() error {
	var errs []error
	for _, f := range []struct {
		name string
		n    int
	}{{"max facts", o.MaxFacts}, {"max bytes", o.MaxBytes}, {"window words", o.WindowWords}} {
		if f.n < 0 {
			errs = append(errs, fmt.Errorf("%s %d: less than 0", f.name, f.n))
		}
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.MaxFacts, o.MaxBytes = cmp.Or(o.MaxFacts, d.MaxFacts), cmp.Or(o.MaxBytes, d.MaxBytes)
	o.WindowWords = cmp.Or(o.WindowWords, d.WindowWords)
	return o
}

// Why says why a premise was selected.
type Why uint8

// The reasons for a premise.
const (
	SharedWords Why = iota // it shares words with the claim
	SameNumber             // it contains a number of the claim
	OtherNumber            // it has another number for the claim's subject
)

// String returns the name of the reason.
func (w Why) String() string {
	switch w {
	case SameNumber:
		return "same number"
	case OtherNumber:
		return "other number"
	case SharedWords:
	}
	return "shared words"
}

// Premise is evidence text to check a claim against.
type Premise struct {
	Source   int    // index of the source
	ID       string // of the source
	Sentence int    // index of the sentence in the evidence, as in numeric.Finding
	Text     string // the sentence and, up to the window, its neighbours
	// Score is higher for better premises; above 1 a number decided. Comparable within one claim
	// only.
	Score float64
	Why   Why
	Page  int // words of the whole source
}

// Evidence is the prepared text of the sources of one request or context.
type Evidence struct {
	opts      Options
	sources   []Source
	sentences []sentence
	lengths   []int // words of each source
	numbers   *numeric.Index
	words     lexical
	said      map[uint64]int32 // hash of a sentence's content to the first such sentence
	versions  [][]string       // per sentence; nil if there are none
	ranged    bool             // it mentions a range of versions
	// joined holds, if there are versions, all dotted numbers (true) and their beginnings (false).
	joined map[string]bool
}

type sentence struct {
	source int
	part   int // prose.at of its text
	text   string
	// start and end are the range in the text of the source. Both are -1 if the sentence is not in
	// the source as it is, such as a table row.
	start, end int
	words      int
	section    int32 // 1 + index of the last heading before it, or 0
	under      int32 // of a list item: 1 + index of the heading above, or 0
	item       bool  // part of a list item
}

// New prepares the sources, in order. It returns an error if the options are invalid, if the
// sources exceed their limits (ErrTooLarge), or if ctx ends, which is checked every few kilobytes.
func New(ctx context.Context, sources []Source, o Options) (*Evidence, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("evidence options: %w", err)
	}
	o = o.withDefaults()
	facts, bytes := 0, 0
	for _, s := range sources {
		if s.Fact {
			facts++
		}
		bytes += len(s.Text)
	}
	switch {
	case facts > o.MaxFacts:
		return nil, fmt.Errorf("%d facts, limit %d: %w", facts, o.MaxFacts, ErrTooLarge)
	case bytes > o.MaxBytes:
		return nil, fmt.Errorf("%d bytes, limit %d: %w", bytes, o.MaxBytes, ErrTooLarge)
	}
	e := &Evidence{opts: o, sources: sources}
	if err := e.cut(ctx); err != nil {
		return nil, err
	}
	list := make([]numeric.Sentence, len(e.sentences))
	for i, s := range e.sentences {
		list[i] = numeric.Sentence{Text: s.text, Group: s.source, Listed: e.listed(i)}
		list[i].Items, _ = e.entries(i)
		if s.section > 0 {
			list[i].Heading = e.sentences[s.section-1].text
		}
	}
	e.numbers = numeric.NewIndex(ctx, list)
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // the caller's own
	}
	e.words = newLexical(e.sentences)
	e.noteVersions()
	e.said = make(map[uint64]int32, len(e.sentences))
	for i := range e.sentences {
		if sum, ok := said(e.sentences[i].text); ok {
			if _, known := e.said[sum]; !known {
				e.said[sum] = int32(i)
			}
		}
	}
	e.lengths = make([]int, len(sources))
	for _, s := range e.sentences {
		e.lengths[s.source] += s.words
	}
	return e, nil
}

// sentenceWords is the maximum length of an evidence sentence. It is longer than a claim, because
// evidence is not streamed.
const sentenceWords = 96

// feed is how many bytes of a text are split between two checks of the context.
const feed = 16 << 10

// cut splits the sources into sentences. The cells of a table row become one sentence with their
// column heads, those of a JSON record with their names, and a line of a diff with the line it
// replaced.
func (e *Evidence) cut(ctx context.Context) error {
	split, err := claims.New(claims.Options{MaxWords: sentenceWords, Stride: sentenceWords})
	if err != nil {
		return fmt.Errorf("cut evidence: %w", err)
	}
	for i, src := range e.sources {
		parts, ok := e.records(i)
		if !ok {
			parts, ok = e.patch(i)
		}
		if !ok {
			parts = []prose{{text: src.Text}}
		}
		for _, p := range parts {
			if err := e.prose(ctx, split, i, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// prose is text of a source that is split in one go. at is its byte offset in the source, or -1 if
// it is not there as it is.
type prose struct {
	text string
	at   int
}

func (e *Evidence) prose(ctx context.Context, split *claims.Splitter, source int, p prose) error {
	split.Reset()
	row := tableRow{of: p}
	for rest := p.text; rest != ""; {
		if err := ctx.Err(); err != nil {
			return err //nolint:wrapcheck // the caller's own
		}
		n := min(feed, len(rest))
		for _, c := range split.Feed(rest[:n]) {
			e.add(source, c, &row)
		}
		rest = rest[n:]
	}
	for _, c := range split.Flush() {
		e.add(source, c, &row)
	}
	e.endRow(source, &row)
	return nil
}

// maxRow is the length in bytes after which a table row continues in another sentence, which begins
// with the head of the row. It keeps what a claim is compared with as short as other sentences.
const maxRow = 1 << 10

// tableRow collects the cells of one row.
type tableRow struct {
	text    strings.Builder
	of      prose
	end     int   // offset of the end of the last cell in it
	section int32 // 1 + index of the last heading
	heading int32 // the same, as long as only list items follow

	unit string // unit in the head of the first column for columns of periods, or empty
}

func (e *Evidence) add(source int, c claims.Claim, row *tableRow) {
	text := row.of.text
	if c.Kind != claims.Cell {
		e.endRow(source, row)
		one := sentence{
			source: source, part: row.of.at, text: text[c.Bytes.Start:c.Bytes.End], start: -1, end: -1, section: row.section,
		}
		if row.of.at >= 0 {
			one.start, one.end = row.of.at+c.Bytes.Start, row.of.at+c.Bytes.End
		}
		if c.Kind == claims.Item {
			one.under, one.item = row.heading, true
		} else {
			row.heading = 0 // text in between does not belong to the list
		}
		e.sentences = append(e.sentences, one)
		if c.Kind == claims.Heading {
			row.heading = int32(len(e.sentences))
			row.section = row.heading
		}
		return
	}
	own, head, headed := strings.Cut(c.Context, ", ")
	switch {
	case row.text.Len() > 0 && strings.Contains(text[row.end:c.Bytes.Start], "\n"):
		e.endRow(source, row)
	case row.text.Len() > maxRow:
		e.endRow(source, row)
		row.text.WriteString(own[:min(len(own), maxRow/4)])
	}
	if row.text.Len() > 0 {
		row.text.WriteString(" | ")
	}
	if row.text.Len() == 0 {
		if row.unit = ""; !headed { // the first cell has only the head of its column
			row.unit = unitOfRow(own, c.Text)
		}
	}
	if headed {
		if row.unit != "" && ofPeriod(head) {
			head += " (" + row.unit + ")"
		}
		writeCell(&row.text, head, c.Text)
	} else {
		row.text.WriteString(c.Text)
	}
	row.end = c.Bytes.End
}

// entries returns how many entries the list has that begins with sentence i, and the first sentence
// after it. n is 0 if no list begins there.
func (e *Evidence) entries(i int) (n, next int) {
	first := &e.sentences[i]
	if !first.item || i > 0 && e.sentences[i-1].item && e.sentences[i-1].source == first.source {
		return 0, i
	}
	text, end := e.sources[first.source].Text, 0
	for ; i < len(e.sentences); i++ {
		s := &e.sentences[i]
		if !s.item || s.source != first.source || s.start < end {
			break
		}
		if n == 0 || strings.Contains(text[end:s.start], "\n") {
			n++
		}
		end = s.end
	}
	return n, i
}

// listed returns how many entries the source has that begins with sentence i, if it is only a list
// of items or a JSON list of strings. Otherwise it returns 0.
func (e *Evidence) listed(i int) int {
	first := &e.sentences[i]
	if i > 0 && e.sentences[i-1].source == first.source {
		return 0
	}
	text := e.sources[first.source].Text
	if !first.item {
		return texts(text)
	}
	n, next := e.entries(i)
	if next < len(e.sentences) && e.sentences[next].source == first.source {
		return 0
	}
	return n
}

// texts returns the number of strings in a JSON list that contains nothing else, or 0 for any other
// text.
func texts(text string) int {
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "[") {
		return 0
	}
	var list []string
	if json.Unmarshal([]byte(text), &list) != nil {
		return 0
	}
	return len(list)
}

func (e *Evidence) endRow(source int, row *tableRow) {
	if row.text.Len() == 0 {
		return
	}
	one := sentence{source: source, text: row.text.String(), start: -1, end: -1, section: row.section}
	e.sentences = append(e.sentences, one)
	row.text.Reset()
}

// Record reports whether sentence i is assembled and not in the source as it is: a table row, a
// record of several, or an unescaped string of a record.
func (e *Evidence) Record(i int) bool { return e.sentences[i].start < 0 }

// Empty reports whether there is nothing to check against. e may be nil.
func (e *Evidence) Empty() bool { return e == nil || len(e.sentences) == 0 }

// Size estimates the memory of an Evidence in bytes: twelve per byte of text, measured with prose.
// e may be nil.
func (e *Evidence) Size() int {
	n := 0
	if e != nil {
		for i := range e.sources {
			n += len(e.sources[i].Text)
		}
	}
	return 12 * n
}

// Len returns the number of sentences.
func (e *Evidence) Len() int { return len(e.sentences) }

// Numbers returns the index of the numbers. Its sentence indices are those of Premise.Sentence.
func (e *Evidence) Numbers() *numeric.Index { return e.numbers }

// Premise returns sentence i as a premise without a score. i is an index such as
// numeric.Finding.Sentence.
func (e *Evidence) Premise(i int) Premise {
	s := e.sentences[i]
	return Premise{Source: s.source, ID: e.sources[s.source].ID, Sentence: i, Text: e.window(i), Page: e.lengths[s.source]}
}

// window returns sentence i with as many adjacent sentences of its source as fit into
// Options.WindowWords. The previous sentence is added first, because it usually contains what a
// pronoun refers to.
func (e *Evidence) window(i int) string {
	s := e.sentences[i]
	if s.start < 0 {
		return s.text
	}
	lo, hi, left := i, i, e.opts.WindowWords-s.words
	for {
		grown := false
		if n := lo - 1; e.sameText(n, i) && e.sentences[n].words <= left {
			lo, left, grown = n, left-e.sentences[n].words, true
		}
		if n := hi + 1; e.sameText(n, i) && e.sentences[n].words <= left {
			hi, left, grown = n, left-e.sentences[n].words, true
		}
		if !grown {
			break
		}
	}
	return e.sources[s.source].Text[e.sentences[lo].start:e.sentences[hi].end]
}

func (e *Evidence) sameText(n, i int) bool {
	return n >= 0 && n < len(e.sentences) && e.sentences[n].source == e.sentences[i].source &&
		e.sentences[n].part == e.sentences[i].part && e.sentences[n].start >= 0
}
