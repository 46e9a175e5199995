package prefix

import (
	"bytes"
	"io"
	"slices"
)

// Body is a request's body in consecutive pieces. It is immutable, so that any number of attempts
// can read it, each with its own reader.
type Body [][]byte

// Len returns the number of bytes.
func (b Body) Len() int {
	n := 0
	for _, p := range b {
		n += len(p)
	}
	return n
}

// Bytes returns the body in one piece; this is a copy, unless there is only one piece.
func (b Body) Bytes() []byte {
	if len(b) == 1 {
		return b[0]
	}
	return bytes.Join(b, nil)
}

// Reader returns a reader for one pass over the body. It belongs to one goroutine.
func (b Body) Reader() *Reader { return &Reader{body: b} }

// Reader reads a Body. It implements io.Reader and io.WriterTo.
type Reader struct {
	body      Body
	piece, at int
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.piece < len(r.body) {
		m := copy(p[n:], r.body[r.piece][r.at:])
		n += m
		if r.at += m; r.at == len(r.body[r.piece]) {
			r.piece, r.at = r.piece+1, 0
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo writes the rest, piece by piece.
func (r *Reader) WriteTo(w io.Writer) (int64, error) {
	var n int64
	for ; r.piece < len(r.body); r.piece, r.at = r.piece+1, 0 {
		m, err := w.Write(r.body[r.piece][r.at:])
		n += int64(m)
		if err != nil {
			r.at += m
			return n, err
		}
	}
	return n, nil
}

// insertion replaces a span by parts.
type insertion struct {
	at    span
	parts Body
}

// insert applies insertions, which must not overlap.
func insert(body []byte, edits []insertion) Body {
	slices.SortFunc(edits, func(a, b insertion) int { return a.at.start - b.at.start })
	var out Body
	at := 0
	for _, e := range edits {
		out = append(append(out, body[at:e.at.start]), e.parts...)
		at = e.at.end
	}
	return append(out, body[at:])
}
