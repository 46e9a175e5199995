package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Quota is the limits of one tenant. Zero fields take the value of DefaultQuota.
type Quota struct {
	Contexts     int64 // number of contexts, and of sessions with facts
	Bytes        int64 // of all contexts, unpacked; duplicates count once
	PinnedBytes  int64 // text of pinned contexts
	ContextBytes int64 // text of one version
	Versions     int   // of one context
	Facts        int   // of one context or session
	FactBytes    int64 // text of all facts of one
}

// DefaultQuota returns 10,000 contexts in 1 GiB, a quarter of it pinned; 16 MiB and 1,000 versions
// per context; 512 facts in 64 KiB.
func DefaultQuota() Quota {
	return Quota{
		Contexts: 10_000, Bytes: 1 << 30, PinnedBytes: 256 << 20, ContextBytes: 16 << 20,
		Versions: 1000, Facts: 512, FactBytes: 64 << 10,
	}
}

func (q Quota) withDefaults() Quota {
	d := DefaultQuota()
	return Quota{
		Contexts:     cmp.Or(max(q.Contexts, 0), d.Contexts),
		Bytes:        cmp.Or(max(q.Bytes, 0), d.Bytes),
		PinnedBytes:  cmp.Or(max(q.PinnedBytes, 0), d.PinnedBytes),
		ContextBytes: cmp.Or(max(q.ContextBytes, 0), d.ContextBytes),
		FactBytes:    cmp.Or(max(q.FactBytes, 0), d.FactBytes),
		Versions:     cmp.Or(max(q.Versions, 0), d.Versions),
		Facts:        cmp.Or(max(q.Facts, 0), d.Facts),
	}
}

// Text is the input of Derive and Ground.
type Text struct {
	Tenant string
	Text   string   // for messages: contents, names and tool calls, one per line; for Derive
	Models []string // of Draft, for Derive

	Kind  ledger.Kind
	Facts []Fact                 // for Ground
	Whole func() (string, error) // returns the text, for Ground
}

// Options are options of a Store. Zero fields take the value of DefaultOptions.
type Options struct {
	Pages page.Options // bytes in RAM, watermarks, idle times; the Store sets Now
	// without a Remote: maximum for all tenants; with one: records kept in RAM
	Contexts   int
	TTL        time.Duration // of contexts without one
	MaxTTL     time.Duration
	KeepGone   time.Duration // time for which an expired context is reported as such
	Fresh      time.Duration // time for which a record is used without asking the Remote again
	TouchEvery time.Duration // how precisely expiry follows use

	// Quota returns the quota of a tenant; nil: the default for all. It is called often; it must be
	// fast and safe for concurrent use.
	Quota func(tenant string) Quota
	// Derive computes what is stored with a version; nil: nothing. Its error fails the creation. It
	// must be safe for concurrent use; creations wait for it.
	Derive func(context.Context, Text) (Derived, error)
	// Revision identifies the version of Derive. What another revision derived is derived again
	// before use. See Store.Revise.
	Revision string
	// Ground prepares facts for checks of answers; nil: Snapshot.Grounding is nil. It is called
	// when a context is created or comes back into RAM, and must be safe for concurrent use. Its
	// result must be immutable; a large one should have a method Size() int that returns bytes.
	Ground func(context.Context, Text) (any, error)

	// Stored receives the time taken to make an object's copy for a tier: to pack it for L2, or to
	// write it to L3. That happens once, when the object is created; paging out later only drops
	// bytes. May be nil; must be fast.
	Stored func(to page.Tier, took time.Duration)

	Now func() time.Time
	Log *slog.Logger
}

// DefaultOptions returns the page defaults, 100,000 contexts, a TTL of 1 h and at most 7 days, a
// day for expired records, records fresh for 5 s, and touches every 5 s.
func DefaultOptions() Options {
	return Options{
		Pages: page.DefaultOptions(), Contexts: 100_000, TTL: time.Hour, MaxTTL: 7 * 24 * time.Hour, KeepGone: 24 * time.Hour,
		Fresh: 5 * time.Second, TouchEvery: 5 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

// minTTL is the minimum TTL; it must exceed the delay of touches.
const minTTL = 10 * time.Second

// Validate reports every field that is out of range.
func (o Options) Validate() error {
	errs := []error{o.Pages.Validate()}
	for _, f := range []struct {
		name string
		v    time.Duration
	}{{"ttl", o.TTL}, {"max ttl", o.MaxTTL}, {"keep gone", o.KeepGone}, {"fresh", o.Fresh}, {"touch every", o.TouchEvery}} {
		if f.v < 0 {
			errs = append(errs, fmt.Errorf("%s %v: less than 0", f.name, f.v))
		}
	}
	if o.TTL > 0 && o.TTL < minTTL || o.MaxTTL > 0 && o.MaxTTL < minTTL {
		errs = append(errs, fmt.Errorf("ttl %v and max ttl %v: want at least %v", o.TTL, o.MaxTTL, minTTL))
	}
	if o.Derive != nil && o.Revision == "" {
		errs = append(errs, errors.New("revision: must be named where something is derived"))
	}
	if o.Contexts < 0 {
		errs = append(errs, fmt.Errorf("contexts %d: less than 0", o.Contexts))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	o.TTL, o.MaxTTL, o.KeepGone = cmp.Or(o.TTL, d.TTL), cmp.Or(o.MaxTTL, d.MaxTTL), cmp.Or(o.KeepGone, d.KeepGone)
	o.Fresh, o.TouchEvery = cmp.Or(o.Fresh, d.Fresh), cmp.Or(o.TouchEvery, d.TouchEvery)
	o.Contexts = cmp.Or(o.Contexts, d.Contexts)
	if o.Quota == nil {
		o.Quota = func(string) Quota { return Quota{} }
	}
	if o.Stored == nil {
		o.Stored = func(page.Tier, time.Duration) {}
	}
	if o.Now == nil {
		o.Now = d.Now
	}
	o.Log = cmp.Or(o.Log, d.Log)
	o.Pages.Now = o.Now
	o.TTL = min(o.TTL, o.MaxTTL)
	return o
}

// Book keeps records; see ledger.Local and memory/redis for the contract of the methods.
// Implementations must be safe for concurrent use.
type Book interface {
	Load(ctx context.Context, t ledger.Tenant, id string) (ledger.Entry, error)
	Commit(ctx context.Context, c ledger.Change) (rev int64, dropped []ledger.Object, err error)
	Touch(ctx context.Context, touches []ledger.Touch) error
	Due(ctx context.Context, now time.Time, n int) ([]ledger.Name, error)
	List(ctx context.Context, t ledger.Tenant, after string, n int) ([]string, error)
}

// Remote is shared by replicas: a book, the packed bytes of objects, and notifications of changes.
// The duration of every call is limited. Implementations must be safe for concurrent use.
type Remote interface {
	Book
	// Put writes an object. It is removed unless a record that refers to it is committed within
	// minutes.
	Put(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error
	// Replace replaces the stored packed form of an object. It has no effect if no record refers to
	// the object.
	Replace(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error
	// Get reads an object. The caller owns the result.
	Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error)
	// Watch reports changes until ctx is done, and calls missed whenever some may have been lost.
	Watch(ctx context.Context, changed func(ledger.News), missed func()) error
}
