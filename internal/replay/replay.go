// Package replay compares a log of decisions with what another configuration would decide: which
// requests would go elsewhere, which would only be sent with other parameters, and for which the
// log does not say enough. It knows lines and how to count them, not how decisions are made; see
// proxy.Proxy.Redecide for that.
//
// Run works on the caller's goroutine and starts none.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"signalbox/proxy/decisionlog"
)

// Decide decides a logged request under the new configuration. It returns an error only when ctx
// ends.
type Decide func(ctx context.Context, l *decisionlog.Entry) (*decisionlog.Redecision, error)

// Source is one file of a log.
type Source struct {
	Name   string // for messages
	Reader io.Reader
}

// maxLine is the longest line that is read, in bytes. A recorded prompt is at most as long as the
// largest body, and JSON may write a byte as six.
const maxLine = 512 << 20

// Run decides every line of the sources again, in order, and counts what changes. limit bounds the
// decisions that are read; 0 reads all. progress, when not nil, is called with the bytes read so
// far, of all sources together, after every line. A line that cannot be read is counted and named,
// not an error; that a source cannot be read is one.
func Run(ctx context.Context, sources []Source, limit int, decide Decide, progress func(read int64)) (*Report, error) {
	t := newTally()
	var read int64
	for _, s := range sources {
		lines := decisionlog.NewLines(s.Reader, maxLine)
		for limit == 0 || t.Decisions < limit {
			line, err := lines.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil || errors.Is(err, decisionlog.ErrLongLine) {
				err = t.take(ctx, fmt.Sprintf("%s:%d", s.Name, lines.Number()), line, err, decide)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", s.Name, err)
			}
			if progress != nil {
				progress(read + lines.Read())
			}
		}
		read += lines.Read()
	}
	return t.report(), nil
}

// take decides one line; empty ones are none. bad says why it could not be read.
func (t *tally) take(ctx context.Context, place string, line []byte, bad error, decide Decide) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(line) == 0 && bad == nil {
		return nil
	}
	var l *decisionlog.Entry
	if bad == nil {
		l, bad = decisionlog.Parse(line)
	}
	if errors.Is(bad, decisionlog.ErrRefusal) {
		return nil // there is nothing to decide again
	}
	if bad != nil {
		t.unreadable(place, bad)
		return nil
	}
	now, err := decide(ctx, l)
	if err != nil {
		return err
	}
	t.count(place, l, now)
	return nil
}
