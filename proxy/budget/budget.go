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

// Period is the time that a budget is for.
type Period string

// The periods. They begin at 00:00 UTC.
const (
	Day   Period = "day"
	Month Period = "month"
)

// Bounds returns the period that now is in: from its begin until before its end.
func (p Period) Bounds(now time.Time) (begin, end time.Time) {
	y, m, d := now.UTC().Date()
	if p == Month {
		begin = time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return begin, begin.AddDate(0, 1, 0)
	}
	begin = time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	return begin, begin.AddDate(0, 0, 1)
}

// Budget is what may be spent in a period.
type Budget struct {
	Name   string // of the budget, unique in its group
	USD    float64
	Period Period
	Soft   Soft
}

// Spend is an amount of an account, in billionths of a dollar.
type Spend struct {
	Account string // of a budget in one period
	Room, N int64
	Until   time.Time // when the account may be forgotten
	Floor   int64     // what is spent at least by what the Remote has been told, and has told
}

// Taken is what an account held before an amount was taken from it, in billionths of a dollar.
type Taken struct {
	All   int64 // spent and reserved
	Spent int64
	Lost  int64 // of what is spent: the Remote had lost it, and has it again
}

// Remote keeps accounts for several processes. Implementations are safe for concurrent use and
// answer, or give up, within milliseconds.
type Remote interface {
	// Reserve takes all amounts for the time of ttl, or none when one does not fit, and returns
	// what was taken from each account before. Where less is spent than the floor of an account, as
	// when the Remote has begun anew, the floor is what is spent.
	Reserve(
		ctx context.Context, group, id string, spends []Spend, ttl time.Duration,
	) (taken []Taken, fits bool, err error)
	// Settle replaces a reservation with what was spent, also one whose time is over. Where there
	// was none it does nothing, unless the amount is owed. What is repeated counts once.
	Settle(ctx context.Context, group, id string, spends []Spend, owed bool) error
}

// TTL is how long a reservation counts that nobody settles. What a request cost that takes longer
// is counted when it ends.
const TTL = 10 * time.Minute

// ExceededError reports a budget that a request would exceed.
type ExceededError struct {
	Budget Budget
	Taken  float64 // USD, spent and reserved
	Asked  float64 // USD
	Resets time.Time
	Wait   time.Duration // until then; 0 when the request alone is more than the budget
}

// Error names the budget and when it resets.
func (e *ExceededError) Error() string {
	if e.Wait == 0 {
		return fmt.Sprintf(
			"Request too expensive: it may cost %s, and the budget %s is %s a %s.",
			dollars(e.Asked),
			e.Budget.Name,
			dollars(e.Budget.USD),
			e.Budget.Period,
		)
	}
	return fmt.Sprintf("Budget %s exceeded: %s a %s, %s spent or reserved, %s requested. It resets at %s.",
		e.Budget.Name, dollars(e.Budget.USD), e.Budget.Period, dollars(e.Taken), dollars(e.Asked),
		e.Resets.Format(time.RFC3339))
}

