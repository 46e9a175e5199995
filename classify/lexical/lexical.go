// Package lexical finds named sets of words, phrases and patterns in the text of a request.
//
// A phrase matches on word boundaries: neither end of the match may continue a word. Scripts that
// are written without spaces (Han, kana, Thai and kin) have no boundaries inside, so there a phrase
// matches anywhere. Both phrase and text are compared after composition (Unicode NFC), with runs
// of white space as one space, and without regard to case unless the set says otherwise.
//
// Sets read every segment, whatever its role: a client chooses the role of its messages, so a word
// that must not pass must not pass as a system message either.
//
// A Matcher is immutable and safe for concurrent use. The package starts no goroutines.
package lexical

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"

	"signalbox/internal/signal"
)

// MaxFuzzy is the largest edit distance of a set.
const MaxFuzzy = 2

// runesPerEdit is how long a phrase has to be for each edit it allows: shorter ones match by chance.
const runesPerEdit = 4

// maxFuzzyRunes is the longest phrase with edits: its prefixes are the bits of one word.
const maxFuzzyRunes = 63

// Options declares one set. It matches when any of its phrases or its pattern is found.
type Options struct {
	// Name is what conditions refer to. Required.
	Name string `yaml:"name"`
	// Any are the words and phrases. Reloadable.
	Any []string `yaml:"any"`
	// CaseSensitive compares as written. Default false. Reloadable.
	CaseSensitive bool `yaml:"case_sensitive"`
	// Fuzzy is the most edits (a character inserted, deleted or replaced) between phrase and text,
	// 0 to 2; every phrase needs four characters an edit. Default 0. Reloadable.
	Fuzzy int `yaml:"fuzzy"`
	// Regex is a pattern in RE2 syntax, searched in the text as it came, without word boundaries.
	// Default none. Reloadable.
	Regex string `yaml:"regex"`
}

// Validate reports every problem of the set as "field: problem", joined, or nil.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Name == "" {
		bad("name: missing")
	}
	if len(o.Any) == 0 && o.Regex == "" {
		bad("any: missing, and there is no regex")
	}
	if o.Fuzzy < 0 || o.Fuzzy > MaxFuzzy {
		bad("fuzzy: %d is not between 0 and %d", o.Fuzzy, MaxFuzzy)
	}
	for i, phrase := range o.Any {
		n := utf8.RuneCount(fold(nil, phrase, o.mode()))
		switch {
		case n == 0:
			bad("any[%d]: empty", i)
		case o.Fuzzy > 0 && n < runesPerEdit*o.Fuzzy:
			bad("any[%d]: %q is too short for fuzzy: %d, want at least %d characters", i, phrase, o.Fuzzy, runesPerEdit*o.Fuzzy)
		case o.Fuzzy > 0 && n > maxFuzzyRunes:
			bad("any[%d]: longer than the %d characters that fuzzy allows", i, maxFuzzyRunes)
		}
	}
	if _, err := o.compile(); err != nil {
		bad("regex: %w", err)
	}
	return errors.Join(errs...)
}

func (o Options) mode() folding {
	if o.CaseSensitive {
		return keepCase
	}
	return foldCase
}

// compile returns nil when the set has no pattern.
func (o Options) compile() (*regexp.Regexp, error) {
	switch {
	case o.Regex == "":
		return nil, nil //nolint:nilnil // no pattern is a valid set
	case o.CaseSensitive:
		return regexp.Compile(o.Regex)
	}
	return regexp.Compile("(?i:" + o.Regex + ")")
}

// Matcher finds sets in text. Make it with New; the zero value and nil match nothing.
type Matcher struct {
	names   []string
	exact   [foldings]*automaton
	fuzzy   [foldings][]approx
	regexps []namedRegexp
	pool    sync.Pool // of *[]byte
}

// automaton finds many phrases in one pass.
type automaton struct {
	ac   ahocorasick.AhoCorasick
	sets [][]int // by phrase, the sets it belongs to
}

type namedRegexp struct {
	re  *regexp.Regexp
	set int
}

