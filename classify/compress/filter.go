package compress

import (
	"math/bits"
	"strings"
)

// Stage 2, words: every piece is read once, word by word. Its content goes into terms and cues, its
// structure into a sketch that near-duplicates share.

// term is the hash of a content word: not a function word, not a number. In scripts without spaces
// it is the hash of two consecutive characters.
type term uint32

// sketchSize is the number of minima of shingle hashes in a sketch, in two bands. Two pieces that
// share the part j of their shingles (two words in a row) have a band in common with probability
// 1-(1-j^3)^2: .93 at nine tenths, .23 at half. A. Broder, "On the resemblance and containment of
// documents", SEQUENCES 1997; bands as in A. Rajaraman and J. Ullman, "Mining of Massive Datasets",
// section 3.4.
const sketchSize = 6

// salts make sketchSize hashes of one: odd numbers without structure.
//
//nolint:gochecknoglobals // constant table
var salts = [sketchSize]uint32{0x9e3779b1, 0x85ebca77, 0xc2b2ae3d, 0x27d4eb2f, 0x165667b1, 0xd3a2646d}

// wordsPerSentence is the number of function words from which a sentence counts as written by a
// person.
const wordsPerSentence = 3

// filter is stage 2. It reports whether it was completed.
func (f *funnel) filter() bool {
	f.terms = make([]term, 0, len(f.text)/bytesPerTerm)
	r := reader{funnel: f, lexicon: words(), seen: newHashSet(2 * len(f.pieces))}
	for i := range f.pieces {
		if f.ended() {
			return false
		}
		p := &f.pieces[i]
		if p.marks&encoded != 0 {
			p.tokens = int32(p.end - p.start)
			f.hollow++
			continue
		}
		r.read(p)
		switch {
		case p.terms.from == p.terms.to && p.cues == 0:
			p.marks |= hollow
			f.hollow++
		case r.repeats(p):
			p.marks |= repeated
			f.duplicates++
			f.terms, p.terms.to = f.terms[:p.terms.from], p.terms.from
		}
	}
	return true
}

// bytesPerTerm sizes the first allocation.
const bytesPerTerm = 8

// reader reads the pieces in order.
type reader struct {
	*funnel

	lexicon *lexicon
	seen    hashSet

	chain     uint32 // the phrase that the last words may begin, 0 for none
	chainAt   int    // index of its first word
	words     int    // number of words read in this piece, without punctuation
	opens     int    // index of the first word of this clause
	functions int    // number of function words
	tongs     [len(languages)]uint8
	shingle   uint32 // hash of the last word
	sketch    [sketchSize]uint32
	glyphs    int // start of the last glyph that has content and ends where the next word starts
}

// read processes the words of p.
func (r *reader) read(p *piece) {
	r.chain, r.words, r.opens, r.functions, r.shingle, r.glyphs = 0, 0, 0, 0, 0, -1
	clear(r.tongs[:])
	for i := range r.sketch {
		r.sketch[i] = ^uint32(0)
	}
	p.terms.from = int32(len(r.terms))
	last := word{}
	for at := p.start; ; {
		for at < p.end && classes[r.text[at]] <= classSpace {
			r.markOrSpace(p, at)
			at++
		}
		w, ok := nextWord(r.text, at, p.end)
		if !ok {
			break
		}
		at = w.end
		p.tokens += w.tokens(r.text)
		if r.glyphs >= 0 && (w.kind != glyph || w.start != last.end) {
			r.glyphs = -1
		}
		r.take(p, &w)
		last = w
	}
	p.terms.to = int32(len(r.terms))
	if last.kind == mark && last.end == p.end && isQuestion(r.text[last.start:last.end]) {
		p.cues |= asks
	}
	if r.functions >= wordsPerSentence {
		p.cues |= worded
	}
	p.language = r.language()
	p.cues = p.cues.pairs()
}

// markOrSpace processes the ASCII punctuation or white space at text[at], the usual separators of
// words.
func (r *reader) markOrSpace(p *piece, at int) {
	r.glyphs = -1
	c := r.text[at]
	if classes[c] == classSpace {
		return
	}
	p.tokens++
	switch c {
	case '@':
		p.cues |= reach
	case ':':
		if strings.HasPrefix(r.text[at:p.end], "://") {
			p.cues |= reach
		}
		r.opens = r.words
	case '?':
		if at+1 == p.end {
			p.cues |= asks
		}
		r.opens = r.words
	case '.', ',', ';', '!', '"':
		r.opens = r.words
	}
}

// isQuestion reports whether mark is a question mark of another script.
func isQuestion(mark string) bool { return mark == "\uff1f" || mark == "\u061f" }

