// Package budget keeps budgets in US dollars over a calendar day or month in UTC.
//
// Before a request is sent, its estimated price is reserved; afterwards the actual cost replaces
// the reservation. A request whose estimate no longer fits is refused, so a budget is exceeded at
// most by the amount that estimates are too low. Reservations of a process that died expire after a
// while.
//
// Accounts are kept in this process and, for all replicas, in a Remote. While the Remote does not
// answer, the account of this process is used, and what it spends is reported to the Remote when
// that answers again. A Remote that has lost its accounts is told the amounts that each process
// knows of.
//
// A Keeper is safe for concurrent use and starts no goroutine. Its lock is a leaf.
package budget

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Period is the period that a budget covers.
type Period string

// The periods. They begin at 00:00 UTC.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Bounds returns the period that contains now: begin is inclusive, end exclusive.
func (p Period) Bounds(now time.Time) (begin, end time.Time) {
	y, m, d := now.UTC().Date()
	if p == Month {
		begin = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return begin, begin.AddDate(0, 1, 0)
	}
	begin = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return begin, begin.AddDate(0, 0, 1)
}

// Budget is an amount that may be spent per period.
type Budget struct {
	Name   string // unique in its group
	USD    float64
	Period Period
	Soft   Soft
}

// Spend is an amount in an account, in billionths of a dollar.
type Spend struct {
	Account string // of one budget in one period
	Room, N int64
	Until   time.Time // when the account may be dropped
	Floor   int64     // minimum spent amount, from what the Remote was told and has reported
}

// Taken is the state of an account before an amount was taken from it, in billionths of a dollar.
type Taken struct {
	All   int64 // spent and reserved
	Spent int64
	Lost  int64 // part of Spent that the Remote had lost and has again
}

// Remote stores accounts for several processes. Implementations are safe for concurrent use and
// respond, or give up, within milliseconds.
type Remote interface {
	// Reserve reserves all amounts for ttl, or none if one does not fit, and returns the previous
	// state of each account. If less is spent than the floor of an account, for example because the
	// Remote lost its data, the floor becomes the spent amount.
	Reserve(
		ctx context.Context, group, id string, spends []Spend, ttl time.Duration,
	) (taken []Taken, fits bool, err error)
	// Settle replaces a reservation, even an expired one, by the actual amount. Without a
	// reservation it does nothing, unless the amount is owed. Repeated calls count once.
	Settle(ctx context.Context, group, id string, spends []Spend, owed bool) error
}

// TTL is how long an unsettled reservation counts. A request that takes longer is charged when it
// ends.
const TTL = 10 * time.Minute

// ExceededError reports a budget that a request would exceed.
type ExceededError struct {
	Budget Budget
	Taken  float64 // USD, spent and reserved
	Asked  float64 // USD
	Resets time.Time
	Wait   time.Duration // until Resets; 0 if the request alone exceeds the budget
}

// Error names the budget and when it resets.
func (e *ExceededError) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf(
			"Request too expensive: it may cost %s, but budget %s is %s per %s.",
			dollars(e.Asked),
			e.Budget.Name,
			dollars(e.Budget.USD),
			e.Budget.Period,
		)
	}
	return fmt.Sprintf("Budget %s exceeded: limit %s per %s, %s spent or reserved, %s requested. It resets at %s.",
		e.Budget.Name, dollars(e.Budget.USD), e.Budget.Period, dollars(e.Taken), dollars(e.Asked),
		e.Resets.Format(time.RFC3339))
}

