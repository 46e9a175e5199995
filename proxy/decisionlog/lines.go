package decisionlog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// ErrLongLine is the error for a line longer than the limit.
var ErrLongLine = errors.New("too long a line")

// Lines reads a log line by line, with one line in memory. It belongs to one goroutine.
type Lines struct {
	r    *bufio.Reader
	most int
	n    int
	read int64
	line []byte
}

// NewLines returns the lines of r, each of no more than most bytes.
func NewLines(r io.Reader, most int) *Lines {
	return &Lines{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// Number returns the number of the last line from Next, counted from 1; 0 before the first.
func (l *Lines) Number() int { return l.n }

// Read returns the number of bytes read, including skipped lines.
func (l *Lines) Read() int64 { return l.read }

// Next returns the next line without its end. The line is valid until the next call. For a line
// that is too long the error wraps ErrLongLine, and the next call continues with the following
// line. At the end it returns io.EOF; any other error is the reader's.
func (l *Lines) Next() ([]byte, error) {
	l.line = l.line[:0]
	long := false
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		if long = long || len(l.line)+len(part) > l.most; !long {
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
			return nil, fmt.Errorf("%w: it has more than %d bytes", ErrLongLine, l.most)
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
