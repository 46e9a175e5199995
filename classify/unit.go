package classify

import (
	"context"
	"strings"
	"sync"

	"signalbox/classify/origin"
	"signalbox/internal/signal"
)

// unit is a text that the safety signals read by itself, so that what they say of it depends on
// nothing else: a segment, or what a user's message shows.
type unit struct {
	segment int
	origin  signal.Origin
	kinds   signal.Mask // the signals that read it
	text    string
	pieces  []piece // where the text is in the segment; none: it is the segment
	tongue  tongue  // told only where a source wants to know

	mu      sync.Mutex // guards what follows
	twinned bool
	twin    string // the normalised form; empty when there is nothing else to read
	summed  bool
	sum     digest
}

// piece is a part of a unit's text and where it is in the segment.
type piece struct{ at, start, end int }

// layUnits makes the units that the kinds of need read. Its error is that of ctx.
func (r *request) layUnits(ctx context.Context, need signal.Mask) error {
	r.units = make([]unit, 0, len(r.text.Segments)+1)
	var parts []origin.Part
	for i := range r.text.Segments {
		s := &r.text.Segments[i]
		if i&63 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if s.Text == "" {
			continue
		}
		r.unit(i, s.Origin, need)
		if s.Origin != signal.OriginUser || r.readers(signal.OriginData, need) == 0 {
			continue
		}
		var err error
		if parts, err = origin.Split(ctx, s.Text, parts[:0]); err != nil {
			return err
		}
		r.shown(i, need, parts)
	}
	if r.tongues.memo != nil {
		return r.tellLanguages(ctx)
	}
	return nil
}

// unit adds a segment as it is.
func (r *request) unit(segment int, o signal.Origin, need signal.Mask) {
	if kinds := r.readers(o, need) | need&^attackKinds&safetyKinds; kinds != 0 {
		text := r.text.Segments[segment].Text
		r.units = append(r.units, unit{segment: segment, origin: o, kinds: kinds, text: text})
	}
}

// shown adds what a message of the user shows, a line for each part that is data.
func (r *request) shown(segment int, need signal.Mask, parts []origin.Part) {
	kinds := r.readers(signal.OriginData, need)
	if kinds == 0 {
		return
	}
	text := r.text.Segments[segment].Text
	var pieces []piece
	var b strings.Builder
	for _, p := range parts {
		if p.Origin != signal.OriginData || strings.TrimSpace(text[p.Start:p.End]) == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		pieces = append(pieces, piece{b.Len(), p.Start, p.End})
		b.WriteString(text[p.Start:p.End])
	}
	if len(pieces) > 0 {
		r.units = append(r.units, unit{
			segment: segment, origin: signal.OriginData, kinds: kinds, text: b.String(),
			pieces: pieces,
		})
	}
}

// readers returns the signals of need about attacks that read text of origin o.
func (r *request) readers(o signal.Origin, need signal.Mask) signal.Mask {
	var m signal.Mask
	for _, k := range (need & attackKinds).Kinds() {
		if r.origins.read[k].Has(o) {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// normalised returns the twin of the unit's text, empty when it has nothing else to read. Its error
// is that of ctx.
func (u *unit) normalised(ctx context.Context) (string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.twinned {
		t, changed, err := twinOf(ctx, u.text)
		if err != nil {
			return "", err
		}
		if u.twinned = true; changed {
			u.twin = t
		}
	}
	return u.twin, nil
}

// digest returns the hash of the unit's text. Its error is that of ctx.
func (u *unit) digest(ctx context.Context) (digest, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.summed {
		sum, err := digestOf(ctx, u.text)
		if err != nil {
			return digest{}, err
		}
		u.sum, u.summed = sum, true
	}
	return u.sum, nil
}

// place returns where text[from:to] of the unit is in the segment: as much of it as is in one
// piece.
func (u *unit) place(from, to int) (start, end int) {
	if len(u.pieces) == 0 {
		return from, to
	}
	p := u.pieces[0]
	for _, next := range u.pieces[1:] {
		if next.at > from {
			break
		}
		p = next
	}
	start = min(p.start+from-p.at, p.end)
	return start, min(max(p.start+to-p.at, start), p.end)
}
