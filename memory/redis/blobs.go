package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

// chunkSize bounds one value, so that no command holds up those behind it on a shared connection for long.
const chunkSize = 512 << 10

// uncommitted is how long chunks live that no record refers to yet.
const uncommitted = 10 * time.Minute

func chunks(packed int64) int { return int((packed + chunkSize - 1) / chunkSize) }

func (s *Store) chunkKey(t ledger.Tenant, o ledger.Object, n int) string {
	return s.key(t, "o:"+o.Sum.String()+":"+strconv.Itoa(n))
}

// Put writes the packed form of an object. It stays if a record that refers to it is committed soon. Errors
// are ledger.ErrFull and ErrUnavailable.
func (s *Store) Put(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error {
	err := s.do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		known, err := c.Do(ctx, c.B().Exists().Key(s.key(t, "o:"+o.Sum.String())).Build()).AsInt64()
		if err != nil || known > 0 {
			return err
		}
		sets := make(rueidis.Commands, 0, chunks(o.Packed))
		for n := range chunks(o.Packed) {
			piece := packed[n*chunkSize : min((n+1)*chunkSize, len(packed))]
			// NX: a chunk that a record refers to must not get a time to live.
			sets = append(sets, c.B().Set().Key(s.chunkKey(t, o, n)).Value(rueidis.BinaryString(piece)).Nx().Px(uncommitted).Build())
		}
		for _, r := range c.DoMulti(ctx, sets...) {
			if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write object: %w", err)
	}
	return nil
}

// Get reads the packed form of an object; whoever unpacks it checks the sum. Errors are ledger.ErrMissing
// when a chunk is not there, and ErrUnavailable.
func (s *Store) Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error) {
	var packed []byte
	err := s.do(ctx, s.o.BlobBudget, func(ctx context.Context, c rueidis.Client) error {
		gets := make(rueidis.Commands, chunks(o.Packed))
		for n := range gets {
			gets[n] = c.B().Get().Key(s.chunkKey(t, o, n)).Build()
		}
		for n, r := range c.DoMulti(ctx, gets...) {
			piece, err := r.AsBytes()
			if rueidis.IsRedisNil(err) {
				return fmt.Errorf("%w: chunk %d of %v", ledger.ErrMissing, n, o.Sum)
			}
			if err != nil {
				return err
			}
			if len(gets) == 1 {
				packed = piece
				return nil
			}
			if packed == nil {
				packed = make([]byte, 0, o.Packed)
			}
			packed = append(packed, piece...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return packed, nil
}
