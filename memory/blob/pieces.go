package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Large bytes that somebody waits for are packed in pieces side by side, and unpacked so: one for each processor, of pieceSize
// bytes or more. The payload begins with their number (1 byte) and the length of each one's frame (4 bytes, big-endian); the
// frames follow. Piece i of n holds the bytes from i*size/n on.
const (
	pieceSize  = 256 << 10 // smaller ones find less that repeats: two halves of 550 KiB of prose take 1.3 % more than the whole
	mostPieces = 64
)

func pieceCount(size int) int { return min(size/pieceSize, runtime.GOMAXPROCS(0), mostPieces) }

// bounds of piece i of n.
func bounds(i, n, size int) (from, to int) {
	return int(int64(i) * int64(size) / int64(n)), int(int64(i+1) * int64(size) / int64(n))
}

// packPieces is pack with the fast encoder, in n pieces.
func packPieces(raw []byte, n int) []byte {
	frames := make([][]byte, n)
	var wg sync.WaitGroup
	for i := range n {
		from, to := bounds(i, n, len(raw))
		wg.Go(func() { frames[i] = fast().EncodeAll(raw[from:to], make([]byte, 0, (to-from)/3)) })
	}
	wg.Wait()
	room := 1
	for _, f := range frames {
		room += 4 + len(f)
	}
	dst := append(header(raw, pieces, 0, room), byte(n))
	for _, f := range frames {
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f)))
	}
	for _, f := range frames {
		dst = append(dst, f...)
	}
	return kept(dst, raw)
}

func unpackPieces(payload []byte, size int) ([]byte, error) {
	if len(payload) == 0 || payload[0] < 2 || payload[0] > mostPieces || len(payload) < 1+4*int(payload[0]) {
		return nil, fmt.Errorf("%w: no table of pieces", ErrDamaged)
	}
	n := int(payload[0])
	table, frames := payload[1:1+4*n], payload[1+4*n:]
	raw := make([]byte, size)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		length := binary.BigEndian.Uint32(table[4*i:])
		if uint64(length) > uint64(len(frames)) {
			errs[i] = fmt.Errorf("%w: piece %d is cut", ErrDamaged, i)
			break
		}
		frame := frames[:length]
		frames = frames[length:]
		from, to := bounds(i, n, size)
		wg.Go(func() { errs[i] = unframe(frame, raw[from:to]) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(frames) > 0 {
		return nil, fmt.Errorf("%w: %d bytes behind the last piece", ErrDamaged, len(frames))
	}
	return raw, nil
}
