package tools

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	// partsOfTurn is how many parts of what a user says are compared by themselves.
	partsOfTurn = 8
	// calledLately is how many of the tools that were called last bring others along.
	calledLately = 4
	// besideWeight is what the model said before and the tools that it called count for, beside what
	// the user says.
	besideWeight = .3
)

// Moment is what is known of a conversation as its user speaks.
type Moment struct {
	Parts  []Turn   // of what the user says; see Parts
	Before Turn     // what the model said before
	Called []string // the functions that were called before, in their order
}

// Fit returns the forms of tools that take at most a share of the tokens of the list: the n that fit
// the moment best whole, then brief ones in the order of how well they fit, until the share is
// spent. What is no function is whole and counted first. The best one, and those of must, are kept
// whether the share has room for them or not, whole where they were not picked. It returns nil where nothing can be
// told. vectors are as in Pick.
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

// nearCalled tells how near the tools are to those that were called last; nil where that is unknown.
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

// lately returns the tools that were called last, each once.
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

// kinds are things that a text can name without the word for them, and the words.
var kinds = []struct { //nolint:gochecknoglobals // compiled once
	seen  *regexp.Regexp
	words string
}{
	{regexp.MustCompile(`https?://|www\.|\b[\w-]+\.(com|org|net|io)\b`), " url web webpage website page link"},
	{regexp.MustCompile(`[\w.+-]+@[\w-]+\.\w+`), " email mail address"},
	{regexp.MustCompile(`\b[\w-]+\.(txt|pdf|docx?|csv|md|json|xlsx?|png|jpe?g|py|log)\b`), " file filename document read"},
}

// Parts returns the sentences of a text, of a long one up to eight parts of about as many sentences
// each. One that has an address of a page, of a mail, or the name of a file, gets the words for it
// put behind.
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
