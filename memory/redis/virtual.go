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

// ErrTooMany reports a record that would be one more than there may be.
var ErrTooMany = errors.New("there are as many records as there may be")

// virtualKey is one of the two keys of virtual keys, which are in one slot.
func (s *Store) virtualKey(rest string) string { return s.o.Prefix + ":{vk}:" + rest }

// VirtualKeys reads the records of virtual keys by name, and a word that stands for all of them,
// which is never empty; nil and known where known still does. Reading that word takes at most
// BlobBudget, and the records WriteBudget. The error is ErrUnavailable.
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
	// What is written in between is read under the revision before, and so once more.
	err = s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) (err error) {
		texts, err = c.Do(ctx, c.B().Hgetall().Key(s.virtualKey("keys")).Build()).AsStrMap()
		return err
	})
	return texts, revision, wrap(err, "read virtual keys")
}

// SwapVirtualKey puts a record in the place of what was read under its name, in one step for all
// replicas; an empty text is no record. Errors are ledger.ErrConflict where another one is there,
// ErrTooMany, and ErrUnavailable or ErrFull, after which it may have been written or not.
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
