package knn

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

const (
	minGram, maxGram = 2, 5
	gramBits         = 18
	// gramEdge is the number of bytes at either end of a long text from which n-grams are taken:
	// examples are sentences, and the subject of a request is at its start or end.
	gramEdge = 1 << 10
)

// gram is a hashed character n-gram of a text and how often it occurs there.
type gram struct {
	hash  uint32 // in [0, 1<<gramBits)
	count uint32
}

// appendGrams appends the n-grams of text to dst, in ascending order of hash. Words are split at
// white space, in lower case, with one space at either end. *buf is scratch space.
func appendGrams(dst []gram, text string, buf *[]rune) []gram {
	if len(text) <= 2*gramEdge {
		return countGrams(appendWords(dst, text, buf), len(dst))
	}
	head, tail := gramEdge, len(text)-gramEdge
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	n := len(dst)
	dst = appendWords(dst, text[:head], buf)
	return countGrams(appendWords(dst, text[tail:], buf), n)
}

// appendWords appends the n-grams of the words of text, each with count 1.
func appendWords(dst []gram, text string, buf *[]rune) []gram {
	word := *buf
	word = append(word[:0], ' ')
	for _, r := range text {
		if !unicode.IsSpace(r) {
			word = append(word, unicode.ToLower(r))
			continue
		}
		dst = appendWord(dst, append(word, ' '))
		word = word[:1]
	}
	dst = appendWord(dst, append(word, ' '))
	*buf = word[:0]
	return dst
}

// appendWord appends the n-grams of a word between spaces, for every n that fits.
func appendWord(dst []gram, word []rune) []gram {
	if len(word) == 2 {
		return dst
	}
	for i := range word {
		// FNV-1a over code points (http://www.isthe.com/chongo/tech/comp/fnv/), folded to gramBits.
		h := uint64(14695981039346656037)
		for n := 1; n <= maxGram && i+n <= len(word); n++ {
			h = (h ^ uint64(word[i+n-1])) * 1099511628211
			if n >= minGram {
				dst = append(dst, gram{uint32(h^h>>gramBits^h>>(2*gramBits)) & (1<<gramBits - 1), 1})
			}
		}
	}
	return dst
}

// countGrams sorts grams[from:] and merges equal ones.
func countGrams(grams []gram, from int) []gram {
	part := grams[from:]
	slices.SortFunc(part, func(a, b gram) int { return int(a.hash) - int(b.hash) })
	n := 0
	for _, g := range part {
		if n > 0 && part[n-1].hash == g.hash {
			part[n-1].count += g.count
			continue
		}
		part[n] = g
		n++
	}
	return grams[:from+n]
}

// posting is an example that contains an n-gram, with the n-gram's weight in it.
type posting struct {
	row    uint32
	weight float32
}

// inverted lists, for each n-gram, the rows that contain it. Rows are L2-normalised, so that a dot
// product is a cosine.
type inverted struct {
	idf   []float32 // by n-gram
	start []uint32  // by n-gram, the start of its postings; one more at the end
	posts []posting
}

// newInverted indexes rows. Document frequencies count the first documents rows, extra and abroad.
// abroad has n-grams that the others lack and does not count as documents.
func newInverted(rows []*example, documents int, extra, abroad []*example) inverted {
	v := inverted{idf: make([]float32, 1<<gramBits), start: make([]uint32, 1<<gramBits+1)}
	df := make([]uint32, 1<<gramBits)
	for _, e := range rows {
		for _, g := range e.grams {
			v.start[g.hash+1]++
		}
	}
	for _, list := range [][]*example{rows[:documents], extra, abroad} {
		for _, e := range list {
			for _, g := range e.grams {
				df[g.hash]++
			}
		}
	}
	docs := float64(1 + documents + len(extra))
	for h, n := range df {
		v.idf[h] = float32(math.Log(docs/float64(1+n)) + 1)
		v.start[h+1] += v.start[h]
	}
	next := slices.Clone(v.start)
	v.posts = make([]posting, v.start[1<<gramBits])
	for row, e := range rows {
		scale := v.scale(e.grams)
		for _, g := range e.grams {
			v.posts[next[g.hash]] = posting{uint32(row), scale * v.weight(g)}
			next[g.hash]++
		}
	}
	return v
}

// weight returns sublinear term frequency times inverse document frequency (Manning, Raghavan,
// Schütze, "Introduction to Information Retrieval", section 6.4.1), smoothed.
func (v *inverted) weight(g gram) float32 {
	w := v.idf[g.hash]
	if g.count > 1 {
		w *= float32(1 + math.Log(float64(g.count)))
	}
	return w
}

// scale returns the factor that normalises the weights of grams to length one; 0 without grams.
func (v *inverted) scale(grams []gram) float32 {
	sum := 0.0
	for _, g := range grams {
		w := float64(v.weight(g))
		sum += w * w
	}
	if sum == 0 {
		return 0
	}
	return float32(1 / math.Sqrt(sum))
}

// addTo adds to out, for every row, the cosine of grams and the row.
func (v *inverted) addTo(out []float32, grams []gram) {
	scale := v.scale(grams)
	for _, g := range grams {
		posts := v.posts[v.start[g.hash]:v.start[g.hash+1]]
		if len(posts) == 0 {
			continue
		}
		w := scale * v.weight(g)
		for _, p := range posts {
			out[p.row] += w * p.weight
		}
	}
}

// addBetween is addTo for the rows [from, to) only; out begins with row from.
func (v *inverted) addBetween(out []float32, grams []gram, from, to int) {
	scale := v.scale(grams)
	for _, g := range grams {
		posts := v.posts[v.start[g.hash]:v.start[g.hash+1]] // ascending by row
		first, _ := slices.BinarySearchFunc(posts, from, func(p posting, row int) int { return int(p.row) - row })
		w := scale * v.weight(g)
		for _, p := range posts[first:] {
			if int(p.row) >= to {
				break
			}
			out[int(p.row)-from] += w * p.weight
		}
	}
}
