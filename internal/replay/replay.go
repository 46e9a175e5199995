// Package replay compares a log of decisions with what another configuration would decide: which
// requests would go elsewhere, which would only be sent with other parameters, and for which the log
// does not say enough. It knows lines and how to count them, not how decisions are made; see
// proxy.Proxy.Redecide for that.
//
// Run works on the caller's goroutine and starts none.
package replay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"signalbox/proxy/decisionlog"
)

// Decide decides a logged request under the new configuration. It returns an error only when ctx ends.
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
// decisions that are read; 0 reads all. progress, when not nil, is called with the bytes read so far,
// of all sources together, after every line. A line that cannot be read is counted and named, not an
// error; that a source cannot be read is one.
func Run(ctx context.Context, sources []Source, limit int, decide Decide, progress func(read int64)) (*Report, error) {
	t := newTally()
	var read int64
	for _, s := range sources {
		lines := lineReader{r: bufio.NewReaderSize(s.Reader, 64<<10)}
		for limit == 0 || t.Decisions < limit {
			line, err := lines.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err == nil || errors.Is(err, errLongLine) {
				err = t.take(ctx, fmt.Sprintf("%s:%d", s.Name, lines.n), line, err, decide)
			}
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", s.Name, err)
			}
			if progress != nil {
				progress(read + lines.read)
			}
		}
		read += lines.read
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

var errLongLine = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// lineReader reads lines of any length and counts them.
type lineReader struct {
	r    *bufio.Reader
	n    int   // of the last line, from 1
	read int64 // bytes
	line []byte
}

// next returns the next line without its end; it is valid until the next call. After a line that is
// too long it goes on with the one behind it.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		if long = long || len(l.line)+len(part) > maxLine; !long {
			l.line = append(l.line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(l.line) == 0 && !long):
			return nil, err
		}
		l.n++
		if long {
			return nil, errLongLine
		}
		return trimEnd(l.line), nil
	}
}

func trimEnd(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}
