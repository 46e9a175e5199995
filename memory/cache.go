package memory

import (
	"container/list"
	"sync"
	"time"

	"signalbox/memory/ledger"
)

// cache holds records of a Remote and evicts the least recently used.
type cache struct {
	most int

	mu    sync.Mutex // guards the fields below
	items map[ledger.Name]*list.Element
	order list.List // of *record, least recently used first
}

// record is the state of one name when it was last requested.
type record struct {
	at     ledger.Name
	entry  ledger.Entry
	absent bool
	loaded time.Time // zero: it may have changed since
}

// answer returns what Book.Load returned.
func (r record) answer() (ledger.Entry, error) {
	if r.absent {
		return ledger.Entry{}, ledger.ErrNotFound
	}
	return r.entry, nil
}

func newCache(most int) *cache { return &cache{most: most, items: map[ledger.Name]*list.Element{}} }

func (c *cache) find(at ledger.Name) (record, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[at]
	if e == nil {
		return record{}, false
	}
	c.order.MoveToBack(e)
	return *e.Value.(*record), true //nolint:errcheck,forcetypeassert // the list holds records only
}

// keep stores an entry, unless a newer one is known.
func (c *cache) keep(at ledger.Name, e ledger.Entry, asked time.Time) {
	c.put(record{at: at, entry: e, loaded: asked})
}

// miss records that there is no such record.
func (c *cache) miss(at ledger.Name, asked time.Time) {
	c.put(record{at: at, absent: true, loaded: asked})
}

func (c *cache) put(r record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[r.at]; e != nil {
		old := e.Value.(*record) //nolint:errcheck,forcetypeassert // the list holds records only
		if !r.absent && old.entry.Rev > r.entry.Rev {
			return
		}
		if !r.absent && old.entry.Expires.After(r.entry.Expires) && old.entry.Rev == r.entry.Rev {
			r.entry.Expires = old.entry.Expires // a touch is in flight
		}
		*old = r
		c.order.MoveToBack(e)
		return
	}
	c.items[r.at] = c.order.PushBack(&r)
	if len(c.items) > c.most {
		first := c.order.Front()
		delete(c.items, c.order.Remove(first).(*record).at) //nolint:errcheck,forcetypeassert // as above
	}
}

// drop removes a record and returns it, or nil if it was not cached or is not older than rev. rev 0
// is newer than all.
func (c *cache) drop(at ledger.Name, rev int64) *ledger.Record {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.items[at]
	if e == nil {
		return nil
	}
	r := e.Value.(*record) //nolint:errcheck,forcetypeassert // the list holds records only
	if rev != 0 && !r.absent && r.entry.Rev >= rev {
		return nil
	}
	c.order.Remove(e)
	delete(c.items, at)
	return r.entry.Record
}

// extend moves the expiry of a cached record.
func (c *cache) extend(t *ledger.Touch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.items[t.Name]; e != nil {
		r := e.Value.(*record) //nolint:errcheck,forcetypeassert // the list holds records only
		if t.Moves(&r.entry) {
			r.entry.Expires = t.Expires
		}
	}
}

// each calls see for every cached record that exists. see must not use the cache.
func (c *cache) each(see func(ledger.Name, ledger.Entry) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, e := range c.items {
		r := e.Value.(*record) //nolint:errcheck,forcetypeassert // the list holds records only
		if !r.absent && !see(at, r.entry) {
			return
		}
	}
}

// doubt marks everything as to be requested again before use, if that is possible.
func (c *cache) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.items {
		e.Value.(*record).loaded = time.Time{} //nolint:errcheck,forcetypeassert // the list holds records only
	}
}
