package classify

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"

	"signalbox/internal/signal"
)

const (
	// partBytes is the size of a part in addition to the model's output.
	partBytes = 250
	// maxPartsBytes limits the parts of a bundle. A window of 256 tokens takes 37 KiB for personal
	// data of 18 types and some 10 bytes for an attack. The limit thus holds some 900 windows, more
	// than one core reads in three times the default timeout.
	maxPartsBytes = 32 << 20
)

// partKey identifies a window of a text and the signal that read it. Like digest it is
// collision-resistant: it is the SHA-256 of the model's input.
type partKey struct {
	tokens digest
	kind   signal.Kind
}

// part is the model's output for a window of a text that got no verdict because time ran out. A
// repeated request continues from there. A part does not identify the sender. The parts of a text
// are dropped once it has a verdict.
type part struct{ out []float32 }

func (p *part) bytes() int { return partBytes + 4*len(p.out) }

// partKeyOf returns the key of tokens [from,to) of a reading, as task i reads them.
func (p *pass) partKeyOf(i int, reading, from, to int32) partKey {
	ids := p.readings[reading].enc.IDs[from:to]
	text := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		text = binary.LittleEndian.AppendUint32(text, uint32(id))
	}
	return partKey{sha256.Sum256(text), p.e.tasks[i].kind}
}

// addPart is add, except that no row is added if the model's output for these tokens was kept.
func (p *pass) addPart(i int, reading int32, from, to int) {
	if p.opts.Memo > 0 && !p.e.memo.parts.empty() {
		key := p.partKeyOf(i, reading, int32(from), int32(to))
		if known, ok := p.e.memo.parts.get(key); ok {
			p.reads = append(p.reads, read{
				task: int32(i), next: -1, reading: reading, from: int32(from), to: int32(to),
				out: known.out, kept: true, // shared; must not be modified
			})
			return
		}
	}
	p.add(i, reading, from, to)
}

// keepParts keeps the outputs for signals that got no verdict because time ran out or the client
// disconnected, and drops the kept outputs of all others. why is the reason for which the pass
// ended.
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
				p.e.memo.parts.drop(key)
			case ended || p.g.late(t.kind):
				// A copy, so that the outputs for other rows of the same run are not retained with
				// it.
				p.e.memo.parts.put(key, &part{slices.Clone(r.out)}, math.MaxInt, maxPartsBytes)
			}
		}
	}
}
