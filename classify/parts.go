package classify

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"sync"

	"signalbox/internal/signal"
)

const (
	// partBytes is what a part takes beside what the model said of it.
	partBytes = 250
	// maxPartsBytes bounds the parts of a bundle. A window of 256 tokens takes 37 KiB for personal
	// data of 18 types and some 10 bytes for an attack, so that these are some 900 windows, more
	// than one core reads in three times the default timeout.
	maxPartsBytes = 32 << 20
)

// partKey is a window of a text and the signal that read it. Like digest it cannot be forged: it is
// the SHA-256 of what the model is given.
type partKey struct {
	tokens digest
	kind   signal.Kind
}

// part is what the model said of a window.
type part struct {
	key partKey
	out []float32
}

func (p *part) bytes() int { return partBytes + 4*len(p.out) }

// parts holds what was read of texts that no verdict came of since the time was up, so that who asks
// again goes on from there. It holds nothing of who sent them, and lets go of the windows of a text
// once its verdict is there. The latest used stays longest. The zero value is ready. It is safe for
// concurrent use.
type parts struct {
	mu     sync.Mutex // guards what follows
	recent list.List  // of *part, the latest used first
	byKey  map[partKey]*list.Element
	bytes  int
}

func (s *parts) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey) == 0
}

// get returns what the model said, nil for what is not known. It is shared and must not be modified.
func (s *parts) get(key *partKey) []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.byKey[*key]
	if !ok {
		return nil
	}
	s.recent.MoveToFront(at)
	return at.Value.(*part).out //nolint:errcheck // nothing else is in the list
}

// put keeps a copy of out, and lets go of what was not used for longest until at most room bytes are
// left.
func (s *parts) put(key *partKey, out []float32, room int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.byKey[*key]; ok {
		s.recent.MoveToFront(at)
		return
	}
	if s.byKey == nil {
		s.byKey = make(map[partKey]*list.Element)
	}
	added := &part{*key, slices.Clone(out)} // what a run returned of other rows is not held with it
	s.byKey[*key] = s.recent.PushFront(added)
	s.bytes += added.bytes()
	for s.recent.Len() > 0 && s.bytes > room {
		s.remove(s.recent.Back())
	}
}

func (s *parts) drop(key *partKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.byKey[*key]; ok {
		s.remove(at)
	}
}

func (s *parts) remove(at *list.Element) {
	r := s.recent.Remove(at).(*part) //nolint:errcheck // nothing else is in the list
	delete(s.byKey, r.key)
	s.bytes -= r.bytes()
}

// partKeyOf returns the key of tokens [from,to) of a reading, as task i reads them.
func (p *pass) partKeyOf(i int, reading, from, to int32) partKey {
	ids := p.readings[reading].enc.IDs[from:to]
	text := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		text = binary.LittleEndian.AppendUint32(text, uint32(id))
	}
	return partKey{sha256.Sum256(text), p.e.tasks[i].kind}
}

// addPart is add, unless what the model says of these tokens was kept: then no row is read for them.
func (p *pass) addPart(i int, reading int32, from, to int) {
	if p.opts.Memo > 0 && !p.e.memo.parts.empty() {
		key := p.partKeyOf(i, reading, int32(from), int32(to))
		if out := p.e.memo.parts.get(&key); out != nil {
			p.reads = append(p.reads, read{
				task: int32(i), next: -1, reading: reading, from: int32(from), to: int32(to),
				out: out, kept: true,
			})
			return
		}
	}
	p.add(i, reading, from, to)
}

// keepParts keeps what was read for signals that have no verdict since the time was up, or the
// client gone. Of the others it lets go of what was kept. why says how the pass ended.
func (p *pass) keepParts(ctx context.Context, why signal.Reason) {
	if p.opts.Memo == 0 {
		return
	}
	ended := ctx.Err() != nil || why == signal.ReasonTimeout || why == signal.ReasonCanceled
	for k := range p.plans {
		plan := &p.plans[k]
		t := &p.e.tasks[plan.task]
		if !t.safety() || plan.failed != signal.ReasonNone {
			continue
		}
		for i := plan.reads.from; i < plan.reads.to; i++ {
			r := &p.reads[i]
			if r.out == nil || plan.known && !r.kept {
				continue
			}
			key := p.partKeyOf(plan.task, r.reading, r.from, r.to)
			switch {
			case plan.known:
				p.e.memo.parts.drop(&key)
			case ended || p.g.late(t.kind):
				p.e.memo.parts.put(&key, r.out, maxPartsBytes)
			}
		}
	}
}
