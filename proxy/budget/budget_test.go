package budget

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/testkit"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shared stores accounts in a Redis.
type shared struct {
	s    *redis.Store
	gone bool
	ttl  time.Duration // of reservations; 0: as it is asked
}

func spends(in []Spend) []redis.Spend {
	out := make([]redis.Spend, len(in))
	for i, s := range in {
		out[i] = redis.Spend(s)
	}
	return out
}

// again repeats what a busy machine answered too late. Only repeatable calls use it.
func again(t *testing.T, f func() error) {
	t.Helper()
	for end := time.Now().Add(testkit.Patience); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func (r *shared) Reserve(ctx context.Context, group, id string, s []Spend, ttl time.Duration) ([]Taken, bool, error) {
	if r.gone {
		return nil, false, errors.New("gone")
	}
	taken, fits, err := r.s.Reserve(ctx, ledger.TenantOf(group), id, spends(s), cmp.Or(r.ttl, ttl))
	out := make([]Taken, len(taken))
	for i, x := range taken {
		out[i] = Taken(x)
	}
	return out, fits, err
}

func (r *shared) Settle(ctx context.Context, group, id string, s []Spend, owed bool) error {
	if r.gone {
		return errors.New("gone")
	}
	return r.s.Settle(ctx, ledger.TenantOf(group), id, spends(s), owed)
}

func open(t *testing.T, server *testkit.Redis) *shared {
	t.Helper()
	s, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), RateBudget: testkit.Patience, BlobBudget: testkit.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &shared{s: s}
}

var cent = []Budget{{Name: "team", USD: 0.01, Period: Month}}

