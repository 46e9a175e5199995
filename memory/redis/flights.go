package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

//go:embed flights.lua
var flightsScript string

// Flight is a request in flight within a scope.
type Flight struct {
	Scope string
	Room  int // maximum number of concurrent requests
	ID    string
}

// Enter counts flights of a tenant for the time of ttl, or none of them if one does not fit and
// force is not set, atomically for all replicas. It returns the resulting number of flights in each
// scope. The error is ErrUnavailable, after at most some 8 ms.
func (s *Store) Enter(ctx context.Context, t ledger.Tenant, flights []Flight, ttl time.Duration, force bool) (used []int, fits bool, err error) {
	return s.flights(ctx, t, flights, max(ttl.Milliseconds(), 1), force)
}

// Leave removes flights of a tenant. Its error is that of Enter.
func (s *Store) Leave(ctx context.Context, t ledger.Tenant, flights []Flight) error {
	_, _, err := s.flights(ctx, t, flights, 0, true)
	return err
}

func (s *Store) flights(ctx context.Context, t ledger.Tenant, flights []Flight, ttl int64, force bool) (used []int, fits bool, err error) {
	keys, args := make([]string, len(flights)), make([]string, 0, 2+2*len(flights))
	args = append(args, strconv.FormatInt(ttl, 10), map[bool]string{false: "0", true: "1"}[force])
	for i, f := range flights {
		sum := sha256.Sum256([]byte(f.Scope))
		keys[i] = s.key(t, "f:"+hex.EncodeToString(sum[:16]))
		args = append(args, strconv.Itoa(f.Room), f.ID)
	}
	fits, err = s.ask(ctx, s.scripts.flights, keys, args, all(keys, kindSorted),
		func(list *rueidis.RedisMessage) error {
			counts, err := list.AsIntSlice()
			used = make([]int, len(counts))
			for i, n := range counts {
				used[i] = int(n)
			}
			return err
		})
	if err != nil {
		return nil, false, fmt.Errorf("count requests under way: %w", err)
	}
	return used, fits, nil
}
