// Package origin tells what the user shows in a message from what the user says: code in fences,
// quoted mails, documents between tags, long quotations, retrieved material behind the labels of a
// template, and material that was pasted below or above a request about it. An attack in what is
// shown may be aimed at the user (injection); it may as well be the user's own, in quotation marks,
// so whoever looks for those (jailbreak) reads all of the message.
//
// It goes by form alone and by a few words of requests, and in doubt the text is the user's. The
// parts of a text cover it.
//
// Time is linear in the text. The functions keep no state and are safe for concurrent use.
package origin

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"signalbox/internal/signal"
)

// Part is text[Start:End] of a message, and whose it is: signal.OriginUser or signal.OriginData.
type Part struct {
	Start, End int
	Origin     signal.Origin
}

// Split appends the parts of text to dst and returns it: in order, not empty, without a gap, no two
// neighbours of one origin. They begin and end between code points of a text that is valid UTF-8.
// Of an empty text there are none. The error is that of ctx, which is looked at every 64 KiB; what
// was appended by then is of no use.
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
	look int  // byte at which the context is looked at next
	line last // the last line break that marks has passed
	gap  last // the last empty line
}

// last finds the last place of a string before a byte.
type last struct {
	seen int // up to where it has looked
	at   int // the place behind the string; 0 for none
}

// since reports whether of is in text[from:to], to no smaller than in the calls before: all calls
// together go through the text once.
func (l *last) since(text, of string, from, to int) bool {
	begin := max(0, l.seen-len(of)+1)
	if n := strings.LastIndex(text[begin:to], of); n >= 0 {
		l.at = begin + n + len(of)
	}
	l.seen = to
	return l.at >= from+len(of)
}

// lookBytes is how much is read between two looks at the context.
const lookBytes = 64 << 10

// ended reports whether the context has ended, at byte i of a stage that goes through the text.
func (s *splitter) ended(i int) bool {
	if s.err == nil && i >= s.look {
		s.look = i + lookBytes
		s.err = s.ctx.Err()
	}
	return s.err != nil
}

// lines finds what is marked line by line: fences and quotes. A fence that nothing closes is none,
// and whatever follows it is the user's.
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

// quote takes lines that begin with the mark of a quote.
func (s *splitter) quote(lines int, at span) {
	if lines > 1 {
		s.data = append(s.data, at)
	}
}

// lineEnd returns where the line that holds byte at ends, its line break included.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// minFence is how many marks open a fence (CommonMark 0.31, section 4.5).
const minFence = 3

// fenceOf returns the marks that a line begins with if they open or close a fence.
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

// earlier orders spans by where they begin.
func earlier(a, b span) int { return cmp.Compare(a.from, b.from) }

// parts merges what is data and fills in what is the user's.
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
