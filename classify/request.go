package classify

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"signalbox/classify/views"
	"signalbox/internal/signal"
)

// extent says how much of a long prompt the safety signals read.
type extent uint8

const (
	bestWindows extent = iota // head, tail and the windows that a scan finds worth reading
	everyWindow
)

// request is the text of one Extract in the views that its signals share. Views are built once, by
// prepare, on the caller's goroutine; after that engines read them beside each other.
type request struct {
	text    *signal.Text
	extent  extent
	scanner scanner // for bundles without one of their own; may be nil

	// safety is every segment that has text, in order, joined by line breaks; segment i begins at
	// starts[i]. Segments without text begin where the next one does.
	safety string
	starts []int
	// twins holds the normalised twins of the segments that have one, twin is them joined.
	twins []string
	twin  string

	joined, twinned bool
}

func newRequest(text *signal.Text, how extent) *request { return &request{text: text, extent: how} }

// prepare builds the views that the kinds of need read. Its error is that of ctx; the views are not
// whole then, and nobody may read them.
func (r *request) prepare(ctx context.Context, need signal.Mask) error {
	if need.Has(signal.Jailbreak) || need.Has(signal.PII) {
		r.join()
	}
	if need.Has(signal.Jailbreak) || need.Has(signal.Keyword) {
		return r.normalise(ctx)
	}
	return nil
}

// join builds the safety view.
func (r *request) join() {
	if r.joined {
		return
	}
	r.joined = true
	only, n, size := "", 0, 0
	for i := range r.text.Segments {
		if s := r.text.Segments[i].Text; s != "" {
			only, n, size = s, n+1, size+len(s)+1
		}
	}
	r.starts = make([]int, len(r.text.Segments))
	if n <= 1 {
		r.safety = only
		return
	}
	var b strings.Builder
	b.Grow(size)
	for i := range r.text.Segments {
		s := r.text.Segments[i].Text
		if s != "" && b.Len() > 0 {
			b.WriteByte('\n')
		}
		r.starts[i] = b.Len()
		b.WriteString(s)
	}
	r.safety = b.String()
}

// normalise builds the twins. They are built segment by segment, so that a long conversation with
// one odd message is not read twice. Its error is that of ctx; there are no twins then.
func (r *request) normalise(ctx context.Context) error {
	if r.twinned {
		return nil
	}
	var twins []string
	for i := range r.text.Segments {
		t, changed, err := twinOf(ctx, r.text.Segments[i].Text)
		if err != nil {
			return err
		}
		if changed {
			twins = append(twins, t)
		}
	}
	r.twinned, r.twins, r.twin = true, twins, strings.Join(twins, "\n")
	return nil
}

// viewBytes is how much of a segment is normalised, or searched for patterns, between two looks at
// the context.
const viewBytes = 256 << 10

// longestWord bounds the texts without white space that are normalised whole: where an encoded text is
// cut, what follows can be out of step with its alphabet.
const longestWord = 4 << 20

// twinOf is views.Twin for a text of any size. The context is checked between its parts.
func twinOf(ctx context.Context, text string) (twin string, changed bool, err error) {
	var parts []string
	for rest := text; ; {
		if err := ctx.Err(); err != nil {
			return "", false, err
		}
		n := partEnd(rest)
		part, odd := views.Twin(rest[:n])
		parts, changed = append(parts, part), changed || odd
		if rest = rest[n:]; rest == "" {
			break
		}
	}
	if !changed {
		return text, false, nil
	}
	return strings.Join(parts, ""), true, nil
}

// partEnd returns the length of the next part of text: at most viewBytes and up to white space, or a
// longer word, up to longestWord.
func partEnd(text string) int {
	if len(text) <= viewBytes {
		return len(text)
	}
	if n := strings.LastIndexAny(text[:viewBytes], " \n"); n > 0 {
		return n
	}
	most := min(len(text), longestWord)
	if n := strings.IndexAny(text[viewBytes:most], " \n"); n >= 0 {
		return viewBytes + n
	}
	if most == len(text) {
		return most
	}
	return cutAt(text, most)
}

// recovered is the error of a panic, with the place where it happened.
func recovered(v any) error { return &panicError{fmt.Sprintf("%v\n%s", v, debug.Stack())} }
