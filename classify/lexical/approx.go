package lexical

import (
	"context"
	"unicode/utf8"
)

// approx finds one phrase with up to edits edits, bit-parallel: bit i of state j means that the
// first i characters of the phrase match the text up to here with at most j edits (Wu and Manber,
// "Fast Text Searching Allowing Errors", CACM 35(10), 1992). Time is linear in the text.
type approx struct {
	set    int
	edits  int
	accept uint64                // bit of the whole phrase
	ascii  [utf8.RuneSelf]uint64 // by character, the bits it can advance to
	other  map[rune]uint64
}

func newApprox(phrase string, edits, set int) approx {
	a := approx{set: set, edits: edits, other: make(map[rune]uint64)}
	bit := uint64(1)
	for _, r := range phrase {
		bit <<= 1
		if r < utf8.RuneSelf {
			a.ascii[r] |= bit
		} else {
			a.other[r] |= bit
		}
	}
	a.accept = bit
	return a
}

// in reports whether text, folded like the phrase, contains it from boundary to boundary. Its error
// is that of ctx.
func (a *approx) in(ctx context.Context, text []byte) (bool, error) {
	var state [MaxFuzzy + 1]uint64
	a.start(&state)
	look := 0
	for i := 0; i < len(text); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			look = i + bytesPerLook
		}
		r, n := rune(text[i]), 1
		var mask uint64
		if r < utf8.RuneSelf {
			mask = a.ascii[r]
		} else {
			r, n = utf8.DecodeRune(text[i:])
			mask = a.other[r]
		}
		i += n
		before := state[0]
		state[0] = before << 1 & mask
		for j := 1; j <= a.edits; j++ {
			old := state[j]
			inserted, replaced, deleted := before, before<<1, state[j-1]<<1
			state[j] = old<<1&mask | inserted | replaced | deleted
			before = old
		}
		if state[a.edits]&a.accept != 0 && ends(text, i) {
			return true, nil
		}
		if boundary(text, i) {
			a.start(&state)
		}
	}
	return false, nil
}

// start lets the phrase begin here.
func (a *approx) start(state *[MaxFuzzy + 1]uint64) {
	state[0] |= 1
	for j := 1; j <= a.edits; j++ {
		state[j] |= state[j-1] | state[j-1]<<1
	}
}
