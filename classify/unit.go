package classify

import (
	"context"
	"strings"
	"sync"

	"signalbox/classify/origin"
	"signalbox/classify/pii"
	"signalbox/internal/signal"
)

// unit is a text that the safety signals read separately, so that the verdict depends on no other
// text: a segment, or the pasted parts of a user's message.
type unit struct {
	segment int
	origin  signal.Origin
	kinds   signal.Mask // the signals that read it
	text    string
	pieces  []piece        // positions of the text in the segment; empty if the unit is the segment
	tongue  tongue         // determined only if a source needs it
	plain   *pii.Unescaped // set if text is the segment with its \u escapes decoded

	mu      sync.Mutex // guards the fields below
	twinned bool
	twin    string // the normalised form; empty if it does not differ
	summed  bool
	sum     digest
}

// piece is a part of a unit's text and its position in the segment.
type piece struct{ at, start, end int }

// layUnits makes the units for the kinds of need. Its error is that of ctx.
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

// unit adds a segment, except text that programs put into a message of the user, which says nothing
// about attacks.
func (r *request) unit(segment int, o signal.Origin, need signal.Mask) {
	text := r.text.Segments[segment].Text
	attacks, others := r.readers(o, need), need&^attackKinds&safetyKinds
	if attacks != 0 && o == signal.OriginUser {
		if own, found := origin.Own(text, nil); found {
			r.join(segment, o, attacks, own)
			attacks = 0
		}
	}
	if others != 0 {
		if plain, ok := pii.Unescape(text); ok {
			r.units = append(r.units, unit{segment: segment, origin: o, kinds: others, text: plain.Text(), plain: plain})
			others = 0
		}
	}
	if kinds := attacks | others; kinds != 0 {
		r.units = append(r.units, unit{segment: segment, origin: o, kinds: kinds, text: text})
	}
}

// shown adds the pasted parts of a user's message, one line for each part that is data.
func (r *request) shown(segment int, need signal.Mask, parts []origin.Part) {
	kinds := r.readers(signal.OriginData, need)
	if kinds == 0 {
		return
	}
	text := r.text.Segments[segment].Text
	var data [][2]int
	for _, p := range parts {
		if p.Origin != signal.OriginData || strings.TrimSpace(text[p.Start:p.End]) == "" {
			continue
		}
		own, found := origin.Own(text[p.Start:p.End], nil)
		for _, at := range own {
			data = append(data, [2]int{p.Start + at[0], p.Start + at[1]})
		}
		if !found {
			data = append(data, [2]int{p.Start, p.End})
		}
	}
	r.join(segment, signal.OriginData, kinds, data)
}

// join adds several places of a segment as one text, one line for each.
func (r *request) join(segment int, o signal.Origin, kinds signal.Mask, places [][2]int) {
	if len(places) == 0 {
		return
	}
	text := r.text.Segments[segment].Text
	pieces := make([]piece, len(places))
	var b strings.Builder
	for i, p := range places {
		if i > 0 {
			b.WriteByte('\n')
		}
		pieces[i] = piece{b.Len(), p[0], p[1]}
		b.WriteString(text[p[0]:p[1]])
	}
	r.units = append(r.units, unit{
		segment: segment, origin: o, kinds: kinds, text: b.String(), pieces: pieces,
	})
}

// readers returns the signals about attacks in need that read text of origin o.
func (r *request) readers(o signal.Origin, need signal.Mask) signal.Mask {
	var m signal.Mask
	for _, k := range (need & attackKinds).Kinds() {
		if r.origins.read[k].Has(o) {
			m |= signal.MaskOf(k)
		}
	}
	return m
}

// normalised returns the twin of the unit's text, empty if it does not differ. Its error is that of
// ctx.
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

// digest returns the digest of the unit's text. Its error is that of ctx.
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

// place returns the position in the segment of the unit's text[from:to], limited to the piece in
// which it begins.
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