// dollars formats an amount to a millionth of a dollar, and more precisely below a cent.
func dollars(usd float64) string {
	digits := 6
	if usd < 0.01 {
		digits = 9
	}
	s := strconv.FormatFloat(usd, 'f', digits, 64)
	return "$" + strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// maxUnsettled limits the settlements stored for an unavailable Remote. Any more are counted in
// this process only.
const maxUnsettled = 4096

// flushAtOnce and flushTime limit how many of them one request sends, since each is a round trip.
const (
	flushAtOnce = 16
	flushTime   = 4 * time.Millisecond
)

// Keeper manages budgets.
type Keeper struct {
	now    func() time.Time
	remote Remote // nil if there is none

	mu        sync.Mutex // guards the fields below
	accounts  map[string]*account
	unsettled []settlement
	swept     time.Time
	warned    time.Time
	log       *slog.Logger
}

type account struct {
	spent, reserved int64
	// spent and reserved as last reported by the remote, plus later local changes
	told    int64
	heard   int64 // highest spent amount reported by the remote
	settled int64 // spent by this process and reported to the remote
	until   time.Time
}

// taken returns what is spent and reserved as far as this process knows, including what the remote
// reported for others.
func (a *account) taken() int64 { return max(a.spent+a.reserved, a.told) }

type settlement struct {
	group, id string
	spends    []Spend
	owed      bool
}

// New returns a Keeper. remote may be nil.
func New(remote Remote, now func() time.Time) *Keeper {
	return &Keeper{now: now, remote: remote, accounts: map[string]*account{}, log: slog.New(slog.DiscardHandler)}
}

// Share makes remote store the accounts, and log report when it has lost any. Call it before the
// first request.
func (k *Keeper) Share(remote Remote, log *slog.Logger) { k.remote, k.log = remote, log }

// Reservation is the reserved cost of one request. It belongs to one goroutine. A nil Reservation
// means that the request has no budgets.
type Reservation struct {
	k         *Keeper
	group, id string // the id is used by the remote only
	spends    []Spend
	at        time.Time
	saving    Saving
	lost      bool // the remote did not respond
	done      bool
}

// Reserve reserves usd in all budgets of a group, or returns an *ExceededError. Without budgets the
// Reservation is nil. Settle ends it.
func (k *Keeper) Reserve(ctx context.Context, group string, budgets []Budget, usd float64) (*Reservation, error) {
	if len(budgets) == 0 {
		return nil, nil
	}
	now := k.now()
	r := &Reservation{k: k, group: group, at: now, spends: make([]Spend, len(budgets))}
	if k.remote != nil {
		r.id = rand.Text()
	}
	for i := range budgets {
		b := &budgets[i]
		begin, end := b.Period.Bounds(now)
		r.spends[i] = Spend{
			Account: accountOf(group, b, begin), Room: nano(b.USD), N: nano(usd), Until: end.Add(2 * TTL),
		}
	}
	taken, fits := r.reserve(ctx)
	if fits {
		for i, s := range r.spends {
			if soft := &budgets[i].Soft; soft.reached(taken[i], s.Room) {
				r.saving = r.saving.And(soft.Then)
			}
		}
		return r, nil
	}
	var worst *ExceededError
	for i, s := range r.spends {
		if taken[i]+s.N <= s.Room {
			continue
		}
		_, end := budgets[i].Period.Bounds(now)
		e := &ExceededError{
			Budget: budgets[i],
			Taken:  float64(taken[i]) / 1e9,
			Asked:  usd,
			Resets: end,
			Wait:   end.Sub(now),
		}
		if s.N > s.Room {
			e.Wait = 0
			return nil, e
		}
		if worst == nil || e.Wait > worst.Wait {
			worst = e
		}
	}
	return nil, worst
}

// Look returns the amounts spent and reserved in each budget of a group in its current period, in
// USD. shared is true if they include all processes, and false if only this process is known
// because there is no Remote or it does not respond.
func (k *Keeper) Look(ctx context.Context, group string, budgets []Budget) (usd []float64, shared bool) {
	if len(budgets) == 0 {
		return nil, k.remote != nil
	}
	now := k.now()
	spends := make([]Spend, len(budgets))
	for i := range budgets {
		b := &budgets[i]
		begin, end := b.Period.Bounds(now)
		// nothing fits into a negative room, so nothing is reserved
		spends[i] = Spend{Account: accountOf(group, b, begin), Room: -1, Until: end.Add(2 * TTL)}
	}
	usd = make([]float64, len(budgets))
	if k.remote != nil {
		k.flush(ctx)
		taken, _, err := k.remote.Reserve(ctx, group, rand.Text(), spends, TTL)
		if err == nil && len(taken) == len(usd) {
			for i, n := range taken {
				usd[i] = float64(n.All) / 1e9
			}
			return usd, true
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, s := range spends {
		if a := k.accounts[s.Account]; a != nil {
			usd[i] = float64(a.taken()) / 1e9
		}
	}
	return usd, false
}

// nano converts to billionths of a dollar, rounded up, at most what a double represents exactly.
func nano(usd float64) int64 {
	return int64(math.Ceil(math.Min(math.Max(usd, 0)*1e9, 1<<52)))
}

// reserve reserves the amounts at the remote, and always in this process too, as a fallback.
func (r *Reservation) reserve(ctx context.Context) (taken []int64, fits bool) {
	k := r.k
	if k.remote != nil {
		if taken, fits, ok := k.ask(ctx, r); ok {
			return taken, fits
		}
		r.lost = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	taken, fits = make([]int64, len(r.spends)), true
	for i, s := range r.spends {
		if a := k.accounts[s.Account]; a != nil {
			taken[i] = a.taken()
		}
		fits = fits && taken[i]+s.N <= s.Room
	}
	if fits {
		k.take(r)
	}
	return taken, fits
}

// ask reserves the amounts at the remote, passing the floors, and in this process. ok is false if
// the remote does not respond.
func (k *Keeper) ask(ctx context.Context, r *Reservation) (taken []int64, fits, ok bool) {
	k.flush(ctx)
	k.mu.Lock()
	for i := range r.spends {
		if a := k.accounts[r.spends[i].Account]; a != nil {
			r.spends[i].Floor = max(a.heard, a.settled)
		}
	}
	k.mu.Unlock()
	told, fits, err := k.remote.Reserve(ctx, r.group, r.id, r.spends, TTL)
	if err != nil || len(told) != len(r.spends) {
		return nil, false, false
	}
	k.mu.Lock()
	taken, lost := k.hear(r, told)
	if fits {
		k.take(r)
	}
	k.mu.Unlock()
	if lost != nil {
		k.log.LogAttrs(ctx, slog.LevelWarn, "redis lost the spending of budgets; it is written again", lost...)
	}
	return taken, fits, true
}

// take reserves the amounts in this process. The caller holds the lock.
func (k *Keeper) take(r *Reservation) {
	k.sweep(r.at)
	for _, s := range r.spends {
		a := k.account(s)
		a.reserved += s.N
		a.told += s.N
	}
}

// warnEvery is the minimum time between warnings about lost accounts, since the remote loses all at
// once.
const warnEvery = time.Minute

// hear records and returns the amounts that the remote reported, with the attributes of a warning
// about lost amounts if one is due. The caller holds the lock.
func (k *Keeper) hear(r *Reservation, told []Taken) (taken []int64, lost []slog.Attr) {
	for i, s := range r.spends {
		a, t := k.account(s), told[i]
		a.told, a.heard = t.All, max(a.heard, t.Spent)
		taken = append(taken, t.All)
		if t.Lost > 0 && r.at.Sub(k.warned) >= warnEvery {
			k.warned = r.at
			name := strings.Split(s.Account, "\x00")
			lost = []slog.Attr{slog.String("budget", name[len(name)-2]), slog.Float64("usd", float64(t.Lost)/1e9)}
		}
	}
	return taken, lost
}

// account returns the account of an amount, creating it if needed. The caller holds the lock.
func (k *Keeper) account(s Spend) *account {
	a := k.accounts[s.Account]
	if a == nil {
		a = &account{until: s.Until}
		k.accounts[s.Account] = a
	}
	return a
}

// Saving returns the savings for a request of the group: those of all budgets whose soft limit is
// reached. It contacts no one: the spending of other processes is known from the Remote's last
// response.
func (k *Keeper) Saving(group string, budgets []Budget) (t Saving) {
	for i := range budgets {
		b := &budgets[i]
		if b.Soft.At <= 0 {
			continue
		}
		begin, _ := b.Period.Bounds(k.now())
		k.mu.Lock()
		if a := k.accounts[accountOf(group, b, begin)]; a != nil &&
			b.Soft.reached(a.taken(), nano(b.USD)) {
			t = t.And(b.Soft.Then)
		}
		k.mu.Unlock()
	}
	return t
}

// Saving returns the savings according to the accounts at the time of the reservation. Of
// concurrent requests, only those up to and including the one that crosses a soft limit have none.
// A nil Reservation has none.
func (r *Reservation) Saving() (t Saving) {
	if r != nil {
		t = r.saving
	}
	return t
}

// accountOf returns the account of a budget in the period that begins at begin.
func accountOf(group string, b *Budget, begin time.Time) string {
	var buf [128]byte
	name := append(append(buf[:0], group...), 0)
	name = append(append(name, b.Name...), 0)
	return string(begin.AppendFormat(append(name, b.Period...), time.DateOnly))
}

// sweep drops accounts of past periods. The caller holds the lock.
func (k *Keeper) sweep(now time.Time) {
	if now.Sub(k.swept) < TTL {
		return
	}
	k.swept = now
	for name, a := range k.accounts {
		if a.reserved == 0 && now.After(a.until) {
			delete(k.accounts, name)
		}
	}
}

// Settle replaces the reservation by the actual cost in USD. A second call does nothing.
func (r *Reservation) Settle(ctx context.Context, usd float64) {
	if r == nil || r.done {
		return
	}
	r.done = true
	k, spent := r.k, make([]Spend, len(r.spends))
	k.mu.Lock()
	for i, s := range r.spends {
		spent[i] = s
		spent[i].N, spent[i].Floor = nano(usd), 0
		a := k.account(s) // a sweep may have dropped the account of a reservation of 0
		a.reserved -= s.N
		a.spent += spent[i].N
		a.told += spent[i].N - s.N
	}
	k.mu.Unlock()
	if k.remote == nil {
		return
	}
	end := settlement{r.group, r.id, spent, r.lost}
	if !k.tell(ctx, &end) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.later(end)
	}
}

// tell reports a settlement to the remote; it returns false on failure.
func (k *Keeper) tell(ctx context.Context, end *settlement) bool {
	if k.remote.Settle(ctx, end.group, end.id, end.spends, end.owed) != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range end.spends {
		if a := k.accounts[s.Account]; a != nil {
			a.settled += s.N
		}
	}
	return true
}

// later stores a settlement that could not be reported. The caller holds the lock.
func (k *Keeper) later(end settlement) {
	if len(k.unsettled) < maxUnsettled {
		k.unsettled = append(k.unsettled, end)
	}
}

// flush reports stored settlements to the remote, until one fails or the time is up.
func (k *Keeper) flush(ctx context.Context) {
	begin := k.now()
	k.mu.Lock()
	n := min(len(k.unsettled), flushAtOnce)
	ends := slices.Clone(k.unsettled[:n])
	k.unsettled = slices.Delete(k.unsettled, 0, n)
	k.mu.Unlock()
	for i, end := range ends {
		if i == 0 || k.now().Sub(begin) < flushTime {
			if k.tell(ctx, &end) {
				continue
			}
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, rest := range ends[i:] {
			k.later(rest)
		}
		return
	}
}

// Describe sets the headers that tell the client when to retry. That is far in the future, so
// client libraries are told not to retry automatically.
func (e *ExceededError) Describe(h http.Header) {
	h.Set("X-Should-Retry", "false")
	if e.Wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.Wait+time.Second-1)/time.Second)))
	}
}
