package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

// Load returns a record. Errors are ledger.ErrNotFound, and ledger.ErrUnavailable if Redis is not
// reachable in time or returns something that is not this record.
func (s *Store) Load(ctx context.Context, t ledger.Tenant, id string) (ledger.Entry, error) {
	var e ledger.Entry
	err := s.Do(ctx, s.o.MetaBudget, func(ctx context.Context, c rueidis.Client) error {
		key := s.key(t, "c:"+id)
		ask := c.B().Hmget().Key(key).Field("rev", "exp", "rec").Build()
		fields, err := c.Do(ctx, ask).ToArray()
		if isKind(err) {
			s.strange(ctx, key, false)
			return ledger.ErrNotFound
		}
		if err != nil {
			return err
		}
		e, err = entry(fields, t, id)
		return err
	})
	return e, wrap(err, "load record")
}

// stored is a record as stored in Redis. It contains its own name, so that another record in its
// place is detected.
type stored struct {
	Tenant ledger.Tenant `json:"tenant"`

	*ledger.Record
}

// entry parses the fields rev, exp and rec of the record with a name.
func entry(fields []rueidis.RedisMessage, t ledger.Tenant, id string) (ledger.Entry, error) {
	if len(fields) != 3 || fields[0].IsNil() {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	rev, err := fields[0].AsInt64()
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: revision: %w", ledger.ErrDamaged, err)
	}
	end, err := fields[1].AsInt64()
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: end of life: %w", ledger.ErrDamaged, err)
	}
	text, err := fields[2].AsBytes()
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	record := stored{Record: new(ledger.Record)}
	if err := json.Unmarshal(text, &record); err != nil {
		return ledger.Entry{}, fmt.Errorf("%w: %w", ledger.ErrDamaged, err)
	}
	if record.ID != id || record.Tenant != t {
		return ledger.Entry{}, fmt.Errorf("%w: it is that of another name", ledger.ErrDamaged)
	}
	return ledger.Entry{Record: record.Record, Rev: rev, Expires: time.UnixMilli(end).UTC()}, nil
}

// Return codes of commit.lua.
const (
	committed = iota
	conflict
	missing
	tooManyContexts
	tooManyBytes
	tooManyPinned
	otherType
)

// errType reports that a script found a key of an unexpected type and did nothing.
var errType = errors.New("a key holds another type than it should")

// Commit applies a change and returns the new revision, and the objects to which the record no
// longer refers; other records may still refer to them. Errors are ledger.ErrConflict, ErrMissing,
// ErrFull, ErrUnavailable and *ledger.LimitError. After ErrUnavailable the change may or may not
// have been made.
func (s *Store) Commit(ctx context.Context, c ledger.Change) (int64, []ledger.Object, error) {
	args, dropped, err := s.arguments(&c)
	if err != nil {
		return 0, nil, err
	}
	keys := []string{s.key(c.Tenant, "c:"+c.ID), s.key(c.Tenant, "exp"), s.key(c.Tenant, "ids"), s.key(c.Tenant, "q")}
	script := s.scripts.commit
	if c.New == nil || !c.New.Counts() {
		script = s.scripts.shrink
	}
	var rev int64
	err = s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, client rueidis.Client) error {
		if err := s.note(ctx, client, &c); err != nil {
			return err
		}
		run := func() error {
			answer, err := script.Exec(ctx, client, keys, args).AsIntSlice()
			if err != nil {
				return err
			}
			rev, err = verdict(answer, c.Limits)
			return err
		}
		err := run()
		if !errors.Is(err, errType) {
			return err
		}
		if err := s.odd(ctx, client, true, s.typesOf(&c)...); err != nil {
			return err
		}
		if err = run(); errors.Is(err, errType) { // another program keeps writing to these keys
			err = ledger.ErrConflict
		}
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("commit record: %w", err)
	}
	return rev, dropped, nil
}

// typesOf returns the keys that a change touches, with their types.
func (s *Store) typesOf(c *ledger.Change) []typed {
	out := []typed{
		{s.key(c.Tenant, "c:"+c.ID), kindHash},
		{s.key(c.Tenant, "exp"), kindSorted},
		{s.key(c.Tenant, "ids"), kindSorted},
		{s.key(c.Tenant, "q"), kindHash},
	}
	added, dropped := c.Difference()
	for _, o := range dropped {
		out = append(out, typed{s.key(c.Tenant, "o:"+o.Sum.String()), kindHash})
	}
	for _, o := range added {
		out = append(out, typed{s.key(c.Tenant, "o:"+o.Sum.String()), kindHash})
		for n := range chunks(o.Packed) {
			out = append(out, typed{s.chunkKey(c.Tenant, o, n), kindString})
		}
	}
	return out
}

