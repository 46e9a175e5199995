package classify

import (
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

// prepare builds the views that the kinds of need read.
func (r *request) prepare(need signal.Mask) {
	if need.Has(signal.Jailbreak) || need.Has(signal.PII) {
		r.join()
	}
	if need.Has(signal.Jailbreak) || need.Has(signal.Keyword) {
		r.normalise()
	}
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
// one odd message is not read twice.
func (r *request) normalise() {
	if r.twinned {
		return
	}
	r.twinned = true
	for i := range r.text.Segments {
		if t, changed := views.Twin(r.text.Segments[i].Text); changed {
			r.twins = append(r.twins, t)
		}
	}
	r.twin = strings.Join(r.twins, "\n")
}

// recovered is the error of a panic, with the place where it happened.
func recovered(v any) error { return &panicError{fmt.Sprintf("%v\n%s", v, debug.Stack())} }
