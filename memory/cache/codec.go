package cache

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// version is the first byte of an encoded answer.
const version = 3

var errDamaged = errors.New("damaged answer")

// appendAnswer appends the encoded answer of a key: the version, the key, three texts, the times,
// the headers, the pieces and the data. Numbers are unsigned varints, texts are preceded by their
// length; ends and times of pieces are differences.
func appendAnswer(dst []byte, key Key, a *Answer) []byte {
	dst = append(append(dst, version), key[:]...)
	for _, s := range [...]string{a.Model, a.Route, a.ContentType} {
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	dst = binary.AppendUvarint(dst, uint64(max(a.Made.UnixMilli(), 0)))
	dst = binary.AppendUvarint(dst, uint64(max(a.Took, 0)))
	dst = binary.AppendUvarint(dst, uint64(len(a.Headers)))
	for i := range a.Headers {
		for _, s := range [...]string{a.Headers[i].Name, a.Headers[i].Value} {
			dst = binary.AppendUvarint(dst, uint64(len(s)))
			dst = append(dst, s...)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(a.Pieces)))
	var last Piece
	for _, p := range a.Pieces {
		dst = binary.AppendUvarint(dst, uint64(p.End-last.End))
		dst = binary.AppendUvarint(dst, uint64(max(p.After-last.After, 0)))
		last = p
	}
	return append(dst, a.Data...)
}

// parseAnswer is the inverse of appendAnswer; an answer of another key is an error. The result
// retains data. It allocates no more than len(data) bytes.
func parseAnswer(data []byte, key Key) (*Answer, error) {
	rest, err := open(data, version, key)
	if err != nil {
		return nil, err
	}
	d := decoder{rest: rest}
	a := &Answer{Model: d.text(), Route: d.text(), ContentType: d.text()}
	a.Made = time.UnixMilli(d.number())
	a.Took = time.Duration(d.number())
	n := d.number()
	if n > int64(len(d.rest))/2 { // a header takes two bytes
		return nil, fmt.Errorf("%w: headers", errDamaged)
	}
	for range n {
		a.Headers = append(a.Headers, Header{d.text(), d.text()})
	}
	n = d.number()
	if n > int64(len(d.rest))/2 { // a piece takes two bytes
		return nil, fmt.Errorf("%w: pieces", errDamaged)
	}
	var last Piece
	for range n {
		p := Piece{End: last.End + int(d.number()), After: last.After + time.Duration(d.number())}
		if p.End <= last.End || p.After < last.After {
			return nil, fmt.Errorf("%w: order of pieces", errDamaged)
		}
		a.Pieces = append(a.Pieces, p)
		last = p
	}
	if d.failed || n > 0 && last.End != len(d.rest) {
		return nil, fmt.Errorf("%w: length", errDamaged)
	}
	a.Data = d.rest
	return a, nil
}

// open returns the bytes after the version and the key.
func open(data []byte, version byte, key Key) ([]byte, error) {
	if len(data) < 1+len(key) || data[0] != version {
		return nil, fmt.Errorf("%w: version", errDamaged)
	}
	if Key(data[1:1+len(key)]) != key {
		return nil, fmt.Errorf("%w: it is that of another key", errDamaged)
	}
	return data[1+len(key):], nil
}

// decoder reads the encoding of appendAnswer.
type decoder struct {
	rest   []byte
	failed bool
}

// number reads a number up to 2^62; for a larger or missing number it returns 0 and fails.
func (d *decoder) number() int64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || v > 1<<62 {
		d.rest, d.failed = nil, true
		return 0
	}
	d.rest = d.rest[n:]
	return int64(v)
}

func (d *decoder) text() string {
	n := d.number()
	if n > int64(len(d.rest)) {
		d.rest, d.failed = nil, true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// questionVersion is the first byte of an encoded question.
const questionVersion = 2

// appendQuestion appends the encoded question whose answer has a key: the version, the key, the
// partition, the vector preceded by its length, and the text.
func appendQuestion(dst []byte, key Key, q *Question) []byte {
	dst = append(append(append(dst, questionVersion), key[:]...), q.Part[:]...)
	dst = binary.AppendUvarint(dst, uint64(len(q.Vector)))
	for _, x := range q.Vector {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return append(dst, q.Text...)
}

// parseQuestion is the inverse of appendQuestion; a question of another key is an error.
func parseQuestion(data []byte, key Key) (Question, error) {
	var q Question
	rest, err := open(data, questionVersion, key)
	if err != nil || len(rest) < len(q.Part) {
		return q, fmt.Errorf("%w: question", errDamaged)
	}
	d := decoder{rest: rest[copy(q.Part[:], rest):]}
	n := d.number()
	if d.failed || n == 0 || n > int64(len(d.rest))/4 {
		return q, fmt.Errorf("%w: vector", errDamaged)
	}
	q.Vector = make([]float32, n)
	for i := range q.Vector {
		q.Vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.rest[4*i:]))
	}
	q.Text = string(d.rest[4*n:])
	return q, nil
}

// encode encodes the key of an answer, its time to live in milliseconds, and its question.
func (n *news) encode() []byte {
	return appendQuestion(binary.AppendUvarint(slices.Clone(n.key[:]), uint64(n.ttl.Milliseconds())), n.key, &n.q)
}

// parseNews is the inverse of news.encode.
func parseNews(data []byte) (n news, err error) {
	if len(data) < len(n.key) {
		return n, fmt.Errorf("%w: news", errDamaged)
	}
	d := decoder{rest: data[copy(n.key[:], data):]}
	ms := d.number()
	if d.failed || ms > math.MaxInt64/int64(time.Millisecond) {
		return n, fmt.Errorf("%w: time of news", errDamaged)
	}
	n.ttl = time.Duration(ms) * time.Millisecond
	n.q, err = parseQuestion(d.rest, n.key)
	return n, err
}

// parseKey parses the form of Key.String.
func parseKey(s string) (k Key, ok bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(k) {
		return k, false
	}
	return Key(b), true
}
