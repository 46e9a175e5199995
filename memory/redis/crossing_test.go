package redis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// S13: callers leave in the middle of an answer, 10,000 of them with a deadline of its own each;
// whoever gets a record or an object gets that of the name asked for, and the connections that they
// left serve the next ones.
func TestS13NobodyGetsTheAnswerOfACallerWhoLeft(t *testing.T) {
	t.Parallel()
	o := patient(testkit.NewRedis(t).URL())
	o.Failures = 1 << 30 // connections end with the deadlines of callers who use them alone; that is no outage
	s := open(t, o)
	type one struct {
		tenant ledger.Tenant
		id     string
		object ledger.Object
	}
	all := make([]one, 64)
	for i := range all {
		o, _, packed := object(fmt.Sprint("crossing ", i), 2000+100*i)
		x := one{ledger.TenantOf(fmt.Sprint(i % 4)), fmt.Sprint("id", i/4), o} // each name is that of four tenants
		record := &ledger.Record{ID: x.id, Name: fmt.Sprint("name ", i), Versions: []ledger.Version{{Sum: o.Sum, Segments: []ledger.Object{o}}}}
		if err := s.Put(t.Context(), x.tenant, o, packed); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: x.tenant, ID: x.id, New: record, Expires: start}); err != nil {
			t.Fatal(err)
		}
		all[i] = x
	}
	var got, left, wrong atomic.Int64
	ask := func(i int, ctx context.Context) {
		x := all[i]
		e, err := s.Load(ctx, x.tenant, x.id)
		if err == nil && e.Record.Name != fmt.Sprint("name ", i) {
			wrong.Add(1)
		}
		packed, failed := s.Get(ctx, x.tenant, x.object)
		if failed == nil {
			if _, damaged := blob.Unpack(packed, x.object.Size, x.object.Sum); damaged != nil {
				wrong.Add(1)
			}
		}
		if err == nil && failed == nil {
			got.Add(1)
		} else {
			left.Add(1)
		}
	}
	const callers, each = 20, 500
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(13, uint64(c)))
			for range each {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(4*time.Millisecond))))
				ask(r.IntN(len(all)), ctx)
				leave()
			}
		})
	}
	wg.Wait()
	t.Logf("%d got both, %d left before, %d got another's", got.Load(), left.Load(), wrong.Load())
	if wrong.Load() != 0 || got.Load() == 0 || left.Load() == 0 {
		t.Errorf("%d got what is another's; %d got both and %d left, want some of each", wrong.Load(), got.Load(), left.Load())
	}
	got.Store(0)
	for i := range all {
		ask(i, t.Context())
	}
	if wrong.Load() != 0 || got.Load() != int64(len(all)) {
		t.Errorf("afterwards %d of %d got theirs, and %d another's", got.Load(), len(all), wrong.Load())
	}
}

// S13: a record tells whose it is. One that stands where another should, of another tenant or
// another name, is not taken for it.
func TestS13ARecordThatIsAnothersIsNone(t *testing.T) {
	t.Parallel()
	s := open(t, patient(testkit.NewRedis(t).URL()))
	mine, yours := ledger.TenantOf("mine"), ledger.TenantOf("yours")
	for _, t2 := range []ledger.Tenant{mine, yours} {
		for _, id := range []string{"a", "b"} {
			if _, _, err := s.Commit(t.Context(), ledger.Change{Tenant: t2, ID: id, New: &ledger.Record{ID: id, Name: "of " + string(t2)}, Expires: start}); err != nil {
				t.Fatal(err)
			}
		}
	}
	move := func(fromTenant ledger.Tenant, from string, toTenant ledger.Tenant, to string) {
		t.Helper()
		if err := s.Do(t.Context(), time.Minute, func(ctx context.Context, c rueidis.Client) error {
			return c.Do(ctx, c.B().Copy().Source(s.key(fromTenant, "c:"+from)).Destination(s.key(toTenant, "c:"+to)).Replace().Build()).Error()
		}); err != nil {
			t.Fatal(err)
		}
	}
	move(yours, "a", mine, "a") // the same name, of another tenant
	move(mine, "b", mine, "c")  // the same tenant, another name
	for _, id := range []string{"a", "c"} {
		if e, err := s.Load(t.Context(), mine, id); !errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%s: %+v, %v", id, e.Record, err)
		}
	}
	if e, err := s.Load(t.Context(), mine, "b"); err != nil || e.Record.Name != "of "+string(mine) {
		t.Errorf("one's own: %+v, %v", e.Record, err)
	}
	nobodys, _ := json.Marshal(&ledger.Record{ID: "b", Name: "of nobody"})
	if err := s.Do(t.Context(), time.Minute, func(ctx context.Context, c rueidis.Client) error {
		return c.Do(ctx, c.B().Hset().Key(s.key(mine, "c:b")).FieldValue().FieldValue("rec", string(nobodys)).Build()).Error()
	}); err != nil {
		t.Fatal(err)
	}
	if e, err := s.Load(t.Context(), mine, "b"); !errors.Is(err, ledger.ErrDamaged) {
		t.Errorf("one that does not say whose it is: %+v, %v", e.Record, err)
	}
	if !s.Healthy() {
		t.Error("what cannot be read counts as an outage")
	}
}

// S13: what many replicas count at the same time is counted whole: no count of one replaces that of
// another, and none passes a bound. A store with another prefix or another database counts for
// itself.
func TestS13CountsOfReplicasNeverReplaceEachOther(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	other := patient(server.URL())
	other.Prefix = "other"
	replicas := []*Store{open(t, patient(server.URL())), open(t, patient(server.URL())), open(t, patient(server.URL()))}
	tenant, limits := ledger.TenantOf("acme"), ledger.Limits{Contexts: 40}
	create := func(s *Store, id string) error {
		_, _, err := s.Commit(t.Context(), ledger.Change{Tenant: tenant, ID: id, New: &ledger.Record{ID: id}, Expires: start, Limits: limits})
		return err
	}
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for n, s := range replicas {
		for m := range 30 {
			wg.Go(func() {
				limit := (*ledger.LimitError)(nil)
				switch err := create(s, fmt.Sprint(n, "-", m)); {
				case err == nil:
					made.Add(1)
				case errors.As(err, &limit):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if n, _, err := replicas[0].Usage(t.Context(), tenant); err != nil || made.Load() != limits.Contexts || n != limits.Contexts || refused.Load() != 50 {
		t.Errorf("%d made and %d refused of 90, %d counted, %v; the limit is %d", made.Load(), refused.Load(), n, err, limits.Contexts)
	}
	elsewhere := patient(server.URL() + "/1")
	for _, o := range []Options{other, elsewhere} {
		s := open(t, o)
		if err := create(s, "0-0"); err != nil {
			t.Errorf("a store of its own, full because another one is: %v", err)
		}
		if n, _, err := s.Usage(t.Context(), tenant); err != nil || n != 1 {
			t.Errorf("a store of its own counts %d, %v", n, err)
		}
	}
}
