package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"signalbox/memory/ledger"
)

// Due and Totals iterate over the set of tenants. A tenant is entered before its first record, and
// again with a new record if its entry is at least notedFor old; it is removed if it has no records
// and its entry is at least forgottenAfter old. A replica that relies on an existing entry
// therefore never relies on one that another replica removes, unless their clocks differ by the two
// hours in between.
const (
	notedFor       = time.Hour
	forgottenAfter = 3 * time.Hour
)

// tenants records which tenants this replica has entered into the set, and when. It is safe for
// concurrent use.
type tenants struct {
	mu    sync.Mutex // guards known
	known map[ledger.Tenant]time.Time
}

// mostTenants is the maximum number of tenants remembered; entering one again is cheap.
const mostTenants = 1 << 16

func (t *tenants) has(name ledger.Tenant, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.known[name]
	return ok && now.Sub(at) < notedFor
}

func (t *tenants) add(name ledger.Tenant, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= mostTenants {
		t.known = map[ledger.Tenant]time.Time{}
	}
	t.known[name] = now
}

func (t *tenants) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
}

func (s *Store) tenantsKey() string { return s.o.Prefix + ":ts" }

// note enters the tenant of a new record into the set of tenants.
func (s *Store) note(ctx context.Context, client rueidis.Client, c *ledger.Change) error {
	now := s.o.Now()
	if c.Rev != 0 || s.known.has(c.Tenant, now) {
		return nil
	}
	entry := client.B().Zadd().Key(s.tenantsKey()).ScoreMember().ScoreMember(float64(now.Unix()), string(c.Tenant)).Build()
	enter := func() error { return client.Do(ctx, entry.Pin()).Error() }
	if err := s.anew(ctx, client, enter, typed{s.tenantsKey(), kindSorted}); err != nil {
		return err
	}
	s.known.add(c.Tenant, now)
	return nil
}

// entered is an entry of the set of tenants.
type entered struct {
	tenant ledger.Tenant
	at     string // in the form stored by Redis, in seconds of Unix time
}

// tenantsAtOnce is the number of tenants queried in one exchange.
const tenantsAtOnce = 512

// page reads about tenantsAtOnce entries, and the cursor to continue from; 0 is the end. A tenant
// may occur twice.
func (s *Store) page(ctx context.Context, c rueidis.Client, cursor uint64) (list []entered, next uint64, err error) {
	found, err := c.Do(ctx, c.B().Zscan().Key(s.tenantsKey()).Cursor(cursor).Count(tenantsAtOnce).Build()).AsScanEntry()
	if isKind(err) {
		s.strange(ctx, s.tenantsKey(), false)
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for i := 0; i+1 < len(found.Elements); i += 2 {
		list = append(list, entered{ledger.Tenant(found.Elements[i]), found.Elements[i+1]})
	}
	return list, found.Cursor, nil
}

// pagesAtOnce limits what one call of Due examines; the next call continues from there.
const pagesAtOnce = 16

// Due returns up to n records, of all tenants, that have expired by now. If there are more than
// some 8,000 tenants, one call examines that many, and the next call others.
func (s *Store) Due(ctx context.Context, now time.Time, n int) (names []ledger.Name, err error) {
	err = s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		cursor := s.sweep.Load()
		defer func() { s.sweep.Store(cursor) }()
		for range pagesAtOnce {
			list, next, err := s.page(ctx, c, cursor)
			if err != nil {
				return err
			}
			// even if this page fails: it must not prevent the others from being examined
			cursor = next
			if names, err = s.due(ctx, c, list, now, n, names); err == nil {
				err = s.prune(ctx, c, list)
			}
			if err != nil || cursor == 0 || len(names) >= n {
				return err
			}
		}
		return nil
	})
	if err != nil && len(names) == 0 {
		return nil, fmt.Errorf("look for expired records: %w", err)
	}
	return names[:min(n, len(names))], nil
}

