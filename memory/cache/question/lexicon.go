package question

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed lexicon/*.txt
var files embed.FS

// lexicon is the knowledge about words. It is immutable.
type lexicon struct {
	words   map[string]*word
	phrases map[string][]phrase // by first word, the longest first
	moods   map[string]mood     // the moods that words express
}

// word is the lexicon entry of a word.
type word struct {
	class    class
	listed   bool     // in some list other than that of fillers
	concepts []uint16 // the groups of words that may replace it
	number   string   // digits, if it is a word for a number
	negates  bool
	literal  bool // makes the question one about words
}

// phrase is a sequence of words that is replaced as a whole.
type phrase struct {
	rest  []string // the words after the first, without articles
	kind  Kind     // what it asks for; anyKind if it does not determine that
	force bool     // the kind applies even if an earlier word asked for a thing
	mood  mood     // moods it expresses in addition
	maybe mood     // moods it may express in addition
	out   []outWord
}

// outWord is a word by which a phrase is replaced.
type outWord struct {
	form []byte
	*word
}

// theLexicon is parsed once, at the first use.
//
//nolint:gochecknoglobals // constant table
var theLexicon = sync.OnceValue(loadLexicon)

// loadLexicon parses the files of folder lexicon. They are embedded, so an error in them is a bug.
func loadLexicon() *lexicon {
	l := &lexicon{words: map[string]*word{}, phrases: map[string][]phrase{}, moods: map[string]mood{}}
	each("fillers", func(_ int, line string) { l.classes(line, filler) })
	each("soft", func(_ int, line string) { l.classes(line, soft) })
	each("same", l.group)
	each("literal", func(_ int, line string) {
		for w := range strings.FieldsSeq(line) {
			l.word(w).literal = true
		}
	})
	each("negations", func(_ int, line string) {
		for w := range strings.FieldsSeq(line) {
			l.word(w).negates = true
		}
	})
	each("numbers", func(_ int, line string) {
		digits, forms, _ := strings.Cut(line, " ")
		for w := range strings.FieldsSeq(forms) {
			l.word(w).number = digits
		}
	})
	each("moods", func(_ int, line string) { l.mood(line) })
	each("questions", l.question)
	l.inherit()
	for _, list := range l.phrases {
		slices.SortStableFunc(list, func(a, b phrase) int { return cmp.Compare(len(b.rest), len(a.rest)) })
	}
	return l
}

// inherit gives listed inflected words the groups of their base forms.
func (l *lexicon) inherit() {
	for form, e := range l.words {
		base := l.base([]byte(form))
		if base == nil || base.class != key || e.class != key {
			continue
		}
		for _, c := range base.concepts {
			if !slices.Contains(e.concepts, c) {
				e.concepts = append(e.concepts, c)
			}
		}
	}
}

// each calls f with every line of a file that is no comment, and its number.
func each(name string, f func(n int, line string)) {
	data, err := files.ReadFile("lexicon/" + name + ".txt")
	if err != nil {
		panic(fmt.Sprintf("lexicon of questions: %v", err))
	}
	n := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			f(n, line)
			n++
		}
	}
}

// word returns the entry of a word, a new one if necessary.
func (l *lexicon) word(w string) *word {
	e := l.words[w]
	if e == nil {
		e = new(word)
		l.words[w] = e
	}
	return e
}

// classes gives every word of a line a class.
func (l *lexicon) classes(line string, c class) {
	for w := range strings.FieldsSeq(line) {
		if strings.Contains(w, "_") && c == filler {
			l.add(w, phrase{})
			continue
		}
		e := l.unit(w)
		e.class, e.listed = c, c != filler
	}
}

// group puts the words of a line into one group.
func (l *lexicon) group(n int, line string) {
	for w := range strings.FieldsSeq(line) {
		e := l.unit(w)
		e.listed = true
		if !slices.Contains(e.concepts, uint16(n)) {
			e.concepts = append(e.concepts, uint16(n))
		}
	}
}

// unit returns the entry of a word or of words joined by underscores, which are then read as one.
func (l *lexicon) unit(w string) *word {
	if _, known := l.words[w]; !known && strings.Contains(w, "_") {
		l.add(w, phrase{out: []outWord{{form: []byte(w), word: l.word(w)}}})
	}
	return l.word(w)
}

// question reads a line "words = @kind +mood ?mood words".
func (l *lexicon) question(_ int, line string) {
	left, right, ok := strings.Cut(line, "=")
	if !ok {
		panic("lexicon of questions: no = in " + line)
	}
	var p phrase
	for w := range strings.FieldsSeq(right) {
		if p.says(w) {
			continue
		}
		name, isKind := strings.CutPrefix(w, "@")
		if !isKind {
			p.out = append(p.out, outWord{form: []byte(w), word: l.word(w)})
			continue
		}
		name, p.force = strings.CutPrefix(name, "@")
		if p.kind, ok = parseKind(name); !ok {
			panic("lexicon of questions: unknown kind in " + line)
		}
	}
	l.add(strings.Join(strings.Fields(left), "_"), p)
}

// says takes the name of a mood behind + or ?, and reports whether it is one.
func (p *phrase) says(w string) bool {
	m, ok := parseMood(w[1:])
	switch {
	case !ok:
	case w[0] == '+':
		p.mood |= m
	case w[0] == '?':
		p.maybe |= m
	default:
		return false
	}
	return ok
}

// add files a phrase under the first of its words, which underscores join.
func (l *lexicon) add(words string, p phrase) {
	parts := strings.Split(words, "_")
	p.rest = slices.DeleteFunc(parts[1:], skipped)
	l.phrases[parts[0]] = append(l.phrases[parts[0]], p)
}

// skipped reports whether a word may occur inside any phrase: articles and possessives.
func skipped(w string) bool {
	switch w {
	case "a", "an", "the", "my", "your", "our":
		return true
	}
	return false
}

// find returns the entry of a word or of the word that it is a form of, or nil.
func (l *lexicon) find(form []byte) *word {
	if e := l.words[string(form)]; e != nil {
		return e
	}
	return l.base(form)
}

// base returns the entry of the word that another is a form of, or nil.
func (l *lexicon) base(form []byte) *word {
	var buf [maxForm + 1]byte
	for _, end := range endings {
		base, ok := cutSuffix(form, end.cut)
		if !ok || len(base) < 3 || len(base)+len(end.put) > len(buf) {
			continue
		}
		stem := append(append(buf[:0], base...), end.put...)
		if e := l.words[string(stem)]; e != nil && e.listed {
			return e
		}
		if n := len(base); end.put == "" && n > 3 && base[n-1] == base[n-2] {
			if e := l.words[string(base[:n-1])]; e != nil && e.listed {
				return e
			}
		}
	}
	return nil
}

// endings are the inflections of English that find takes off: plural, past, participle.
//
//nolint:gochecknoglobals // constant table
var endings = [...]struct{ cut, put string }{
	{"ies", "y"}, {"es", ""}, {"s", ""}, {"ied", "y"}, {"ed", ""}, {"ed", "e"}, {"ing", ""}, {"ing", "e"},
}
