package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Large data for which a client waits is packed and unpacked in pieces in parallel: one per
// processor, of pieceSize bytes or more. The payload begins with their number (1 byte) and the
// length of each frame (4 bytes, big-endian); the seams and the frames follow. Piece i of n holds
// the bytes from i*size/n on, except a seam: the first seamSize bytes of every piece except the
// first, which are stored uncompressed. Thus each piece has slack after it to which no other piece
// writes. The codec pieces has no seams.
const (
	// smaller pieces find fewer repetitions: two halves of 550 KiB of prose take 1.3 % more than
	// the whole.
	pieceSize  = 256 << 10
	mostPieces = 64
	seamSize   = slack
)

func pieceCount(size int) int { return min(size/pieceSize, runtime.GOMAXPROCS(0), mostPieces) }

// bounds returns the range of piece i of n.
func bounds(i, n, size int) (from, to int) {
	return int(int64(i) * int64(size) / int64(n)), int(int64(i+1) * int64(size) / int64(n))
}

// side runs f for 0 to n-1 in parallel, the last one on the caller's goroutine.
func side(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n - 1 {
		wg.Go(func() { f(i) })
	}
	f(n - 1)
	wg.Wait()
}

// scratch is for frames that are put together. What is larger than mostScratch is not kept.
//
//nolint:gochecknoglobals // memory that is used again is not asked of the system page by page, and nobody sees what is in it
var scratch = sync.Pool{New: func() any { return new([]byte) }}

const mostScratch = 1 << 20

// packPieces is pack with the fast encoder, in n pieces.
func packPieces(raw []byte, n int) []byte {
	frames := make([]*[]byte, n)
	side(n, func(i int) {
		from, to := bounds(i, n, len(raw))
		if i > 0 {
			from += seamSize
		}
		f := scratch.Get().(*[]byte) //nolint:errcheck,forcetypeassert // the pool holds nothing else
		*f = fast().EncodeAll(raw[from:to], (*f)[:0])
		frames[i] = f
	})
	room := 1 + (n-1)*seamSize
	for _, f := range frames {
		room += 4 + len(*f)
	}
	dst := append(header(raw, seamed, 0, room), byte(n))
	for _, f := range frames {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(*f)))
	}
	for i := 1; i < n; i++ {
		from, _ := bounds(i, n, len(raw))
		dst = append(dst, raw[from:from+seamSize]...)
	}
	for _, f := range frames {
		dst = append(dst, *f...)
		if cap(*f) <= mostScratch {
			scratch.Put(f)
		}
	}
	return kept(dst, raw)
}

// unpackPieces unpacks pieces with seams of seam bytes into raw, which has slack after its end.
func unpackPieces(payload, raw []byte, seam int) error {
	if len(payload) == 0 || payload[0] < 2 || payload[0] > mostPieces || len(payload) < 1+4*int(payload[0])+seam*int(payload[0]-1) {
		return fmt.Errorf("%w: no table of pieces", ErrDamaged)
	}
	n := int(payload[0])
	if len(raw) < n*(seam+1) {
		return fmt.Errorf("%w: %d bytes in %d pieces", ErrDamaged, len(raw), n)
	}
	table, seams, rest := payload[1:1+4*n], payload[1+4*n:1+4*n+seam*(n-1)], payload[1+4*n+seam*(n-1):]
	frames := make([][]byte, n)
	for i := range frames {
		length := binary.BigEndian.Uint32(table[4*i:])
		if uint64(length) > uint64(len(rest)) {
			return fmt.Errorf("%w: piece %d is cut", ErrDamaged, i)
		}
		frames[i], rest = rest[:length], rest[length:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last piece", ErrDamaged, len(rest))
	}
	errs := make([]error, n)
	side(n, func(i int) {
		from, to := bounds(i, n, len(raw))
		end := to + seam
		if i > 0 {
			from += seam
		}
		if i == n-1 {
			end = to + slack
		}
		errs[i] = unframe(frames[i], raw[from:to:end])
	})
	for i := 1; i < n; i++ { // only now: the previous piece may have written there
		from, _ := bounds(i, n, len(raw))
		copy(raw[from:], seams[(i-1)*seam:i*seam])
	}
	return errors.Join(errs...)
}
