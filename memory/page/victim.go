package page

import (
	"container/heap"
	"container/list"
	"time"
)

// Costs of bringing bytes back, in seconds, from which ranks are computed. Only their ratio
// matters: unpacking ran at about 400 MB/s, and a GET over loopback took about 0.5 ms and 2 ns per
// byte (BenchmarkPageIn; Redis 7.0, 2 cores).
const (
	unpackPerByte = 1 / 400e6
	fetchOnce     = 0.5e-3
	fetchPerByte  = 2e-9
)

// cost returns the time to undo the next paging step of the entry, per byte that the step frees.
func (e *entry) cost() float64 {
	if e.hot != nil {
		return unpackPerByte
	}
	return (fetchOnce + fetchPerByte*float64(len(e.packed))) / float64(len(e.packed)+overhead)
}

// room makes room for need more bytes and reports whether there is. Above the high watermark it
// pages out victims until the low one. keep is not paged out.
func (p *Pager) room(need int64, keep *entry) bool {
	if float64(p.used()+need) <= p.o.High*float64(p.o.Bytes) {
		return true
	}
	if keep != nil {
		keep.refs++
		p.seat(keep)
		defer func() { keep.refs--; p.seat(keep) }()
	}
	for float64(p.used()+need) > p.o.Low*float64(p.o.Bytes) && len(p.victims) > 0 {
		e := p.victims[0]
		p.age = max(p.age, e.rank)
		p.step(e)
	}
	return p.used()+need <= p.o.Bytes
}

// step pages a victim out by one tier.
func (p *Pager) step(e *entry) {
	if e.hot == nil {
		p.remove(e)
		return
	}
	p.cool(e)
	p.seat(e)
}

// cool drops the hot form.
func (p *Pager) cool(e *entry) {
	p.stats.HotBytes -= int64(len(e.hot))
	p.o.Paged(Hot, L2, len(e.hot))
	e.hot = nil
	p.rank(e)
}

func (p *Pager) remove(e *entry) {
	if e.hot != nil {
		p.cool(e)
	}
	if e.packed != nil {
		p.stats.L2Bytes -= int64(len(e.packed))
		to := L3
		if !e.safe {
			to = Gone
		}
		p.o.Paged(L2, to, len(e.packed))
		e.packed = nil
	}
	p.unseat(e)
	delete(p.entries, e.key)
}

// touch records a use.
func (p *Pager) touch(e *entry) {
	e.last = p.o.Now()
	e.uses++
	p.rank(e)
	p.seat(e)
}

// rank computes the GDSF rank of the entry's next step.
func (p *Pager) rank(e *entry) { e.rank = p.age + (e.uses+float64(e.care.Priority))*e.cost() }

// seat puts an entry where its state requires: into the list of its tier, at the end if it was
// used, and into the ranking if it may be paged out.
func (p *Pager) seat(e *entry) {
	p.enlist(e)
	now := p.o.Now()
	taken := e.refs > 0 || e.loading != nil || e.care.PinUntil.After(now) || (e.hot == nil && (!e.safe || e.packed == nil))
	switch {
	case taken && e.place >= 0:
		heap.Remove(&p.victims, e.place)
	case taken:
	case e.place >= 0:
		heap.Fix(&p.victims, e.place)
	default:
		heap.Push(&p.victims, e)
	}
}

// enlist keeps the lists in order of last use.
func (p *Pager) enlist(e *entry) {
	var want *list.List
	switch {
	case e.hot != nil:
		want = &p.hot
	case e.packed != nil:
		want = &p.cold
		p.queue(e)
	}
	if e.in == want && e.seated.Equal(e.last) {
		return
	}
	p.leave(e)
	if want == nil {
		return
	}
	e.in, e.seated = want, e.last
	at := want.Back()
	for at != nil && at.Value.(*entry).last.After(e.last) { //nolint:errcheck,forcetypeassert // lists hold entries only
		at = at.Prev()
	}
	if at == nil {
		e.seat = want.PushFront(e)
		return
	}
	e.seat = want.InsertAfter(e, at)
}

// queue records that an entry in L2 is loosely packed.
func (p *Pager) queue(e *entry) {
	if !e.queued && e.isLoose() {
		e.queued = true
		p.loose = append(p.loose, e)
	}
}

// leave removes the entry from its list.
func (*Pager) leave(e *entry) {
	if e.in != nil {
		e.in.Remove(e.seat)
	}
	e.in, e.seat = nil, nil
}

func (p *Pager) unseat(e *entry) {
	p.leave(e)
	if e.place >= 0 {
		heap.Remove(&p.victims, e.place)
	}
}

// Idle pages out objects that were not used for the times in the options. It must be called every
// few seconds.
func (p *Pager) Idle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.o.Now()
	for _, e := range idle(&p.hot, now.Add(-p.o.IdleHot), now) {
		p.cool(e)
		p.seat(e)
	}
	for _, e := range idle(&p.cold, now.Add(-p.o.IdleL2), now) {
		if e.safe {
			p.remove(e)
		}
	}
}

// idle returns the entries of a list that were last used at or before a time and that nothing
// keeps.
func idle(l *list.List, before, now time.Time) []*entry {
	var out []*entry
	for at := l.Front(); at != nil; at = at.Next() {
		e := at.Value.(*entry) //nolint:errcheck,forcetypeassert // lists hold entries only
		if e.last.After(before) {
			break
		}
		if e.refs == 0 && e.loading == nil && !e.care.PinUntil.After(now) && !e.care.NextUse.After(now) {
			out = append(out, e)
		}
	}
	return out
}

// ranking is a heap of the entries that may be paged out, the next victim on top.
type ranking []*entry

// Len implements heap.Interface, like the methods below.
func (r *ranking) Len() int { return len(*r) }

// Less puts entries that are not awaited first, then lower ranks.
func (r *ranking) Less(i, j int) bool {
	x, y := (*r)[i], (*r)[j]
	if a, b := x.awaited(), y.awaited(); a != b {
		return !a
	}
	return x.rank < y.rank
}

// awaited reports whether the announced next use is after the last use.
func (e *entry) awaited() bool { return e.care.NextUse.After(e.last) }

// Swap exchanges two entries.
func (r *ranking) Swap(i, j int) {
	a := *r
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push adds an entry.
func (r *ranking) Push(x any) {
	e := x.(*entry) //nolint:errcheck,forcetypeassert // the ranking holds entries only
	e.place = len(*r)
	*r = append(*r, e)
}

// Pop takes the last entry off.
func (r *ranking) Pop() any {
	old := *r
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*r = old[:len(old)-1]
	e.place = -1
	return e
}