func TestReplicasInARaceDoNotExceedABudget(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed, now := 0, time.Now() // one month, also at its end
	for range 2 {
		k := New(open(t, server), func() time.Time { return now })
		for range 8 {
			wg.Go(func() {
				for range 20 {
					r, err := k.Reserve(t.Context(), "acme", cent, 0.0003)
					var over *ExceededError
					if err != nil && !errors.As(err, &over) {
						t.Error(err)
					}
					if r == nil {
						continue
					}
					if r.lost {
						t.Error("Redis did not answer")
					}
					r.Settle(t.Context(), 0.0003)
					mu.Lock()
					passed++
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if passed != 33 { // of 320; one more would be $0.0102
		t.Errorf("%d requests of $0.0003 passed a budget of $0.01, want 33", passed)
	}
}

func TestAReservationIsReplacedByWhatWasSpent(t *testing.T) {
	t.Parallel()
	for name, remote := range map[string]Remote{"process": nil, "redis": open(t, testkit.NewRedis(t))} {
		k := New(remote, time.Now)
		first, err := k.Reserve(t.Context(), "acme", cent, 0.009)
		if err != nil {
			t.Fatal(name, err)
		}
		_, err = k.Reserve(t.Context(), "acme", cent, 0.002)
		over, ok := errors.AsType[*ExceededError](err)
		if !ok || over.Wait <= 0 || over.Resets.Day() != 1 || !strings.Contains(err.Error(), "team") {
			t.Fatalf("%s: %v", name, err)
		}
		first.Settle(t.Context(), 0.001)
		first.Settle(t.Context(), 0.001)
		if _, err = k.Reserve(t.Context(), "acme", cent, 0.009); err != nil {
			t.Errorf("%s: after it was settled: %v", name, err)
		}
		_, err = k.Reserve(t.Context(), "acme", cent, 0.02)
		if over, ok := errors.AsType[*ExceededError](err); !ok || over.Wait != 0 {
			t.Errorf("%s: more than the budget: %v", name, err)
		}
	}
}

func TestReservationsOfADeadProcessExpire(t *testing.T) {
	t.Parallel()
	r := open(t, testkit.NewRedis(t))
	hold := []Spend{{Account: "a", Room: 10, N: 10, Until: time.Now().Add(time.Hour)}}
	if _, fits, err := r.Reserve(t.Context(), "acme", "dead", hold, time.Millisecond); err != nil || !fits {
		t.Fatal(fits, err)
	}
	again(t, func() error {
		_, fits, err := r.Reserve(t.Context(), "acme", "next", hold, time.Hour)
		if err == nil && !fits {
			err = errors.New("it is still reserved")
		}
		return err
	})
	// The process was only slow: what it spent counts once.
	for range 2 {
		again(t, func() error { return r.Settle(t.Context(), "acme", "next", hold, false) })
		again(t, func() error { return r.Settle(t.Context(), "acme", "dead", hold, false) })
	}
	if taken := r.taken(t, hold); taken != 20 {
		t.Errorf("%v taken, want 20", taken)
	}
}

// taken returns what is spent and reserved in an account, determined by a reservation that does not
// fit.
func (r *shared) taken(t *testing.T, of []Spend) (n int64) {
	t.Helper()
	again(t, func() error {
		taken, fits, err := r.Reserve(t.Context(), "acme", "asks", []Spend{{
			Account: of[0].Account, N: 1, Until: of[0].Until,
		}}, time.Hour)
		if err == nil && fits {
			t.Error("an account without room has some")
		}
		if err == nil {
			n = taken[0].All
		}
		return err
	})
	return n
}

// A lost reply must not lead to counting twice, whatever happened to the reservation.
func TestWhatIsOwedCountsOnce(t *testing.T) {
	t.Parallel()
	r := open(t, testkit.NewRedis(t))
	for name, c := range map[string]struct {
		ttl  time.Duration // of the reservation; 0: Redis never had it
		owed bool
		want int64
	}{
		"never seen":            {0, true, 10},
		"never seen, not owed":  {0, false, 0},
		"seen":                  {time.Hour, true, 10},
		"seen, and expired":     {time.Millisecond, true, 10},
		"expired, and not owed": {time.Millisecond, false, 10},
	} {
		spend := []Spend{{Account: name, Room: 100, N: 10, Until: time.Now().Add(time.Hour)}}
		if c.ttl > 0 {
			again(t, func() error {
				_, _, err := r.Reserve(t.Context(), "acme", name, spend, c.ttl)
				return err
			})
		}
		for end := time.Now().Add(testkit.Patience); c.ttl == time.Millisecond && r.taken(t, spend) != 0; {
			if time.Now().After(end) {
				t.Fatal(name, "does not expire")
			}
		}
		for range 3 {
			again(t, func() error { return r.Settle(t.Context(), "acme", name, spend, c.owed) })
		}
		if got := r.taken(t, spend); got != c.want {
			t.Errorf("%s: %d are counted, want %d", name, got, c.want)
		}
	}
}

// A request admitted by Redis that ended while Redis was away for longer than a reservation lasts
// is charged nevertheless.
func TestAnOutageLongerThanReservationsForgetsNothing(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	r := open(t, server)
	r.ttl = time.Millisecond
	k := New(r, time.Now)
	first, err := k.Reserve(t.Context(), "acme", cent, 0.006)
	if err != nil || first.lost {
		t.Fatal(err, "lost")
	}
	r.gone = true
	first.Settle(t.Context(), 0.006)
	r.gone = false
	for end := time.Now().Add(testkit.Patience); r.taken(t, first.spends) != 0; {
		if time.Now().After(end) {
			t.Fatal("the reservation does not expire")
		}
	}
	second, err := k.Reserve(t.Context(), "acme", cent, 0.001)
	if err != nil {
		t.Fatal(err)
	}
	second.Settle(t.Context(), 0)
	if got := r.taken(t, first.spends); got != 6_000_000 {
		t.Errorf("%d billionths are counted, want 6000000", got)
	}
}

// A slow Redis must not delay one request with everything that it has missed.
func TestOneRequestTellsOnlyForAMoment(t *testing.T) {
	t.Parallel()
	now := time.Now()
	slow := &late{each: flushTime, now: &now}
	k := New(slow, func() time.Time { return now })
	for range flushAtOnce {
		k.later(settlement{})
	}
	if k.flush(t.Context()); slow.told != 1 || len(k.unsettled) != flushAtOnce-1 {
		t.Errorf("%d settlements were told and %d are left", slow.told, len(k.unsettled))
	}
}

// late is a slow Remote.
type late struct {
	each time.Duration
	now  *time.Time
	told int
}

func (*late) Reserve(context.Context, string, string, []Spend, time.Duration) ([]Taken, bool, error) {
	return nil, false, errors.New("not asked here")
}

func (l *late) Settle(context.Context, string, string, []Spend, bool) error {
	l.told++
	*l.now = l.now.Add(l.each)
	return nil
}

func TestTheAccountOfTheProcessStandsInForRedis(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	r := open(t, server)
	k := New(r, time.Now)
	spend := func(usd float64) error {
		s, err := k.Reserve(t.Context(), "acme", cent, usd)
		s.Settle(t.Context(), usd)
		return err
	}
	if err := spend(0.004); err != nil {
		t.Fatal(err)
	}
	r.gone = true
	if err := spend(0.004); err != nil {
		t.Fatalf("without Redis: %v", err)
	}
	if err := spend(0.004); err == nil {
		t.Error("without Redis the budget of the process is exceeded")
	}
	r.gone = false
	if err := spend(0.001); err != nil { // tells Redis of the rest
		t.Fatal(err)
	}
	if _, err := New(open(t, server), time.Now).Reserve(t.Context(), "acme", cent, 0.002); err == nil {
		t.Error("another replica does not know what was spent without Redis")
	}
}

// What Redis has missed is reported by many requests rather than one.
func TestOneRequestTellsABoundedNumberOfSettlements(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	r := open(t, server)
	r.gone = true
	now := time.Now()
	k := New(r, func() time.Time { return now })
	const missed = 3 * flushAtOnce
	spend := func() {
		s, err := k.Reserve(t.Context(), "acme", cent, 0.0001)
		if err != nil {
			t.Fatal(err)
		}
		s.Settle(t.Context(), 0.0001)
	}
	for range missed {
		spend()
	}
	r.gone = false
	for left := missed - flushAtOnce; left >= 0; left -= flushAtOnce {
		if spend(); len(k.unsettled) != left {
			t.Fatalf("%d settlements are left, want %d", len(k.unsettled), left)
		}
	}
	// 51 of 100 parts are spent.
	other := New(open(t, server), time.Now)
	if _, err := other.Reserve(t.Context(), "acme", cent, 0.005); err == nil {
		t.Error("another replica does not know all that was spent")
	}
	if _, err := other.Reserve(t.Context(), "acme", cent, 0.0049); err != nil {
		t.Error(err)
	}
}

func TestPeriodsAreThoseOfTheCalendarInUTC(t *testing.T) {
	t.Parallel()
	at := time.Date(2028, 2, 29, 23, 30, 0, 0, time.FixedZone("", -2*3600)) // 1 March in UTC
	for p, want := range map[Period]string{Day: "2028-03-01 2028-03-02", Month: "2028-03-01 2028-04-01"} {
		if b, e := p.Bounds(at); b.Format(time.DateOnly)+" "+e.Format(time.DateOnly) != want {
			t.Errorf("%s: %v to %v, want %s", p, b, e, want)
		}
	}
	now := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	k := New(nil, func() time.Time { return now })
	if _, err := k.Reserve(t.Context(), "acme", cent, 0.01); err != nil {
		t.Fatal(err)
	}
	_, err := k.Reserve(t.Context(), "acme", cent, 0.01)
	if over, ok := errors.AsType[*ExceededError](err); !ok || over.Wait != time.Second {
		t.Errorf("at the end of the month: %v", err)
	}
	now = now.Add(time.Second)
	if _, err := k.Reserve(t.Context(), "acme", cent, 0.01); err != nil {
		t.Errorf("in the next month: %v", err)
	}
}

// A replica learns what others spent with its own next request, and saves from then on.
func TestTheSoftBoundCountsWhatOthersSpent(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	soft := []Budget{{
		Name: "team", USD: 0.01, Period: Month, Soft: SoftOptions{At: .5, Then: thenBoth}.Of(),
	}}
	spend := func(k *Keeper, usd float64) {
		t.Helper()
		r, err := k.Reserve(t.Context(), "acme", soft, usd)
		if err != nil || r.lost {
			t.Fatal(err, "lost")
		}
		r.Settle(t.Context(), usd)
	}
	a, b := New(open(t, server), time.Now), New(open(t, server), time.Now)
	if got := a.Saving("acme", soft).String(); got != "" {
		t.Errorf("of a budget that nobody used: %q", got)
	}
	spend(a, .005)
	if got := a.Saving("acme", soft).String(); got != "cheaper,less_effort" {
		t.Errorf("of half a budget: %q", got)
	}
	spend(b, .0001)
	if got := b.Saving("acme", soft).String(); got != "cheaper,less_effort" {
		t.Errorf("where another spent half: %q", got)
	}
	if got := b.Saving("shop", soft).String(); got != "" {
		t.Errorf("of another tenant: %q", got)
	}
}

// told is a Remote in which others have spent something.
type told struct {
	taken int64
	gone  bool
}

func (r *told) Reserve(_ context.Context, _, _ string, s []Spend, _ time.Duration) ([]Taken, bool, error) {
	if r.gone {
		return nil, false, errors.New("gone")
	}
	return []Taken{{All: r.taken}}, r.taken+s[0].N <= s[0].Room, nil
}

func (*told) Settle(context.Context, string, string, []Spend, bool) error { return nil }

// A replica that spent little itself remembers what Redis reported before it became unavailable.
func TestABudgetKnownToBeExhaustedStaysSoWithoutRedis(t *testing.T) {
	t.Parallel()
	r := &told{taken: 9_500_000}
	k := New(r, time.Now)
	if _, err := k.Reserve(t.Context(), "acme", cent, 0.001); err == nil {
		t.Fatal("what does not fit at Redis is let in")
	}
	r.gone = true
	_, err := k.Reserve(t.Context(), "acme", cent, 0.001)
	if over, ok := errors.AsType[*ExceededError](err); !ok || over.Taken != 0.0095 {
		t.Errorf("without Redis: %v", err)
	}
	s, err := k.Reserve(t.Context(), "acme", cent, 0.0004)
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(t.Context(), 0.0004)
	if _, err = k.Reserve(t.Context(), "acme", cent, 0.0002); err == nil {
		t.Error("what was spent since Redis went away is not counted on top")
	}
}

func TestAmountsAreToldAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for usd, want := range map[float64]string{
		0: "$0", 5: "$5", 1250000: "$1250000", 0.035: "$0.035", 0.00001: "$0.00001", 2.4e-7: "$0.00000024",
		0.1 + 0.2: "$0.3", 1e-9: "$0.000000001", 12.3456789: "$12.345679",
	} {
		if got := dollars(usd); got != want {
			t.Errorf("%v is told as %s, want %s", usd, got, want)
		}
	}
}

func TestALookTellsWhatAllReplicasHaveTaken(t *testing.T) {
	t.Parallel()
	server, now := testkit.NewRedis(t), time.Now()
	a := New(open(t, server), func() time.Time { return now })
	b := New(open(t, server), func() time.Time { return now })
	alone := New(nil, func() time.Time { return now })
	for _, k := range []*Keeper{a, b, alone} {
		r, err := k.Reserve(t.Context(), "acme", cent, 0.004)
		if err != nil {
			t.Fatal(err)
		}
		if k != a { // whose request is under way
			r.Settle(t.Context(), 0.001)
		}
	}
	for range 3 { // it takes nothing
		for k, want := range map[*Keeper]float64{a: 0.005, b: 0.005, alone: 0.001} {
			usd, shared := k.Look(t.Context(), "acme", cent)
			if len(usd) != 1 || math.Abs(usd[0]-want) > 1e-9 || shared != (k != alone) {
				t.Errorf("%v, shared %v; want %v", usd, shared, want)
			}
		}
	}
	server.Stop()
	if usd, shared := a.Look(t.Context(), "acme", cent); len(usd) != 1 || usd[0] < 0.004 || shared {
		t.Errorf("without Redis %v, shared %v", usd, shared)
	}
	if usd, _ := a.Look(t.Context(), "acme", nil); len(usd) != 0 {
		t.Errorf("of no budget: %v", usd)
	}
}

// wipe makes a Redis lose everything, like one that restarts without its data.
func wipe(t *testing.T, server *testkit.Redis) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err = c.Write([]byte("FLUSHALL\r\n")); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "+OK\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
}

func TestARedisThatLostWhatWasSpentIsToldAgain(t *testing.T) {
	t.Parallel()
	server, now := testkit.NewRedis(t), time.Now()
	clock := func() time.Time { return now }
	var log bytes.Buffer
	a, b, other := New(open(t, server), clock), New(open(t, server), clock), New(open(t, server), clock)
	a.Share(a.remote, slog.New(slog.NewTextHandler(&log, nil)))
	spend := func(k *Keeper, usd float64) {
		t.Helper()
		r, err := k.Reserve(t.Context(), "acme", cent, usd)
		if err != nil || r.lost {
			t.Fatal(err, "lost")
		}
		r.Settle(t.Context(), usd)
	}
	spend(a, .002)
	spend(b, .003)
	spend(a, .001) // and hears of the .005
	held, err := b.Reserve(t.Context(), "acme", cent, .001)
	if err != nil || log.Len() > 0 {
		t.Fatal(err, log.String())
	}
	for range 2 {
		wipe(t, server)
		spend(a, .0001)
		spend(a, .0001)
	}
	held.Settle(t.Context(), .001)
	usd, shared := other.Look(t.Context(), "acme", cent)
	if !shared || usd[0] < .005 || usd[0] > .0074+1e-9 {
		t.Errorf("%v are spent, shared %v; want at least the 0.005 of which a heard, at most the 0.0074 of all", usd, shared)
	}
	if _, err = other.Reserve(t.Context(), "acme", cent, .005); err == nil {
		t.Error("a replica that is new does not know what was lost")
	}
	if n := strings.Count(log.String(), "redis lost the spending"); n != 1 || !strings.Contains(log.String(), "budget=team") {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	spend(b, .0001) // which heard of 0.006
	if usd, _ := other.Look(t.Context(), "acme", cent); usd[0] < .006 || usd[0] > .0075+1e-9 {
		t.Errorf("%v are spent, want 0.006 to 0.0075", usd)
	}
}

// What a process knows is never added to what Redis has.
func TestWhatIsKnownOfAnAccountCountsOnce(t *testing.T) {
	t.Parallel()
	server, now := testkit.NewRedis(t), time.Now()
	var wg sync.WaitGroup
	for range 2 {
		k := New(open(t, server), func() time.Time { return now })
		for range 4 {
			wg.Go(func() {
				for range 10 {
					r, err := k.Reserve(t.Context(), "acme", cent, 0.0001)
					if err != nil || r.lost {
						t.Error(err, "lost")
					}
					r.Settle(t.Context(), 0.0001)
				}
			})
		}
	}
	wg.Wait()
	if usd, _ := New(open(t, server), time.Now).Look(t.Context(), "acme", cent); math.Abs(usd[0]-.008) > 1e-9 {
		t.Errorf("%v are spent, want 0.008", usd)
	}
}

// A request without an estimate, such as one for speech, reserves nothing.
func TestAReservationOfNothingOutlivesItsAccount(t *testing.T) {
	t.Parallel()
	for name, remote := range map[string]Remote{"process": nil, "redis": open(t, testkit.NewRedis(t))} {
		now := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC)
		k := New(remote, func() time.Time { return now })
		old, err := k.Reserve(t.Context(), "acme", cent, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		now = now.Add(2*TTL + 2*time.Minute)
		if _, err := k.Reserve(t.Context(), "acme", cent, 0); err != nil { // sweeps
			t.Fatal(name, err)
		}
		old.Settle(t.Context(), 0.01)
		if _, err := k.Reserve(t.Context(), "acme", cent, 0.01); err != nil {
			t.Errorf("%s: what was spent in January counts in February: %v", name, err)
		}
	}
}
