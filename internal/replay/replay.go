// Package replay compares a decision log with the decisions of another configuration: which
// requests would be routed elsewhere, which would only be sent with other parameters, and for which
// the log lacks data. It reads and counts lines; proxy.Proxy.Redecide makes the decisions.
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

// maxLine is the longest line in bytes that is read. A recorded prompt is at most as long as the
// largest body, and JSON may encode a byte as six.
const maxLine = 512 << 20

// Run decides every line of the sources again, in order, and counts the changes. limit limits the
// number of decisions; 0 reads all. progress, if not nil, is called after every line with the total
// of bytes read so far. A line that cannot be read is counted and reported, not an error; a source
// that cannot be read is an error.
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

// take decides one line; empty lines are ignored. bad is the reason why a line could not be read.
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
