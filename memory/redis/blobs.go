package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// chunkSize is the maximum size of one value, so that no command delays those behind it on a shared
// connection for long.
const chunkSize = 512 << 10

// uncommitted is the time to live of chunks that no record refers to yet.
const uncommitted = 10 * time.Minute

func chunks(packed int64) int { return int((packed + chunkSize - 1) / chunkSize) }

func (s *Store) chunkKey(t ledger.Tenant, o ledger.Object, n int) string {
	return s.key(t, "o:"+o.Sum.String()+":"+strconv.Itoa(n))
}

// Put writes the packed form of an object. It is removed unless a record that refers to it is
// committed soon. Errors are ledger.ErrFull and ErrUnavailable.
func (s *Store) Put(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error {
	err := s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		if chunks(o.Packed) > 1 { // else asking takes longer than sending
			known, err := c.Do(ctx, c.B().Exists().Key(s.key(t, "o:"+o.Sum.String())).Build()).AsInt64()
			if err != nil || known > 0 {
				return err
			}
		}
		sets := make(rueidis.Commands, 0, chunks(o.Packed))
		for n := range chunks(o.Packed) {
			piece := packed[n*chunkSize : min((n+1)*chunkSize, len(packed))]
			// NX: a chunk that a record refers to must not get a time to live.
			sets = append(sets, c.B().Set().Key(s.chunkKey(t, o, n)).Value(rueidis.BinaryString(piece)).Nx().Px(uncommitted).
				Build().ToRetryable())
		}
		for _, r := range c.DoMulti(ctx, sets...) {
			if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
				return err
			}
		}
		return nil
	})
	return wrap(err, "write object")
}

// Get reads the packed form of an object; unpacking it verifies the seal. Errors are
// ledger.ErrMissing if a chunk is missing, or if o has an impossible size, and ErrUnavailable.
func (s *Store) Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error) {
	if o.Packed < 1 || o.Packed > blob.MaxSize+blob.HeaderSize {
		return nil, fmt.Errorf("read object: %w: %v is said to take %d bytes", ledger.ErrMissing, o.Sum, o.Packed)
	}
	var packed []byte
	err := s.Do(ctx, s.o.BlobBudget, func(ctx context.Context, c rueidis.Client) (err error) {
		n := chunks(o.Packed) // as in the record; the object may be stored in another form
		for range 3 {
			var is layout
			if packed, is, err = s.read(ctx, c, t, o, n); err == nil || !errors.Is(err, errMoved) {
				return err
			}
			n = is.chunks
		}
		return fmt.Errorf("%w: %v was replaced again and again", ledger.ErrMissing, o.Sum)
	})
	return packed, wrap(err, "read object")
}

// layout is how a committed object is stored; zero for an uncommitted one.
type layout struct {
	chunks int
	form   string // changes with every Replace
}

// errMoved reports that an object has another layout than expected.
var errMoved = errors.New("object has another layout")

// read reads n chunks of an object, with its layout before and after them, in one pipeline on one
// connection.
func (s *Store) read(ctx context.Context, c rueidis.Client, t ledger.Tenant, o ledger.Object, n int) ([]byte, layout, error) {
	ask := func() rueidis.Completed {
		return c.B().Hmget().Key(s.key(t, "o:"+o.Sum.String())).Field("c", "f").Build()
	}
	calls := make(rueidis.Commands, 0, n+2)
	calls = append(calls, ask())
	for i := range n {
		calls = append(calls, c.B().Get().Key(s.chunkKey(t, o, i)).Build())
	}
	answers := c.DoMulti(ctx, append(calls, ask())...)
	before, err := layoutOf(answers[0])
	if err != nil {
		return nil, layout{}, s.absent(ctx, err, s.key(t, "o:"+o.Sum.String()))
	}
	after, err := layoutOf(answers[n+1])
	if err != nil {
		return nil, layout{}, s.absent(ctx, err, s.key(t, "o:"+o.Sum.String()))
	}
	if before != after || (after != layout{} && after.chunks != n) {
		return nil, after, errMoved
	}
	for i, r := range answers[1 : n+1] {
		if err := r.Error(); isKind(err) {
			return nil, after, s.absent(ctx, err, s.chunkKey(t, o, i))
		}
	}
	packed, err := joined(answers[1:n+1], o)
	return packed, after, err
}

// absent returns ledger.ErrMissing for a key of an unexpected type, which is logged; any other
// error is returned unchanged.
func (s *Store) absent(ctx context.Context, err error, key string) error {
	if !isKind(err) {
		return err
	}
	s.strange(ctx, key, false)
	return fmt.Errorf("%w: %s holds another type", ledger.ErrMissing, key)
}

func layoutOf(r rueidis.RedisResult) (layout, error) {
	fields, err := r.ToArray()
	if err != nil || len(fields) != 2 || fields[0].IsNil() {
		return layout{}, err
	}
	n, err := fields[0].AsInt64()
	if err != nil {
		return layout{}, err
	}
	if n < 1 || n > int64(chunks(blob.MaxSize+blob.HeaderSize)) {
		return layout{}, fmt.Errorf("%w: %d chunks", ledger.ErrMissing, n)
	}
	l := layout{chunks: int(n)}
	if !fields[1].IsNil() {
		l.form, err = fields[1].ToString()
	}
	return l, err
}

func joined(pieces []rueidis.RedisResult, o ledger.Object) ([]byte, error) {
	var packed []byte
	for n, r := range pieces {
		piece, err := r.AsBytes()
		if rueidis.IsRedisNil(err) {
			return nil, fmt.Errorf("%w: chunk %d of %v", ledger.ErrMissing, n, o.Sum)
		}
		if err != nil {
			return nil, err
		}
		if len(pieces) == 1 {
			return piece, nil
		}
		if packed == nil {
			packed = make([]byte, 0, len(pieces)*chunkSize)
		}
		packed = append(packed, piece...)
	}
	return packed, nil
}

// Replace replaces the stored packed form atomically. It has no effect if no record refers to the
// object. Errors are ledger.ErrFull and ErrUnavailable; in that case the old form stays.
func (s *Store) Replace(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error {
	n := chunks(int64(len(packed)))
	unique := rand.Text()
	object := s.key(t, "o:"+o.Sum.String())
	err := s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		sets := make(rueidis.Commands, 0, n)
		for i := range n {
			piece := packed[i*chunkSize : min((i+1)*chunkSize, len(packed))]
			sets = append(sets, c.B().Set().Key(object+":"+unique+":"+strconv.Itoa(i)).Value(rueidis.BinaryString(piece)).Px(uncommitted).Build())
		}
		for _, r := range c.DoMulti(ctx, sets...) {
			if err := r.Error(); err != nil {
				return err
			}
		}
		args := []string{strconv.Itoa(n), unique}
		err := s.scripts.replace.Exec(ctx, c, []string{object}, args).Error()
		if isKind(err) { // not an object that a record could refer to
			s.strange(ctx, object, false)
			return nil
		}
		return err
	})
	return wrap(err, "replace object")
}