// New compiles the sets. Errors name the set; see Options.Validate. Two sets of one name are an error.
func New(sets []Options) (*Matcher, error) {
	m := &Matcher{names: make([]string, len(sets))}
	var errs []error
	var phrases [foldings]map[string][]int
	for i, o := range sets {
		if err := o.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("keyword set %q: %w", o.Name, err))
			continue
		}
		if slices.Contains(m.names[:i], o.Name) {
			errs = append(errs, fmt.Errorf("keyword set %q: name: used twice", o.Name))
		}
		m.names[i] = o.Name
		re, err := o.compile()
		if err != nil {
			errs = append(errs, fmt.Errorf("keyword set %q: regex: %w", o.Name, err))
		}
		if re != nil {
			m.regexps = append(m.regexps, namedRegexp{re, i})
		}
		mode := o.mode()
		for _, p := range o.Any {
			folded := string(fold(nil, p, mode))
			if o.Fuzzy > 0 {
				m.fuzzy[mode] = append(m.fuzzy[mode], newApprox(folded, o.Fuzzy, i))
				continue
			}
			if phrases[mode] == nil {
				phrases[mode] = make(map[string][]int)
			}
			phrases[mode][folded] = append(phrases[mode][folded], i)
		}
	}
	for mode, p := range phrases {
		m.exact[mode] = newAutomaton(p)
	}
	return m, errors.Join(errs...)
}

// denseStates is up to how many phrases an automaton has a full table of transitions. That matches up
// to twice as fast, and 10,000 phrases then take 0.94 s of CPU and 524 MB of allocations to compile
// instead of 0.18 s and 51 MB, and 26 MB instead of 12 MB to keep (BenchmarkLargeSets, AMD EPYC).
const denseStates = 1000

func newAutomaton(phrases map[string][]int) *automaton {
	if len(phrases) == 0 {
		return nil
	}
	list := make([]string, 0, len(phrases))
	for p := range phrases {
		list = append(list, p)
	}
	slices.Sort(list)
	a := &automaton{sets: make([][]int, len(list))}
	for i, p := range list {
		a.sets[i] = phrases[p]
	}
	b := ahocorasick.NewAhoCorasickBuilder(ahocorasick.Opts{MatchKind: ahocorasick.StandardMatch, DFA: len(list) <= denseStates})
	a.ac = b.Build(list)
	return a
}

// Match returns the names of the sets found in text, in the order they were declared; nil when none is.
func (m *Matcher) Match(text *signal.Text) []string {
	if m == nil || len(m.names) == 0 {
		return nil
	}
	buf, ok := m.pool.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer m.pool.Put(buf)
	found := make([]bool, len(m.names))
	for i := range text.Segments {
		s := &text.Segments[i]
		if s.Text != "" {
			m.scan(s.Text, buf, found)
		}
	}
	var names []string
	for i, hit := range found {
		if hit {
			names = append(names, m.names[i])
		}
	}
	return names
}

// scan marks the sets found in text.
func (m *Matcher) scan(text string, buf *[]byte, found []bool) {
	for mode := range foldings {
		if m.exact[mode] == nil && len(m.fuzzy[mode]) == 0 {
			continue
		}
		*buf = fold((*buf)[:0], text, mode)
		m.exact[mode].scan(*buf, found)
		for i := range m.fuzzy[mode] {
			if p := &m.fuzzy[mode][i]; !found[p.set] {
				found[p.set] = p.in(*buf)
			}
		}
	}
	for _, r := range m.regexps {
		if !found[r.set] {
			found[r.set] = r.re.MatchString(text)
		}
	}
}

func (a *automaton) scan(text []byte, found []bool) {
	if a == nil {
		return
	}
	it := a.ac.IterOverlappingByte(text)
	for h := it.Next(); h != nil; h = it.Next() {
		if !boundary(text, h.Start()) || !boundary(text, h.End()) {
			continue
		}
		for _, set := range a.sets[h.Pattern()] {
			found[set] = true
		}
	}
}