// arguments encodes a change for commit.lua.
func (s *Store) arguments(c *ledger.Change) (args []string, dropped []ledger.Object, err error) {
	var record []byte
	rev := "0"
	if c.New != nil {
		if record, err = json.Marshal(stored{c.Tenant, c.New}); err != nil {
			return nil, nil, fmt.Errorf("spell record: %w", err)
		}
		rev = strconv.FormatInt(c.Rev+1, 10)
	}
	added, dropped := c.Difference()
	args = []string{
		strconv.FormatInt(c.Rev, 10), string(record), strconv.FormatInt(c.Expires.UnixMilli(), 10), c.ID,
		strconv.FormatInt(c.Step(), 10), strconv.FormatInt(c.Limits.Contexts, 10), strconv.FormatInt(c.Limits.Bytes, 10),
		s.key(c.Tenant, "o:"), s.channel(), string(c.Tenant) + " " + c.ID + " " + rev,
		strconv.Itoa(len(added)), strconv.Itoa(len(dropped)),
		strconv.FormatInt(c.PinnedStep(), 10), strconv.FormatInt(c.Limits.Pinned, 10),
	}
	for _, o := range added {
		args = append(args, o.Sum.String(), strconv.FormatInt(o.Size, 10), strconv.Itoa(chunks(o.Packed)))
	}
	for _, o := range dropped {
		args = append(args, o.Sum.String())
	}
	return args, dropped, nil
}

func verdict(answer []int64, l ledger.Limits) (int64, error) {
	if len(answer) == 0 {
		return 0, fmt.Errorf("%w: an empty answer", ledger.ErrUnavailable)
	}
	switch answer[0] {
	case committed:
		if len(answer) == 2 {
			return answer[1], nil
		}
	case conflict:
		return 0, ledger.ErrConflict
	case missing:
		return 0, ledger.ErrMissing
	case tooManyContexts:
		return 0, &ledger.LimitError{What: "contexts", Limit: l.Contexts}
	case tooManyBytes:
		return 0, &ledger.LimitError{What: "bytes", Limit: l.Bytes}
	case tooManyPinned:
		return 0, &ledger.LimitError{What: "pinned bytes", Limit: l.Pinned}
	case otherType:
		return 0, errType
	}
	return 0, fmt.Errorf("%w: answer %v", ledger.ErrUnavailable, answer)
}

// Touch moves expiry times, in one round trip. Records that are gone, or whose TTL has changed
// since, are skipped.
func (s *Store) Touch(ctx context.Context, touches []ledger.Touch) error {
	if len(touches) == 0 {
		return nil
	}
	calls := make([]rueidis.LuaExec, len(touches))
	for i, t := range touches {
		calls[i] = rueidis.LuaExec{
			Keys: []string{s.key(t.Tenant, "c:"+t.ID), s.key(t.Tenant, "exp")},
			Args: []string{
				// Live is omitted from the JSON
				strconv.FormatInt(t.Expires.UnixMilli(), 10), t.ID, `"state":`,
				strconv.FormatInt(int64(t.TTL), 10),
			},
		}
	}
	err := s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		for i, r := range s.scripts.touch.ExecMulti(ctx, c, calls...) {
			err := r.Error()
			if isKind(err) { // treated as gone
				keys := calls[i].Keys
				err = s.odd(ctx, c, false, typed{keys[0], kindHash}, typed{keys[1], kindSorted})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "touch records")
}

// List returns up to n ids of the tenant after the given one, in ascending order.
func (s *Store) List(ctx context.Context, t ledger.Tenant, after string, n int) (ids []string, err error) {
	from := "-"
	if after != "" {
		from = "(" + after
	}
	err = s.Do(ctx, s.o.BlobBudget, func(ctx context.Context, c rueidis.Client) (err error) {
		key := s.key(t, "ids")
		ask := c.B().Zrange().Key(key).Min(from).Max("+").Bylex().Limit(0, int64(n)).Build()
		ids, err = c.Do(ctx, ask).AsStrSlice()
		if isKind(err) {
			s.strange(ctx, key, false)
			return nil
		}
		return err
	})
	return ids, wrap(err, "list records")
}

// Usage returns the number of contexts and bytes of a tenant.
func (s *Store) Usage(ctx context.Context, t ledger.Tenant) (contexts, bytes int64, err error) {
	err = s.Do(ctx, s.o.BlobBudget, func(ctx context.Context, c rueidis.Client) error {
		key := s.key(t, "q")
		fields, err := c.Do(ctx, c.B().Hmget().Key(key).Field("n", "b").Build()).ToArray()
		if isKind(err) {
			s.strange(ctx, key, false)
			return nil
		}
		if err != nil || len(fields) != 2 || fields[0].IsNil() || fields[1].IsNil() {
			return err
		}
		if contexts, err = fields[0].AsInt64(); err != nil {
			return err
		}
		bytes, err = fields[1].AsInt64()
		return err
	})
	return contexts, bytes, wrap(err, "read totals")
}