// take adds w to p's terms, cues and sketch.
func (r *reader) take(p *piece, w *word) {
	switch w.kind {
	case mark:
		return
	case number:
		p.cues |= figures
		r.chain = 0
		return
	case alnum:
		if w.runes <= longestCode && !isDigit(r.text[w.start]) {
			r.terms = append(r.terms, term(w.hash))
		}
		r.chain = 0
		return
	case letter, glyph:
	}
	function := r.look(p, w)
	r.words++
	r.addShingle(w.hash)
	switch {
	case function:
		r.functions++
		r.glyphs = -1
	case w.kind != glyph:
		if w.runes > 1 {
			r.terms = append(r.terms, term(w.hash))
		}
		if w.capital && r.words > 1 && !w.joined {
			p.cues |= named
		}
	default:
		if r.glyphs >= 0 {
			r.terms = append(r.terms, term(hashOf(r.text[r.glyphs:w.end])))
		}
		r.glyphs = w.start
	}
}

// longestCode is the maximum length, in characters, of a word with digits that may have a meaning:
// utf8 and CO2 do, an id or a time does not.
const longestCode = 6

// look adds the cues that end with w, and reports whether w is a function word.
func (r *reader) look(p *piece, w *word) (function bool) {
	key := w.hash | 1
	e := r.lexicon.find(key)
	if e != nil && e.tongs != 0 {
		function = true
		for m := e.tongs; m != 0; m &= m - 1 {
			r.tongs[bits.TrailingZeros32(m)]++
		}
	}
	if w.runes >= stemRunes {
		if s := r.lexicon.find(link(0, w.stem^stemSalt)); s != nil {
			r.cue(p, s.cues, r.words)
		}
	}
	if e != nil {
		r.cue(p, e.cues, r.words)
	}
	if c := r.follow(w.hash); c != nil {
		r.cue(p, c.cues, r.chainAt)
		if c.next {
			r.chain = c.key
			return function
		}
	}
	r.chain = 0
	if e != nil && e.next {
		r.chain, r.chainAt = key, r.words
	}
	return function
}

// follow returns the entry of the phrase made of the last words and the word with hash h, or nil.
func (r *reader) follow(h uint32) *entry {
	if r.chain == 0 {
		return nil
	}
	return r.lexicon.find(link(r.chain, h))
}

// cue adds cues of a phrase whose first word has index at in p.
func (r *reader) cue(p *piece, c cueSet, at int) {
	if at != r.opens {
		c &^= firstOnly
	}
	if c&asker != 0 {
		c = c&^asker | asks
	}
	p.cues |= c
}

// addShingle adds the last word and the one with hash h to the sketch.
func (r *reader) addShingle(h uint32) {
	both := mix(bits.RotateLeft32(r.shingle, 7) ^ h)
	r.shingle = h
	for i, salt := range salts {
		r.sketch[i] = min(r.sketch[i], mix32(both, salt))
	}
}

// mix32 is a family of hashes, selected by salt.
func mix32(h, salt uint32) uint32 {
	h *= salt
	return h ^ h>>15
}

// language returns the language with the most function words, if there are enough and the result is
// clear, else 0.
func (r *reader) language() uint8 {
	best, second, at := uint8(0), uint8(0), 0
	for i, n := range r.tongs {
		if n > best {
			best, second, at = n, best, i
		} else {
			second = max(second, n)
		}
	}
	if best < wordsPerSentence || best == second {
		return 0
	}
	return uint8(at + 1)
}

// repeats reports whether p is nearly the same as an earlier piece. Pieces with different cues
// never are.
func (r *reader) repeats(p *piece) bool {
	const band = sketchSize / 2
	again := false
	for b := range sketchSize / band {
		h := uint64(p.cues&^(named|figures))<<32 | uint64(b+1)
		for _, m := range r.sketch[b*band : (b+1)*band] {
			h = (h ^ uint64(m)) * fnvPrime64
			h ^= h >> 29
		}
		if !r.seen.add(h) {
			again = true
		}
	}
	return again
}

// fnvPrime64 is the multiplier of the 64-bit FNV-1a hash.
const fnvPrime64 uint64 = 1099511628211

// hashSet is a set of hashes with open addressing: at most half of a power of two of slots is used.
type hashSet struct {
	slots []uint64
	mask  uint64
}

func newHashSet(n int) hashSet {
	size := uint64(1) << bits.Len(uint(2*n))
	return hashSet{slots: make([]uint64, size), mask: size - 1}
}

// add adds h and reports whether it was new.
func (s *hashSet) add(h uint64) bool {
	h |= 1
	for i := h >> 20 & s.mask; ; i = (i + 1) & s.mask {
		switch s.slots[i] {
		case 0:
			s.slots[i] = h
			return true
		case h:
			return false
		}
	}
}
