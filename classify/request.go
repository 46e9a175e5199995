package classify

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"signalbox/classify/language"
	"signalbox/classify/views"
	"signalbox/internal/signal"
)

// extent says how much of a long prompt the safety signals read.
type extent uint8

const (
	bestWindows extent = iota // the windows that a scan finds worth reading
	everyWindow
)

// request is the text of one Extract and what its signals read of it. Its units are laid out once,
// by prepare, on the caller's goroutine; after that engines read them beside each other.
type request struct {
	text    *signal.Text
	extent  extent
	scanner scanner // for bundles without one of their own; may be nil
	origins origins
	units   []unit
	tongues tongues // for a source for other languages, which wants to know which units are in one

	detected struct { // of the last user message, once it was asked
		told bool
		language.Told
	}
}

func newRequest(text *signal.Text, how extent, o *Options) *request {
	return &request{text: text, extent: how, origins: o.origins()}
}

// prepare lays out what the safety signals among the kinds of need read. Its error is that of ctx;
// the units are not whole then, and nobody may read them.
func (r *request) prepare(ctx context.Context, need signal.Mask) error {
	if need&safetyKinds == 0 || r.units != nil {
		return nil
	}
	return r.layUnits(ctx, need)
}

// twins returns the normalised twins of the segments that have one. They are built segment by
// segment, so that a long conversation with one odd message is not read twice. Its error is that of
// ctx.
func (r *request) twins(ctx context.Context) ([]string, error) {
	var twins []string
	for i := range r.text.Segments {
		t, changed, err := twinOf(ctx, r.text.Segments[i].Text)
		if err != nil {
			return nil, err
		}
		if changed {
			twins = append(twins, t)
		}
	}
	return twins, nil
}

// viewBytes is how much of a segment is normalised between two looks at
// the context: some 8 ms for the texts that are slowest to normalise.
const viewBytes = 64 << 10

const (
	// minRun is the length from which characters of an encoding without white space but line breaks
	// are taken for one: no part ends inside of it at a place where its alphabet would get out of
	// step.
	minRun = 32
	// runStep is a number of characters after which base64, base32, hexadecimal and binary digits,
	// and escapes of two, three, four or six characters are in step, each inside of base64, base32
	// or hexadecimal as well: the characters of 24 bytes in every one of them divide it.
	runStep = 192
	// lineStep is the same for one encoding inside of another where the outer one is not base32.
	lineStep = 48
	// runOverlap is how much of a run two parts share: a sentence that is encoded in it is whole in
	// one of them.
	runOverlap = 8 * runStep
	// wordOverlap is the same for other text without white space.
	wordOverlap = 256
)

// twinOf is views.Twin for a text of any size. The context is checked between its parts. What two
// parts share is in the twin twice.
func twinOf(ctx context.Context, text string) (twin string, changed bool, err error) {
	var parts []string
	for rest := text; ; {
		if err := ctx.Err(); err != nil {
			return "", false, err
		}
		end, next := partOf(rest)
		part, odd := views.Twin(rest[:end])
		parts, changed = append(parts, part), changed || odd
		if rest = rest[next:]; rest == "" {
			break
		}
	}
	if !changed {
		return text, false, nil
	}
	return strings.Join(parts, ""), true, nil
}

// partOf returns where the first part of text ends, at most viewBytes from its start, and where the
// next one begins: at white space, or, where there is none, some way before the end of the part.
func partOf(text string) (end, next int) {
	if len(text) <= viewBytes {
		return len(text), len(text)
	}
	if start, n := runBefore(text[:viewBytes]); n >= minRun {
		// Line breaks may make up most of a run: parts must not become small for that.
		if end = runBack(text, start, viewBytes, n%runStep); end < viewBytes/2 {
			end = viewBytes
		}
		if next = runResumes(text, start, end); next < viewBytes/2 {
			next = end
		}
		return end, next
	}
	if n := strings.LastIndexAny(text[:viewBytes], " \n"); n > 0 {
		return n, n
	}
	end = cutAt(text, viewBytes)
	return end, cutAt(text, end-wordOverlap)
}

// runBefore returns where the characters of an encoding at the end of text begin, and how many they
// are, line breaks apart. The lines before the last one belong to it as far as they are long.
func runBefore(text string) (start, n int) {
	start = lineBefore(text, len(text))
	n = len(text) - start
	for {
		end := start
		for end > 0 && lineBreak(text[end-1]) {
			end--
		}
		from := lineBefore(text, end)
		if end == start || end-from < minRun {
			return start, n
		}
		start, n = from, n+end-from
	}
}

// lineBefore returns where the characters of an encoding that end at end begin in their line.
func lineBefore(text string, end int) int {
	for end > 0 && encoding[text[end-1]] {
		end--
	}
	return end
}

// runBack returns the place n characters of an encoding before end, or start if that comes first.
func runBack(text string, start, end, n int) int {
	for ; end > start && n > 0; end-- {
		if !lineBreak(text[end-1]) {
			n--
		}
	}
	return end
}

// runResumes returns where in the run that starts at start the next part begins: in step, and with
// enough of a line in front of the next line break for what follows to be taken for its
// continuation.
func runResumes(text string, start, end int) int {
	next := runBack(text, start, end, runOverlap)
	for _, step := range [...]int{runStep, lineStep} {
		at := next
		for range 8 {
			if n := strings.IndexAny(text[at:min(at+minRun, end)], "\r\n"); n < 0 {
				return at
			}
			at = runBack(text, start, at, step)
		}
	}
	return next
}

func lineBreak(c byte) bool { return c == '\n' || c == '\r' }

// encoding holds the characters of base64 in both alphabets, and so of base32, hexadecimal and
// binary, and those that escapes of bytes and code points are made of.
//
//nolint:gochecknoglobals // constant table
var encoding = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = b|0x20 >= 'a' && b|0x20 <= 'z' || b >= '0' && b <= '9' || strings.IndexByte(`+/-_=%\`, b) >= 0
	}
	return t
}()

// blank reports whether text is white space alone. Its error is that of ctx.
func blank(ctx context.Context, text string) (bool, error) {
	for len(text) > viewBytes {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if strings.TrimSpace(text[:viewBytes]) != "" {
			return false, nil
		}
		text = text[viewBytes:]
	}
	return strings.TrimSpace(text) == "", nil
}

// recovered is the error of a panic, with the place where it happened.
func recovered(v any) error { return &panicError{fmt.Sprintf("%v\n%s", v, debug.Stack())} }
