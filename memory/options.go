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

// Quota is what one tenant may have. Zero fields take the value of DefaultQuota.
type Quota struct {
	Contexts     int64 // contexts, and sessions with facts
	Bytes        int64 // of all contexts, unpacked; what is stored twice counts once
	PinnedBytes  int64 // text of pinned contexts
	ContextBytes int64 // text of one version
	Versions     int   // of one context
	Facts        int   // of one context or session
	FactBytes    int64 // text of all facts of one
}

// DefaultQuota is 10,000 contexts in 1 GiB, a quarter of it pinned; 16 MiB and 1,000 versions a
// context; 512 facts in 64 KiB.
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

// Text is what Derive and Ground read.
type Text struct {
	Tenant string
	Text   string   // of messages: contents, names and tool calls, a line each; for Derive
	Models []string // of Draft, for Derive

	Kind  ledger.Kind
	Facts []Fact                 // for Ground
	Whole func() (string, error) // reads the text, for Ground
}

// Options of a Store. Zero fields take the value of DefaultOptions.
type Options struct {
	Pages      page.Options  // bytes in RAM, watermarks, idle times; Now is set by the Store
	Contexts   int           // of all tenants, without a Remote; records kept in RAM, with one
	TTL        time.Duration // of contexts that name none
	MaxTTL     time.Duration
	KeepGone   time.Duration // for which an expired context is said to be so
	Fresh      time.Duration // for which a record is used without asking the Remote again
	TouchEvery time.Duration // how exactly the end of a life follows use

	// Quota of a tenant; nil: the default for all. Called often; must be fast and safe for
	// concurrent use.
	Quota func(tenant string) Quota
	// Derive works out what is stored with a version; nil: nothing. Its error fails the creation.
	// It must be safe for concurrent use, and whoever creates waits for it.
	Derive func(context.Context, Text) (Derived, error)
	// Revision names what Derive is made of. A version with another is derived anew before it is
	// used. See Store.Revise.
	Revision string
	// Ground prepares facts for checks of answers; nil: Snapshot.Grounding is nil. Called when a
	// context is made or comes back into RAM; safe for concurrent use. Its result must be
	// immutable; one that is large has a method Size() int, in bytes.
	Ground func(context.Context, Text) (any, error)

	// Stored is told how long it took to make the copy of an object that a tier holds: to pack it
	// for L2, to write it to L3. That is done once, when the object is made; paging out later only
	// forgets. May be nil; must be fast.
	Stored func(to page.Tier, took time.Duration)

	Now func() time.Time
	Log *slog.Logger
}

// DefaultOptions are those of page, 100,000 contexts, lives of 1 h and at most 7 days, a day for
// what is gone, records fresh for 5 s, and touches every 5 s.
func DefaultOptions() Options {
	return Options{
		Pages: page.DefaultOptions(), Contexts: 100_000, TTL: time.Hour, MaxTTL: 7 * 24 * time.Hour, KeepGone: 24 * time.Hour,
		Fresh: 5 * time.Second, TouchEvery: 5 * time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	}
}

// minTTL keeps lives longer than touches may lag behind.
const minTTL = 10 * time.Second

// Validate reports every field out of its range.
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

// Book keeps records; see ledger.Local and memory/redis for what the methods promise. Safe for
// concurrent use.
type Book interface {
	Load(ctx context.Context, t ledger.Tenant, id string) (ledger.Entry, error)
	Commit(ctx context.Context, c ledger.Change) (rev int64, dropped []ledger.Object, err error)
	Touch(ctx context.Context, touches []ledger.Touch) error
	Due(ctx context.Context, now time.Time, n int) ([]ledger.Name, error)
	List(ctx context.Context, t ledger.Tenant, after string, n int) ([]string, error)
}

// Remote is what replicas share: a book, the packed bytes of objects, and news of changes. Every
// call bounds the time it takes. Safe for concurrent use.
type Remote interface {
	Book
	// Put writes an object; it stays if a record that refers to it is committed within minutes.
	Put(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error
	// Replace puts another packed form of an object in the place of the stored one. Without a
	// record that refers to it, it does nothing.
	Replace(ctx context.Context, t ledger.Tenant, o ledger.Object, packed []byte) error
	// Get reads an object. The result is the caller's.
	Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error)
	// Watch tells of changes until ctx is done, and calls missed whenever some may have been lost.
	Watch(ctx context.Context, changed func(ledger.News), missed func()) error
}
