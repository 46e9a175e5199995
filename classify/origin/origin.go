// Package origin separates what the user quotes or pastes in a message from what the user says:
// fenced code, quoted mail, documents between tags, long quotations, retrieved material after the
// labels of a template, and material pasted below or above a request about it. An attack in such
// material may be aimed at the user (injection). It may also be the user's own, in quotation marks,
// so the signal for those (jailbreak) reads the whole message.
//
// The decision depends on form and on a few words of requests only; in doubt the text is the
// user's. The parts of a text cover all of it.
//
// Time is linear in the text. The functions have no state and are safe for concurrent use.
package origin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// Part is text[Start:End] of a message, with its origin: signal.OriginUser or signal.OriginData.
type Part struct {
	Start, End int
	Origin     signal.Origin
}

// Split appends the parts of text to dst and returns it: in order, non-empty, without gaps, and no
// two neighbours with the same origin. For valid UTF-8 they begin and end between code points. An
// empty text has no parts. The error is that of ctx, which is checked every 64 KiB; the parts
// appended until then must not be used.
func Split(ctx context.Context, text string, dst []Part) ([]Part, error) {
	if text == "" {
		return dst, nil
	}
	s := splitter{ctx: ctx, text: text}
	s.lines()
	s.marks()
	if len(s.data) == 0 {
		s.pasted()
	}
	s.labelled()
	if s.err != nil {
		return dst, s.err
	}
	return s.parts(dst), nil
}

// span is the half-open range of bytes text[from:to].
type span struct{ from, to int }

// splitter collects the parts of a text that are data.
type splitter struct {
	ctx  context.Context //nolint:containedctx // of one call
	err  error           // of ctx
	text string
	data []span
	look int  // byte at which the context is checked next
	line last // the last line break that marks has passed
	gap  last // the last empty line
}

// last finds the last occurrence of a string before a byte.
type last struct {
	seen int // end of the text that was searched
	at   int // end of the occurrence; 0 for none
}

// since reports whether of occurs in text[from:to]. to must not decrease between calls: all calls
// together search the text once.
func (l *last) since(text, of string, from, to int) bool {
	begin := max(0, l.seen-len(of)+1)
	if n := strings.LastIndex(text[begin:to], of); n >= 0 {
		l.at = begin + n + len(of)
	}
	l.seen = to
	return l.at >= from+len(of)
}

// lookBytes is the amount of text read between two checks of the context.
const lookBytes = 64 << 10

// ended reports whether the context has ended, at byte i of a stage that walks through the text.
func (s *splitter) ended(i int) bool {
	if s.err == nil && i >= s.look {
		s.look = i + lookBytes
		s.err = s.ctx.Err()
	}
	return s.err != nil
}

// lines finds material marked line by line: fences and quotes. An unclosed fence does not count,
// and the text after it is the user's.
func (s *splitter) lines() {
	s.look = 0
	fence, opened := "", 0
	quoted, first := 0, 0
	for at := 0; at < len(s.text) && !s.ended(at); {
		end := lineEnd(s.text, at)
		line := strings.Trim(s.text[at:end], " \t\r\n")
		switch mark := fenceOf(line); {
		case fence != "":
			if strings.HasPrefix(mark, fence) && len(mark) == len(line) {
				s.data, fence = append(s.data, span{opened, end}), ""
			}
		case mark != "" && !strings.Contains(line[len(mark):], mark[:1]):
			fence, opened = mark, at
		}
		if fence == "" && strings.HasPrefix(line, ">") {
			if quoted++; quoted == 1 {
				first = at
			}
		} else {
			s.quote(quoted, span{first, at})
			quoted = 0
		}
		at = end
	}
	s.quote(quoted, span{first, len(s.text)})
}

// quote processes lines that begin with a quote mark.
func (s *splitter) quote(lines int, at span) {
	if lines > 1 {
		s.data = append(s.data, at)
	}
}

// lineEnd returns the end of the line that contains byte at, including its line break.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// minFence is the minimum number of marks in a fence (CommonMark 0.31, section 4.5).
const minFence = 3

// fenceOf returns the marks at the start of a line that opens or closes a fence.
func fenceOf(line string) string {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return ""
	}
	n := 1
	for n < len(line) && line[n] == line[0] {
		n++
	}
	if n < minFence {
		return ""
	}
	return line[:n]
}

// earlier orders spans by their start.
func earlier(a, b span) int { return cmp.Compare(a.from, b.from) }

// parts merges the spans of data and fills the gaps with parts of the user.
func (s *splitter) parts(dst []Part) []Part {
	slices.SortFunc(s.data, earlier)
	at, before := 0, len(dst)
	add := func(from, to int, o signal.Origin) {
		if from >= to {
			return
		}
		if n := len(dst); n > before && dst[n-1].Origin == o {
			dst[n-1].End = to
			return
		}
		dst = append(dst, Part{from, to, o})
	}
	for _, d := range s.data {
		from := max(d.from, at)
		if from >= d.to {
			continue
		}
		add(at, from, signal.OriginUser)
		add(from, d.to, signal.OriginData)
		at = d.to
	}
	add(at, len(s.text), signal.OriginUser)
	return dst
}
