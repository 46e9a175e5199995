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

// extent is how much of a long prompt the safety signals read.
type extent uint8

const (
	bestWindows extent = iota // the windows selected by a scan
	everyWindow
)

// request is the text of one Extract and the parts of it that signals read. prepare lays out its
// units once, on the caller's goroutine; engines then read them concurrently.
type request struct {
	text    *signal.Text
	extent  extent
	scanner scanner // for bundles without a scanner of their own; may be nil
	origins origins
	units   []unit
	tongues tongues // for a source for other languages, which needs the language of each unit

	detected struct { // languages of the last user message, once detected
		told bool
		language.Told
	}
}

func newRequest(text *signal.Text, how extent, o *Options) *request {
	return &request{text: text, extent: how, origins: o.origins()}
}

// prepare lays out the text that the safety signals among the kinds of need read. After an error,
// which is that of ctx, the units are incomplete and must not be read.
func (r *request) prepare(ctx context.Context, need signal.Mask) error {
	if need&safetyKinds == 0 || r.units != nil {
		return nil
	}
	return r.layUnits(ctx, need)
}

// twins returns the normalised twins of the segments that have one. They are built per segment, so
// that a long conversation with one unusual message is not read twice. Its error is that of ctx.
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

// viewBytes is the amount of a segment normalised between two checks of the context: some 8 ms for
// the texts that are slowest to normalise.
const viewBytes = 64 << 10

const (
	// minRun is the minimum length of a sequence of encoding characters, without white space except
	// line breaks, that is treated as encoded data: no part ends inside of it at a position where
	// its alphabet would get out of step.
	minRun = 32
	// runStep is a number of characters after which the following are in step: base64, base32,
	// hexadecimal and binary digits, and escapes of two, three, four or six characters, each also
	// inside of base64, base32 or hexadecimal. It is divisible by the number of characters that
	// each of them needs for 24 bytes.
	runStep = 192
	// lineStep is the same for one encoding inside another if the outer one is not base32.
	lineStep = 48
	// runOverlap is the overlap of two parts of a run, so that an encoded sentence is complete in
	// one of them.
	runOverlap = 8 * runStep
	// wordOverlap is the same for other text without white space.
	wordOverlap = 256
)

// twinOf is views.Twin for a text of any size. It checks the context between parts. Text in the
// overlap of two parts occurs twice in the twin.
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

// partOf returns the end of the first part of text, at most viewBytes from its start, and the start
// of the next: at white space, or, if there is none, some way before the end of the part.
func partOf(text string) (end, next int) {
	if len(text) <= viewBytes {
		return len(text), len(text)
	}
	if start, n := runBefore(text[:viewBytes]); n >= minRun {
		// Line breaks may make up most of a run; parts must not become too small because of them.
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

// runBefore returns the start of the encoding characters at the end of text, and their number
// without line breaks. Preceding lines belong to the run as long as they are long enough.
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

// lineBefore returns the start, within their line, of the encoding characters that end at end.
func lineBefore(text string, end int) int {
	for end > 0 && encoding[text[end-1]] {
		end--
	}
	return end
}

// runBack returns the position n encoding characters before end, or start if that comes first.
func runBack(text string, start, end, n int) int {
	for ; end > start && n > 0; end-- {
		if !lineBreak(text[end-1]) {
			n--
		}
	}
	return end
}

// runResumes returns where in the run that starts at start the next part begins: in step, and with
// enough of a line before the next line break for the text after it to be recognised as its
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

// blank reports whether text consists of white space only. Its error is that of ctx.
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

// recovered returns the error for a panic, with its stack.
func recovered(v any) error { return &panicError{fmt.Sprintf("%v\n%s", v, debug.Stack())} }
