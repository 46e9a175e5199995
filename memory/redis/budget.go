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

//go:embed budget.lua
var budgetScript string

// Spend is an amount to take from a budget, in billionths of a dollar.
type Spend struct {
	Account string // of the budget in its period
	Room, N int64
	Until   time.Time // when the account may be removed
	// the minimum already spent, as far as is known; if the account holds less, data was lost and
	// is restored to this
	Floor int64
}

// Taken is the state of an account before an amount was taken from it, in billionths of a dollar.
type Taken struct {
	All   int64 // spent and reserved
	Spent int64
	Lost  int64 // the part of the spent amount that had been lost and was restored
}

// Reserve takes amounts from budgets of a tenant for the time of ttl, or none of them if one does
// not fit, atomically for all replicas. It returns the previous state of each account. id
// identifies the reservation. The error is ErrUnavailable, after at most some 8 ms.
func (s *Store) Reserve(
	ctx context.Context,
	t ledger.Tenant,
	id string,
	spends []Spend,
	ttl time.Duration,
) (taken []Taken, fits bool, err error) {
	return s.budget(ctx, t, "reserve", id, spends, ttl)
}

// Settle replaces a reservation with what was spent, also one whose time is over. Where there was
// none it does nothing, unless the amount is owed. It may be repeated. Its error is that of Reserve.
//
//nolint:revive // owed is told by the caller's books and not a choice between two functions
func (s *Store) Settle(ctx context.Context, t ledger.Tenant, id string, spends []Spend, owed bool) error {
	op := "settle"
	if owed {
		op = "owed"
	}
	_, _, err := s.budget(ctx, t, op, id, spends, 0)
	return err
}

func (s *Store) budget(
	ctx context.Context,
	t ledger.Tenant,
	op, id string,
	spends []Spend,
	ttl time.Duration,
) (taken []Taken, fits bool, err error) {
	keys, args := make([]string, 0, 2*len(spends)), make([]string, 0, 3+4*len(spends))
	kinds := make([]typed, 0, 2*len(spends))
	args = append(args, op, "i:"+id, strconv.FormatInt(ttl.Milliseconds(), 10))
	for _, x := range spends {
		sum := sha256.Sum256([]byte(x.Account))
		name := hex.EncodeToString(sum[:16])
		hash, set := s.key(t, "b:"+name), s.key(t, "h:"+name)
		keys, kinds = append(keys, hash, set), append(kinds, typed{hash, kindHash}, typed{set, kindSorted})
		args = append(
			args,
			strconv.FormatInt(x.Room, 10),
			strconv.FormatInt(x.N, 10),
			strconv.FormatInt(x.Until.UnixMilli(), 10),
			strconv.FormatInt(x.Floor, 10),
		)
	}
	fits, err = s.ask(ctx, s.scripts.budget, keys, args, kinds,
		func(list *rueidis.RedisMessage) error {
			n, err := list.AsIntSlice()
			for ; len(n) >= 3; n = n[3:] {
				taken = append(taken, Taken{All: n[0], Spent: n[1], Lost: n[2]})
			}
			return err
		})
	if err != nil {
		return nil, false, fmt.Errorf("%s of a budget: %w", op, err)
	}
	return taken, fits, nil
}
