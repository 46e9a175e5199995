package head

import (
	"math"
	"slices"
	"unicode"
	"unicode/utf8"
)

// MostBytes is the length up to which all n-grams of a text are used; of a longer text those of its
// start and its end.
const MostBytes = 8 << 10

const (
	// minGram and maxGram limit the length of the character n-grams of a word, including the spaces
	// around it.
	minGram, maxGram = 3, 5
	// edge is the number of bytes at either end of a long text from which n-grams are taken.
	edge = MostBytes / 2
	// maxVocabulary is the maximum number of n-grams in a head, the most frequent ones.
	maxVocabulary = 1 << 15
	// leastRows is the minimum number of texts that contain an n-gram of the vocabulary.
	leastRows = 2
)

// gram is a hashed n-gram of words or characters and how often it occurs in a text.
type gram struct {
	hash  uint32
	count uint32
}

// cell is a non-zero feature of a text.
type cell struct {
	at    int32 // index in the vocabulary
	value float32
}

// scratch is working memory of one goroutine.
type scratch struct {
	word  []rune
	grams []gram
	cells []cell
}

// scan sets s.grams to the n-grams of text, in ascending order of hash: words, pairs of words, and
// the n-grams of their characters, in lower case. Of a long text it reads the start and the end.
func (s *scratch) scan(text string) {
	s.grams = s.grams[:0]
	if len(text) <= 2*edge {
		s.words(text)
	} else {
		head, tail := edge, len(text)-edge
		for head > 0 && !utf8.RuneStart(text[head]) {
			head--
		}
		for tail < len(text) && !utf8.RuneStart(text[tail]) {
			tail++
		}
		s.words(text[:head])
		s.words(text[tail:])
	}
	slices.SortFunc(s.grams, func(a, b gram) int { return int(int64(a.hash) - int64(b.hash)) })
	n := 0
	for _, g := range s.grams {
		if n > 0 && s.grams[n-1].hash == g.hash {
			s.grams[n-1].count += g.count
			continue
		}
		s.grams[n] = g
		n++
	}
	s.grams = s.grams[:n]
}

// FNV-1a over code points (http://www.isthe.com/chongo/tech/comp/fnv/), folded to 32 bits. The
// seeds keep words, pairs and n-grams of characters apart.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211

	seedWord = fnvOffset ^ 1
	seedPair = fnvOffset ^ 2
)

func fold(h uint64) uint32 { return uint32(h ^ h>>32) }

// words adds the n-grams of a text. A word is a run of letters, digits and marks; any other visible
// character is a word of its own.
func (s *scratch) words(text string) {
	s.word = append(s.word[:0], ' ')
	before := uint64(0)
	flush := func() {
		if len(s.word) > 1 {
			s.word = append(s.word, ' ')
			before = s.add(before)
			s.word = s.word[:1]
		}
	}
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			s.word = append(s.word, unicode.ToLower(r))
		case unicode.IsSpace(r), unicode.IsControl(r):
			flush()
		default:
			flush()
			s.word = append(s.word, r)
			flush()
		}
	}
	flush()
}

// add adds the n-grams of the word between spaces in s.word, and its pair with the previous word,
// whose hash is before; 0 for none. It returns the hash of the word.
func (s *scratch) add(before uint64) uint64 {
	h := uint64(seedWord)
	for _, r := range s.word[1 : len(s.word)-1] {
		h = (h ^ uint64(r)) * fnvPrime
	}
	s.grams = append(s.grams, gram{fold(h), 1})
	if before != 0 {
		s.grams = append(s.grams, gram{fold(((seedPair^before)*fnvPrime ^ h) * fnvPrime), 1})
	}
	for i := range s.word {
		g := uint64(fnvOffset)
		for n := 1; n <= maxGram && i+n <= len(s.word); n++ {
			g = (g ^ uint64(s.word[i+n-1])) * fnvPrime
			if n >= minGram {
				s.grams = append(s.grams, gram{fold(g), 1})
			}
		}
	}
	return h
}

// vocabulary is the n-grams that a head uses. It is immutable.
type vocabulary struct {
	hashes []uint32  // ascending
	idf    []float32 // parallel: inverse document frequency, smoothed
}

// learn makes the vocabulary of texts, given by their n-grams.
func learn(rows [][]gram) vocabulary {
	df := make(map[uint32]int)
	for _, row := range rows {
		for _, g := range row {
			df[g.hash]++
		}
	}
	var v vocabulary
	for h, n := range df {
		if n >= leastRows {
			v.hashes = append(v.hashes, h)
		}
	}
	slices.Sort(v.hashes)
	if len(v.hashes) > maxVocabulary {
		slices.SortStableFunc(v.hashes, func(a, b uint32) int { return df[b] - df[a] })
		v.hashes = v.hashes[:maxVocabulary]
		slices.Sort(v.hashes)
	}
	for _, h := range v.hashes {
		// Manning, Raghavan, Schütze, "Introduction to Information Retrieval", section 6.2.1,
		// smoothed as if one more text had every n-gram.
		v.idf = append(v.idf, float32(math.Log(float64(1+len(rows))/float64(1+df[h]))+1))
	}
	return v
}

// weigh appends the features of a text to dst: sublinear term frequency times inverse document
// frequency, normalised to length 1; none if no n-gram is known.
func (v *vocabulary) weigh(dst []cell, grams []gram) []cell {
	from, sum, at := len(dst), 0.0, 0
	for _, g := range grams {
		i, ok := slices.BinarySearch(v.hashes[at:], g.hash)
		if at += i; !ok {
			continue
		}
		w := (1 + math.Log(float64(g.count))) * float64(v.idf[at])
		sum += w * w
		dst = append(dst, cell{int32(at), float32(w)})
	}
	if sum > 0 {
		scale := float32(1 / math.Sqrt(sum))
		for i := range dst[from:] {
			dst[from+i].value *= scale
		}
	}
	return dst
}
