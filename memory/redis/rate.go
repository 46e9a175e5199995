package redis

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

//go:embed rate.lua
var rateScript string

// Charge is an amount for a leaky bucket that drains within a minute.
type Charge struct {
	Bucket string
	Room   int // capacity of the bucket
	N      int // amount to add; negative to remove
	Force  bool
}

// Rate applies all charges to the buckets of a tenant, or none if one does not fit, atomically for
// all replicas. It returns the resulting level of each bucket. The error is ErrUnavailable, after
// at most some 8 ms.
func (s *Store) Rate(ctx context.Context, t ledger.Tenant, charges []Charge) (full []float64, fits bool, err error) {
	keys, args := make([]string, len(charges)), make([]string, 0, 3*len(charges))
	for i, c := range charges {
		sum := sha256.Sum256([]byte(c.Bucket))
		keys[i] = s.key(t, "r:"+hex.EncodeToString(sum[:16]))
		force := "0"
		if c.Force {
			force = "1"
		}
		args = append(args, strconv.Itoa(c.Room), strconv.Itoa(c.N), force)
	}
	fits, err = s.ask(ctx, s.scripts.rate, keys, args, all(keys, kindHash),
		func(list *rueidis.RedisMessage) (err error) {
			full, err = list.AsFloatSlice()
			return err
		})
	if err != nil {
		return nil, false, fmt.Errorf("charge: %w", err)
	}
	return full, fits, nil
}

// ask runs one of the scripts that return whether something fits and a list, which read parses,
// within the time limit for limits. kinds are the keys with their expected types.
func (s *Store) ask(
	ctx context.Context, script *rueidis.Lua, keys, args []string, kinds []typed,
	read func(list *rueidis.RedisMessage) error,
) (fits bool, err error) {
	err = s.Do(ctx, s.o.RateBudget, func(ctx context.Context, c rueidis.Client) error {
		var reply []rueidis.RedisMessage
		err := s.anew(ctx, c, func() (err error) {
			reply, err = script.Exec(ctx, c, keys, args).ToArray()
			return err
		}, kinds...)
		if err != nil {
			return err
		}
		if len(reply) != 2 {
			return fmt.Errorf("%d parts in the answer", len(reply))
		}
		ok, err := reply[0].AsInt64()
		if err != nil {
			return err
		}
		fits = ok == 1
		return read(&reply[1])
	})
	return fits, err
}