// due appends the expired records of some tenants to names, up to n of each.
func (s *Store) due(ctx context.Context, c rueidis.Client, list []entered, now time.Time, n int, names []ledger.Name) ([]ledger.Name, error) {
	asks := make(rueidis.Commands, len(list))
	for i, t := range list {
		asks[i] = c.B().Zrange().Key(s.key(t.tenant, "exp")).Min("-inf").Max(strconv.FormatInt(now.UnixMilli(), 10)).
			Byscore().Limit(0, int64(n)).Build()
	}
	for i, r := range c.DoMulti(ctx, asks...) {
		ids, err := r.AsStrSlice()
		if _, refused := rueidis.IsRedisErr(err); refused {
			if isKind(err) {
				s.strange(ctx, s.key(list[i].tenant, "exp"), false)
			}
			continue // a key of another program: continue with the other tenants
		}
		if err != nil {
			return names, err
		}
		for _, id := range ids {
			names = append(names, ledger.Name{Tenant: list[i].tenant, ID: id})
		}
	}
	return names, nil
}

// prune removes tenants from the set that have had no records for long.
func (s *Store) prune(ctx context.Context, c rueidis.Client, list []entered) error {
	var old []entered
	var asks rueidis.Commands
	before := s.o.Now().Add(-forgottenAfter).Unix()
	for _, t := range list {
		if at, err := strconv.ParseFloat(t.at, 64); err == nil && int64(at) < before {
			old, asks = append(old, t), append(asks, c.B().Exists().Key(s.key(t.tenant, "ids")).Build())
		}
	}
	var calls []rueidis.LuaExec
	for i, r := range c.DoMulti(ctx, asks...) {
		n, err := r.AsInt64()
		if err != nil {
			return err
		}
		if n == 0 {
			calls = append(calls, rueidis.LuaExec{Keys: []string{s.tenantsKey()}, Args: []string{string(old[i].tenant), old[i].at}})
		}
	}
	if len(calls) == 0 {
		return nil
	}
	for _, r := range s.scripts.prune.ExecMulti(ctx, c, calls...) {
		if err := r.Error(); err != nil {
			return err
		}
	}
	return nil
}

// Totals returns the number of contexts and sessions with facts of all tenants, and the unpacked
// bytes of all their objects.
func (s *Store) Totals(ctx context.Context) (contexts, bytes int64, err error) {
	err = s.Do(ctx, s.o.WriteBudget, func(ctx context.Context, c rueidis.Client) error {
		seen := make(map[ledger.Tenant]bool)
		for cursor := uint64(0); ; {
			list, next, err := s.page(ctx, c, cursor)
			if err != nil {
				return err
			}
			list = slices.DeleteFunc(list, func(t entered) bool {
				again := seen[t.tenant]
				seen[t.tenant] = true
				return again
			})
			n, b, err := s.totals(ctx, c, list)
			if err != nil {
				return err
			}
			contexts, bytes = contexts+n, bytes+b
			if cursor = next; cursor == 0 {
				return nil
			}
		}
	})
	return contexts, bytes, wrap(err, "read totals")
}

// totals returns Totals of some tenants. Tenants without data count as zero.
func (s *Store) totals(ctx context.Context, c rueidis.Client, list []entered) (contexts, bytes int64, err error) {
	asks := make(rueidis.Commands, len(list))
	for i, t := range list {
		asks[i] = c.B().Hmget().Key(s.key(t.tenant, "q")).Field("n", "b").Build()
	}
	for i, r := range c.DoMulti(ctx, asks...) {
		fields, err := r.AsStrSlice()
		if isKind(err) {
			s.strange(ctx, s.key(list[i].tenant, "q"), false)
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		n, _ := strconv.ParseInt(fields[0], 10, 64)
		b, _ := strconv.ParseInt(fields[1], 10, 64)
		contexts, bytes = contexts+n, bytes+b
	}
	return contexts, bytes, nil
}
