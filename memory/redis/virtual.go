package redis

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

//go:embed virtual.lua
var virtualScript string

// ErrTooMany reports that a new record would exceed the maximum number of records.
var ErrTooMany = errors.New("there are as many records as there may be")

// virtualKey returns one of the two Redis keys for virtual keys, which are in one slot.
func (s *Store) virtualKey(rest string) string { return s.o.Prefix + ":{vk}:" + rest }

// VirtualKeys reads the records of virtual keys by name, and a revision of all of them, which is
// never empty. If the revision equals known, the records are nil. Reading the revision takes at
// most BlobBudget, and the records WriteBudget. The error is ErrUnavailable.
func (s *Store) VirtualKeys(ctx context.Context, known string) (texts map[string]string, revision string, err error) {
	err = s.Do(ctx, s.o.BlobBudget, func(ctx context.Context, c rueidis.Client) error {
		text, err := c.Do(ctx, c.B().Get().Key(s.virtualKey("rev")).Build()).ToString()
		if rueidis.IsRedisNil(err) {
			text, err = "none", nil
		}
		revision = text
		return err
	})
	if err != nil || revision == known {
		return nil, revision, wrap(err, "look for virtual keys")
	}
	// Records changed in between are returned with the revision from before, and so read once more.
	err = s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) (err error) {
		texts, err = c.Do(ctx, c.B().Hgetall().Key(s.virtualKey("keys")).Build()).AsStrMap()
		return err
	})
	return texts, revision, wrap(err, "read virtual keys")
}

// SwapVirtualKey replaces a record, if it still has the content was, atomically for all replicas;
// an empty text means no record. Errors are ledger.ErrConflict if it has other content, ErrTooMany,
// and ErrUnavailable or ErrFull, after which it may or may not have been written.
func (s *Store) SwapVirtualKey(ctx context.Context, name, was, text string, most int) error {
	var said string
	err := s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) (err error) {
		script := s.scripts.virtual
		if text == "" {
			script = s.scripts.unvirtual
		}
		said, err = script.Exec(ctx, c, []string{s.virtualKey("keys"), s.virtualKey("rev")},
			[]string{name, was, text, strconv.Itoa(most), rand.Text()}).ToString()
		return err
	})
	switch {
	case err != nil:
	case said == "changed":
		err = ledger.ErrConflict
	case said == "full":
		err = ErrTooMany
	}
	return wrap(err, "write a virtual key")
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
