package page

import (
	"context"
	"fmt"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// Source is L3. Get returns the packed form of an object, which the caller owns. It limits its own
// duration and is not cancelled when a waiting request ends. Implementations must be safe for
// concurrent use.
type Source interface {
	Get(ctx context.Context, t ledger.Tenant, o ledger.Object) ([]byte, error)
}

// load is an object being brought in. err, hot and from are set before done is closed.
type load struct {
	done chan struct{}
	hot  []byte
	from Tier
	err  error
}

// Held is an object in use. Its bytes stay valid, whatever the pager does.
type Held struct {
	Bytes []byte // read-only
	Tier  Tier   // where the bytes were found

	p *Pager
	e *entry
}

// Release ends the use of the object. It must be called once; the zero Held may be released.
func (h Held) Release() {
	if h.e == nil {
		return
	}
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.e.refs--
	if h.e.refs > 0 || h.e.loading != nil {
		return
	}
	if (h.e.doomed || h.e.packed == nil) && h.p.entries[h.e.key] == h.e {
		h.p.remove(h.e)
		return
	}
	h.p.seat(h.e)
}

// Get returns an object's bytes from the nearest tier and makes it hot if there is room. Requests
// for an object that is being brought in wait for it, until ctx is done. Errors wrap ErrGone,
// blob.ErrDamaged or come from the source.
func (p *Pager) Get(ctx context.Context, t ledger.Tenant, o ledger.Object, c Care) (Held, error) {
	k := Key{Tenant: t, Sum: o.Sum}
	p.mu.Lock()
	e := p.entries[k]
	if e == nil {
		if p.source == nil {
			p.mu.Unlock()
			return Held{}, fmt.Errorf("%w: %v", ErrGone, o.Sum)
		}
		e = &entry{key: k, object: o, safe: true, place: -1}
		p.entries[k] = e
	}
	e.tend(c)
	e.refs++
	if e.hot != nil {
		h := Held{Bytes: e.hot, Tier: Hot, p: p, e: e}
		p.touch(e)
		p.mu.Unlock()
		return h, nil
	}
	if l := e.loading; l != nil {
		p.mu.Unlock()
		return p.await(ctx, e, l)
	}
	l := &load{done: make(chan struct{})}
	e.loading = l
	packed := e.packed
	p.mu.Unlock()

	fetched := p.bring(context.WithoutCancel(ctx), e, l, packed)
	return p.arrived(e, l, fetched)
}

// await waits for an object that another request brings in.
func (p *Pager) await(ctx context.Context, e *entry, l *load) (Held, error) {
	h := Held{p: p, e: e}
	select {
	case <-l.done:
	case <-ctx.Done():
		h.Release()
		return Held{}, fmt.Errorf("wait for object %v: %w", e.object.Sum, ctx.Err())
	}
	if l.err != nil {
		h.Release()
		return Held{}, l.err
	}
	h.Bytes, h.Tier = l.hot, l.from
	return h, nil
}

// bring unpacks an object, after fetching it if necessary. It returns what it fetched.
func (p *Pager) bring(ctx context.Context, e *entry, l *load, packed []byte) (fetched []byte) {
	start := p.o.Now()
	defer func() {
		if l.err == nil {
			p.o.Loaded(l.from, p.o.Now().Sub(start), len(l.hot))
		}
	}()
	l.from = L2
	if packed == nil {
		l.from = L3
		if p.source == nil {
			l.err = fmt.Errorf("%w: %v", ErrGone, e.object.Sum)
			return nil
		}
		if fetched, l.err = p.source.Get(ctx, e.key.Tenant, e.object); l.err != nil {
			return nil
		}
		packed = fetched
	}
	if l.hot, l.err = blob.Unpack(packed, e.object.Size, e.object.Sum); l.err != nil {
		l.err = fmt.Errorf("object from %v: %w", l.from, l.err)
		return nil
	}
	return fetched
}

// arrived ends a load and wakes the requests that wait for it.
func (p *Pager) arrived(e *entry, l *load, fetched []byte) (Held, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.loading = nil
	defer close(l.done)
	if l.err != nil {
		e.refs--
		if e.packed == nil && e.refs == 0 {
			p.remove(e)
		} else {
			p.seat(e)
		}
		return Held{}, l.err
	}
	if e.packed == nil && fetched != nil && p.room(int64(len(fetched)), e) {
		e.packed = fetched
		p.stats.L2Bytes += int64(len(fetched))
		p.o.Paged(L3, L2, len(fetched))
	}
	if e.packed != nil {
		p.o.Paged(L2, Hot, len(l.hot))
		p.warm(e, l.hot)
	}
	p.touch(e)
	return Held{Bytes: l.hot, Tier: l.from, p: p, e: e}, nil
}
