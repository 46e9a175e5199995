package redis

import (
	"context"
	_ "embed"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

//go:embed kinds.lua
var kindsScript string

// The types of keys, as named by Redis.
const (
	kindHash   = "hash"
	kindSorted = "zset"
	kindString = "string"
)

// isKind reports whether Redis refused a command because a key has an unexpected type: another
// program wrote it. Readers treat such a key as missing; writers replace it.
func isKind(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && strings.Contains(reply.Error(), "WRONGTYPE")
}

// typed is a key with its expected type.
type typed struct{ key, kind string }

// all assigns the same type to every key.
func all(keys []string, kind string) []typed {
	out := make([]typed, len(keys))
	for i, key := range keys {
		out[i] = typed{key, kind}
	}
	return out
}

// odd logs the keys with an unexpected type among keys of one slot, and deletes them if drop is
// set.
func (s *Store) odd(ctx context.Context, c rueidis.Client, drop bool, list ...typed) error {
	keys, args := make([]string, len(list)), make([]string, 1, 1+len(list))
	args[0] = map[bool]string{false: "0", true: "1"}[drop]
	for i, k := range list {
		keys[i], args = k.key, append(args, k.kind)
	}
	found, err := s.scripts.kinds.Exec(ctx, c, keys, args).AsStrSlice()
	for _, key := range found {
		s.strange(ctx, key, drop)
	}
	return err
}

// anew runs a command that failed because of a key's type once more, after removing such keys. For
// any other error it returns that of the first run.
func (s *Store) anew(ctx context.Context, c rueidis.Client, run func() error, keys ...typed) error {
	err := run()
	if !isKind(err) {
		return err
	}
	if err := s.odd(ctx, c, true, keys...); err != nil {
		return err
	}
	return run()
}

// strangers records which keys were logged. It is safe for concurrent use.
type strangers struct {
	mu   sync.Mutex // guards seen; a leaf
	seen map[string]time.Time
}

// A key is logged once per repeatStranger; mostStrangers are remembered.
const (
	repeatStranger = time.Hour
	mostStrangers  = 1 << 10
)

func (x *strangers) isNew(key string, now time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if at, ok := x.seen[key]; ok && now.Sub(at) < repeatStranger {
		return false
	}
	if x.seen == nil || len(x.seen) >= mostStrangers {
		x.seen = make(map[string]time.Time)
	}
	x.seen[key] = now
	return true
}

// strange logs a key with an unexpected type.
func (s *Store) strange(ctx context.Context, key string, dropped bool) {
	if !s.strangers.isNew(key, s.o.Now()) {
		return
	}
	s.o.Log.LogAttrs(ctx, slog.LevelWarn,
		"a key of redis holds another type than it should: it counts as absent",
		slog.String("key", key), slog.Bool("replaced", dropped))
}