// dollars is an amount as people write it: to a millionth of a dollar, and finer below a cent.
func dollars(usd float64) string {
	digits := 6
	if usd < 0.01 {
		digits = 9
	}
	s := strconv.FormatFloat(usd, 'f', digits, 64)
	return "$" + strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// maxUnsettled bounds what is kept for a Remote that does not answer. What is beyond is counted in
// this process only.
const maxUnsettled = 4096

// flushAtOnce and flushTime bound how much of it one request tells, since each takes an exchange.
const (
	flushAtOnce = 16
	flushTime   = 4 * time.Millisecond
)

// Keeper keeps budgets.
type Keeper struct {
	now    func() time.Time
	remote Remote // nil: there is none

	mu        sync.Mutex // guards what follows
	accounts  map[string]*account
	unsettled []settlement
	swept     time.Time
	warned    time.Time
	log       *slog.Logger
}

type account struct {
	spent, reserved int64
	told            int64 // spent and reserved as the remote told it last, with what came since from here
	heard           int64 // spent, the most that the remote told
	settled         int64 // spent from here, as the remote was told
	until           time.Time
}

// taken is what is spent and reserved by all that this process knows, of others what the remote told.
func (a *account) taken() int64 { return max(a.spent+a.reserved, a.told) }

type settlement struct {
	group, id string
	spends    []Spend
	owed      bool
}

// New makes a Keeper. remote may be nil.
func New(remote Remote, now func() time.Time) *Keeper {
	return &Keeper{now: now, remote: remote, accounts: map[string]*account{}, log: slog.New(slog.DiscardHandler)}
}

// Share lets accounts be kept by remote from now on, and log tell when that has lost any. Call it
// before the first request.
func (k *Keeper) Share(remote Remote, log *slog.Logger) { k.remote, k.log = remote, log }

// Reservation is the price of one request. It belongs to one goroutine. A nil Reservation is of a
// request without budgets.
type Reservation struct {
	k         *Keeper
	group, id string // the id is for the remote alone
	spends    []Spend
	at        time.Time
	saving    Saving
	lost      bool // the remote did not answer
	done      bool
}

// Reserve takes usd from all budgets of a group, or returns an *ExceededError. Without budgets the
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

// Look returns what is spent and reserved of each budget of a group in its period, in USD, by all
// processes that share it; shared is false where that is what this process knows alone, since there
// is no Remote or it does not answer.
func (k *Keeper) Look(ctx context.Context, group string, budgets []Budget) (usd []float64, shared bool) {
	if len(budgets) == 0 {
		return nil, k.remote != nil
	}
	now := k.now()
	spends := make([]Spend, len(budgets))
	for i := range budgets {
		b := &budgets[i]
		begin, end := b.Period.Bounds(now)
		// nothing fits into an account without room, so nothing is taken from it
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

// nano is an amount in billionths of a dollar, rounded up, and at most what a double holds exactly.
func nano(usd float64) int64 {
	return int64(math.Ceil(math.Min(math.Max(usd, 0)*1e9, 1<<52)))
}

// reserve takes the amounts where accounts are kept; in this process in any case, so that it knows
// them when the remote does not answer.
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

// ask takes the amounts at the remote, which is told what is spent at least, and in this process as
// well; ok is false where it does not answer.
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
		k.log.LogAttrs(ctx, slog.LevelWarn, "redis has lost what was spent of budgets, and is told again", lost...)
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

// warnEvery is how often a log says at most that the remote has lost accounts: it loses all at
// once.
const warnEvery = time.Minute

// hear notes what the remote said was taken before, and returns it, and what a warning that is due
// says of what was lost. The caller holds the lock.
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

// account is that of an amount. The caller holds the lock.
func (k *Keeper) account(s Spend) *account {
	a := k.accounts[s.Account]
	if a == nil {
		a = &account{until: s.Until}
		k.accounts[s.Account] = a
	}
	return a
}

// Saving is what a request of the group has to save money with: that of all budgets of which a
// share from their soft bound on is spent or reserved. It asks nobody: of what other processes
// spend it knows what the Remote told with the last request of this one.
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

// Saving is what the request has to save money with by the accounts as they were when its amounts
// were taken: of all that were let in at once, only those before the one that crossed a soft bound,
// and that one, have nothing to save. Of a nil Reservation it is nothing.
func (r *Reservation) Saving() (t Saving) {
	if r != nil {
		t = r.saving
	}
	return t
}

// accountOf is the account of a budget in the period that begins then.
func accountOf(group string, b *Budget, begin time.Time) string {
	var buf [128]byte
	name := append(append(buf[:0], group...), 0)
	name = append(append(name, b.Name...), 0)
	return string(begin.AppendFormat(append(name, b.Period...), time.DateOnly))
}

// sweep forgets accounts of periods that are over. The caller holds the lock.
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

// Settle replaces the reservation with what the request cost in USD. A second call does nothing.
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
		a := k.account(s) // a sweep may have taken the one of a reservation of nothing
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

// tell tells the remote how a reservation ended, and reports whether it knows.
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

// later keeps a settlement that the remote was not told of. The caller holds the lock.
func (k *Keeper) later(end settlement) {
	if len(k.unsettled) < maxUnsettled {
		k.unsettled = append(k.unsettled, end)
	}
}

// flush tells the remote some of what it has missed, until it does not answer or time is up.
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

// Describe sets the headers that tell the client when to retry. That is not soon, so that client
// libraries are told not to retry by themselves.
func (e *ExceededError) Describe(h http.Header) {
	h.Set("X-Should-Retry", "false")
	if e.Wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int((e.Wait+time.Second-1)/time.Second)))
	}
}
