package page

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/ledger"
)

// model is what a pager promises, without saying when it pages: which objects it has to have, and
// where they may be.
type model struct {
	raw   map[blob.Sum][]byte
	owed  map[blob.Sum]bool // unsafe ones that must not be lost
	inL3  map[blob.Sum]bool
	users map[blob.Sum][]Held
	goes  map[blob.Sum]bool // forgotten under a user
}

// TestTiersAgainstAModel runs random operations and compares what comes back with a map.
func TestTiersAgainstAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		clock := testkit.NewClock()
		l3 := rapid.SampledFrom([]home{ramOnly, withL3}).Draw(r, "l3")
		s := &shelf{packed: map[blob.Sum][]byte{}}
		var source Source
		if l3 == withL3 {
			source = s
		}
		p, err := New(Options{Bytes: int64(rapid.IntRange(4_000, 200_000).Draw(r, "bound")), Now: clock.Now}, source)
		if err != nil {
			r.Fatal(err)
		}
		m := model{map[blob.Sum][]byte{}, map[blob.Sum]bool{}, map[blob.Sum]bool{}, map[blob.Sum][]Held{}, map[blob.Sum]bool{}}
		var objects []ledger.Object
		for i := range 8 {
			raw := text(fmt.Sprint("object ", i), 500+700*i+i/6*blob.Small) // the last two are packed loosely
			_, o, _ := object(raw)
			objects = append(objects, o)
			m.raw[o.Sum] = raw
		}
		r.Repeat(map[string]func(*rapid.T){
			"": func(r *rapid.T) { check(r, p) },
			"add": func(r *rapid.T) {
				o := rapid.SampledFrom(objects).Draw(r, "object")
				m.add(r, p, s, o, min(l3, rapid.SampledFrom([]home{ramOnly, withL3}).Draw(r, "safe")))
			},
			"get": func(r *rapid.T) {
				h, ok := m.get(r, p, rapid.SampledFrom(objects).Draw(r, "object"), l3)
				if !ok {
					return
				}
				if sum := h.e.object.Sum; len(m.users[sum]) < 3 && rapid.Bool().Draw(r, "hold") {
					m.users[sum] = append(slices.Clip(m.users[sum]), h)
					return
				}
				h.Release()
			},
			"release": func(r *rapid.T) {
				o := rapid.SampledFrom(objects).Draw(r, "object")
				for _, h := range m.users[o.Sum] {
					if !bytes.Equal(h.Bytes, m.raw[o.Sum]) {
						r.Fatal("bytes changed under a user")
					}
					h.Release()
				}
				delete(m.users, o.Sum)
				if m.goes[o.Sum] {
					delete(m.goes, o.Sum)
					delete(m.owed, o.Sum)
				}
			},
			"forget": func(r *rapid.T) {
				o := rapid.SampledFrom(objects).Draw(r, "object")
				p.Forget(Key{tenant, o.Sum})
				if len(m.users[o.Sum]) > 0 {
					m.goes[o.Sum] = m.owed[o.Sum]
					return
				}
				delete(m.owed, o.Sum)
			},
			"page out": func(r *rapid.T) {
				o := rapid.SampledFrom(objects).Draw(r, "object")
				to := rapid.SampledFrom([]Tier{L2, L3}).Draw(r, "to")
				got := p.PageOut(Key{tenant, o.Sum}, to)
				if len(m.users[o.Sum]) == 0 && got > L2 {
					r.Fatalf("paged out to %v and now in %v", to, got)
				}
			},
			"tighten": func(r *rapid.T) {
				l, ok := p.Loose()
				if !ok {
					return
				}
				packed, err := blob.Repack(l.Packed, l.Object.Size, l.Object.Sum)
				if err != nil {
					r.Fatal(err)
				}
				if l.Safe {
					s.put(l.Object, packed)
				}
				if rapid.Bool().Draw(r, "used meanwhile") {
					if h, ok := m.get(r, p, l.Object, l3); ok {
						h.Release()
					}
				}
				p.Replace(l, packed)
			},
			"pin": func(r *rapid.T) {
				o := rapid.SampledFrom(objects).Draw(r, "object")
				p.Care(Key{tenant, o.Sum}, Care{PinUntil: clock.Now().Add(time.Minute)})
			},
			"wait": func(r *rapid.T) {
				clock.Pass(time.Duration(rapid.IntRange(1, 400).Draw(r, "seconds")) * time.Second)
				p.Idle()
			},
		})
		for _, held := range m.users {
			for _, h := range held {
				h.Release()
			}
		}
		check(r, p)
	})
}

func (m *model) add(r *rapid.T, p *Pager, s *shelf, o ledger.Object, is home) {
	k, _, packed := object(m.raw[o.Sum])
	safe := is == withL3
	if safe {
		s.put(o, packed)
		m.inL3[o.Sum] = true
	}
	err := p.Add(k, Copy{o, m.raw[o.Sum], packed, safe}, Care{})
	switch {
	case err == nil && !safe && !m.inL3[o.Sum]:
		m.owed[o.Sum] = true
		delete(m.goes, o.Sum)
	case err == nil:
		delete(m.goes, o.Sum)
	case !errors.Is(err, ErrFull) || safe:
		r.Fatalf("add: %v", err)
	}
}

func (m *model) get(r *rapid.T, p *Pager, o ledger.Object, l3 home) (Held, bool) {
	before := p.Tier(Key{tenant, o.Sum})
	h, err := p.Get(r.Context(), tenant, o, Care{})
	if err != nil {
		if m.owed[o.Sum] || (l3 == withL3 && m.inL3[o.Sum]) {
			r.Fatalf("an object was lost: %v", err)
		}
		return Held{}, false
	}
	if !bytes.Equal(h.Bytes, m.raw[o.Sum]) {
		r.Fatal("wrong bytes")
	}
	if h.Tier != before {
		r.Fatalf("came from %v and was in %v", h.Tier, before)
	}
	return h, true
}
