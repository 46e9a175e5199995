package tools

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// partsOfTurn is the maximum number of parts of a user's message that are compared separately.
	partsOfTurn = 8
	// calledLately is the number of most recently called tools that favour similar ones.
	calledLately = 4
	// besideWeight is the weight of what the model said before and of the tools that it called,
	// relative to what the user says.
	besideWeight = .3
)

// Moment is the state of a conversation when its user speaks.
type Moment struct {
	Parts  []Turn   // parts of what the user says; see Parts
	Before Turn     // what the model said before
	Called []string // names of the functions called before, in order
}

// Fit selects forms of tools that take at most a share of the list's tokens: first the n best
// matches whole, then further ones brief, in the order of how well they match, until the share is
// used. Entries that are not functions are kept whole and counted first. The best match, and those
// for which must is true, are kept even if they exceed the share, whole unless they were selected
// as brief. It returns nil if there is no basis for a choice. vectors are as in Pick.
func (l *List) Fit(m *Moment, vectors [][]float32, n int, share float64, must func(name string) bool) []Form {
	scores, told := l.scores(m.Parts, vectors)
	if m.Before.Text != "" {
		said, ok := l.likeness([]Turn{m.Before}, vectors)
		told = told || ok
		for i := range scores {
			scores[i] += besideWeight * said[i]
		}
	}
	if !told {
		return nil
	}
	if near := l.nearCalled(m.Called, vectors); near != nil {
		addStandard(scores, near, besideWeight)
	}
	left := 0.0
	for _, c := range l.costs[0] {
		left += share * float64(c)
	}
	forms := make([]Form, l.Len())
	for i, name := range l.names {
		if name == "" {
			forms[i] = Whole
			left -= float64(l.costs[0][i])
		}
	}
	for k, i := range best(scores, l.Len(), l.isFunction) {
		form, price := Brief, l.costs[1][i]
		if k < n {
			form, price = Whole, l.costs[0][i]
		}
		if left -= float64(price); left < 0 && k > 0 {
			break
		}
		forms[i] = form
	}
	for i, name := range l.names {
		if name != "" && forms[i] == Away && must(name) {
			forms[i] = Whole
		}
	}
	return forms
}

// nearCalled returns how similar the tools are to those called last; nil if unknown.
func (l *List) nearCalled(called []string, vectors [][]float32) []float64 {
	if !known(vectors) {
		return nil
	}
	at := l.lately(called)
	if at == nil {
		return nil
	}
	near := make([]float64, l.Len())
	for i, v := range vectors {
		near[i] = math.Inf(-1)
		for _, j := range at {
			near[i] = max(near[i], dot(v, vectors[j]))
		}
	}
	return near
}

// lately returns the indices of the tools called last, each once.
func (l *List) lately(called []string) (at []int) {
	if len(called) == 0 {
		return nil
	}
	first := make(map[string]int, l.Len())
	for i, name := range slices.Backward(l.names) {
		first[name] = i
	}
	for _, name := range slices.Backward(called) {
		if i, ok := first[name]; ok && !slices.Contains(at, i) {
			if at = append(at, i); len(at) == calledLately {
				break
			}
		}
	}
	return at
}

// kinds are things that a text can mention without their name, with the words for them.
var kinds = []struct { //nolint:gochecknoglobals // compiled once
	seen  *regexp.Regexp
	words string
}{
	{regexp.MustCompile(`https?://|www\.|\b[\w-]+\.(com|org|net|io)\b`), " url web webpage website page link"},
	{regexp.MustCompile(`[\w.+-]+@[\w-]+\.\w+`), " email mail address"},
	{regexp.MustCompile(`\b[\w-]+\.(txt|pdf|docx?|csv|md|json|xlsx?|png|jpe?g|py|log)\b`), " file filename document read"},
}

// Parts returns the sentences of a text; a long text is divided into up to eight parts with about
// the same number of sentences. If a part contains a web address, a mail address or a file name,
// the words for it are appended.
func Parts(text string) []string {
	var sentences []string
	begin := 0
	text = strings.ToValidUTF8(cut(text), "")
	for i, r := range text {
		next := i + len(string(r))
		ends := r == '\n' || strings.ContainsRune(".!?;", r) && (next == len(text) || text[next] == ' ' || text[next] == '\n')
		if !ends && next != len(text) {
			continue
		}
		if s := strings.TrimSpace(text[begin:next]); strings.ContainsFunc(s, unicode.IsLetter) {
			sentences = append(sentences, s)
		}
		begin = next
	}
	each := (len(sentences) + partsOfTurn - 1) / partsOfTurn
	var out []string
	for part := range slices.Chunk(sentences, max(1, each)) {
		s := strings.Join(part, " ")
		for _, k := range kinds {
			if k.seen.MatchString(s) {
				s += k.words
			}
		}
		out = append(out, s)
	}
	return out
}
