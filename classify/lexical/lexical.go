// Package lexical finds named sets of words, phrases and patterns in the text of a request.
//
// A phrase matches on word boundaries: neither end of the match may continue a word. Scripts
// written without spaces (Han, kana, Thai and related scripts) have no boundaries inside a run of
// text, so a phrase matches anywhere there. Korean uses spaces and attaches particles to the end of
// a word: particles may follow a phrase, and a change between Hangul and another script is a
// boundary. Phrase and text are compared after composition (Unicode NFC), with runs of white space
// as one space, and without regard to case unless the set says otherwise.
//
// Sets are applied to every segment, whatever its role. A client chooses the roles of its messages,
// so a word that must not pass must not pass in a system message either.
//
// A Matcher is immutable and safe for concurrent use. The package starts no goroutines.
package lexical

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"

	"signalbox/internal/signal"
)

// MaxFuzzy is the maximum edit distance of a set.
const MaxFuzzy = 2

// runesPerEdit is the minimum length of a phrase per permitted edit: shorter ones match by chance.
const runesPerEdit = 4

// maxFuzzyRunes is the maximum length of a phrase with edits: its prefixes are the bits of one
// machine word.
const maxFuzzyRunes = 63

// Options declares one set. The set matches if any of its phrases or its pattern is found.
type Options struct {
	// Name is the name by which conditions refer to the set. Required.
	Name string `yaml:"name"`
	// Any lists the words and phrases of the set. Each is matched as a whole: refund does not match
	// refunds. Korean particles may follow a word. Reloadable.
	Any []string `yaml:"any"`
	// CaseSensitive makes matching case-sensitive. Default false. Reloadable.
	CaseSensitive bool `yaml:"case_sensitive"`
	// Fuzzy is the maximum number of edits (inserted, deleted or replaced characters) between
	// phrase and text. Every phrase needs at least four characters per edit. 0 to 2. Default 0.
	// Reloadable.
	Fuzzy int `yaml:"fuzzy"`
	// Regex is a pattern in RE2 syntax. It is searched for in the original text, without word
	// boundaries. Default none. Reloadable.
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
		n := utf8.RuneCount(fold(phrase, o.mode()))
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

// compile returns nil if the set has no pattern.
func (o Options) compile() (*regexp.Regexp, error) {
	switch {
	case o.Regex == "":
		return nil, nil //nolint:nilnil // no pattern is a valid set
	case o.CaseSensitive:
		return regexp.Compile(o.Regex)
	}
	if _, err := syntax.Parse(o.Regex, syntax.Perl); err != nil {
		return nil, err //nolint:wrapcheck // it quotes the pattern as it was written
	}
	return regexp.Compile("(?i:" + o.Regex + ")")
}

// Matcher finds sets in text. Use New to make one; the zero value and nil match nothing.
type Matcher struct {
	names   []string
	exact   [foldings]*automaton
	longest [foldings]int // bytes of the longest phrase of exact
	fuzzy   [foldings][]approx
	regexps []namedRegexp
	pool    sync.Pool // of *[]byte
}

// automaton finds many phrases in one pass.
type automaton struct {
	ac     ahocorasick.AhoCorasick
	sets   [][]int // by phrase, the sets that contain it
	filter *filter
}

type namedRegexp struct {
	re  *regexp.Regexp
	set int
}

// New compiles the sets. Errors name the set; see Options.Validate. Two sets with the same name are
// an error.
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
			folded := string(fold(p, mode))
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
		for phrase := range p {
			m.longest[mode] = max(m.longest[mode], len(phrase))
		}
	}
	return m, errors.Join(errs...)
}

// denseStates is the number of phrases up to which an automaton has a full transition table. It
// matches up to twice as fast, but 10,000 phrases then take 0.94 s of CPU and 524 MB of allocations
// to compile instead of 0.18 s and 51 MB, and 26 MB instead of 12 MB to keep (BenchmarkLargeSets,
// AMD EPYC).
const denseStates = 1000

func newAutomaton(phrases map[string][]int) *automaton {
	if len(phrases) == 0 {
		return nil
	}
	list := slices.Sorted(maps.Keys(phrases))
	a := &automaton{sets: make([][]int, len(list)), filter: newFilter(list)}
	for i, p := range list {
		a.sets[i] = phrases[p]
	}
	b := ahocorasick.NewAhoCorasickBuilder(ahocorasick.Opts{MatchKind: ahocorasick.StandardMatch, DFA: len(list) <= denseStates})
	a.ac = b.Build(list)
	return a
}

// largestKept is the maximum size in bytes of a buffer that is kept for the next text.
const largestKept = 1 << 20

// Match returns the names of the sets found in text, in the order of declaration; nil if there are
// none. Its error is that of ctx, which is checked every 64 KiB; in that case nothing is returned.
func (m *Matcher) Match(ctx context.Context, text *signal.Text) ([]string, error) {
	if m == nil || len(m.names) == 0 {
		return nil, nil
	}
	buf, ok := m.pool.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	defer func() {
		if cap(*buf) <= largestKept {
			m.pool.Put(buf)
		}
	}()
	found := make([]bool, len(m.names))
	for i := range text.Segments {
		s := &text.Segments[i]
		if s.Text == "" {
			continue
		}
		if err := m.scan(ctx, s.Text, buf, found); err != nil {
			return nil, err
		}
	}
	var names []string
	for i, hit := range found {
		if hit {
			names = append(names, m.names[i])
		}
	}
	return names, nil
}

// scan marks the sets found in text.
func (m *Matcher) scan(ctx context.Context, text string, buf *[]byte, found []bool) error {
	for mode := range foldings {
		if m.exact[mode] == nil && len(m.fuzzy[mode]) == 0 {
			continue
		}
		var err error
		if *buf, err = foldAll(ctx, (*buf)[:0], text, mode); err != nil {
			return err
		}
		if err := m.exact[mode].scan(ctx, *buf, m.longest[mode], found); err != nil {
			return err
		}
		for i := range m.fuzzy[mode] {
			p := &m.fuzzy[mode][i]
			if found[p.set] {
				continue
			}
			if found[p.set], err = p.in(ctx, *buf); err != nil {
				return err
			}
		}
	}
	return m.scanPatterns(ctx, text, found)
}

// scanPatterns marks the sets whose patterns match text.
func (m *Matcher) scanPatterns(ctx context.Context, text string, found []bool) error {
	for _, r := range m.regexps {
		if found[r.set] {
			continue
		}
		var err error
		if found[r.set], err = r.in(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// bytesPerLook is the amount of text read between two checks of the context.
const bytesPerLook = 64 << 10

// scan marks the sets whose phrases are in text. longest is the length of the longest phrase: the
// text is searched from each possible beginning for that length. Overlapping ranges are searched
// together, so that no byte is read more than twice.
func (a *automaton) scan(ctx context.Context, text []byte, longest int, found []bool) error {
	if a == nil {
		return nil
	}
	for from := 0; from < len(text); {
		if err := ctx.Err(); err != nil {
			return err
		}
		look := min(from+bytesPerLook, len(text))
		begin := a.filter.next(text, from, look)
		if begin == look {
			from = look
			continue
		}
		last := begin // the last beginning covered by this search
		end := min(last+longest, look)
		for {
			next := a.filter.next(text, last+1, end)
			if next == end {
				break
			}
			last = next
			end = min(last+longest, look)
		}
		a.part(text, begin, min(last+longest, len(text)), found)
		from = end
	}
	return nil
}

// part marks the sets whose phrases are in text[from:to].
func (a *automaton) part(text []byte, from, to int, found []bool) {
	it := a.ac.IterOverlappingByte(text[from:to])
	for h := it.Next(); h != nil; h = it.Next() {
		if !boundary(text, from+h.Start()) || !ends(text, from+h.End()) {
			continue
		}
		for _, set := range a.sets[h.Pattern()] {
			found[set] = true
		}
	}
}

// in reports whether the pattern matches text. A long text is passed to it rune by rune, so that it
// can be stopped when ctx ends, unless it cannot match because the pattern's literal prefix is
// missing.
func (r *namedRegexp) in(ctx context.Context, text string) (bool, error) {
	if len(text) <= bytesPerLook {
		return r.re.MatchString(text), ctx.Err()
	}
	if prefix, _ := r.re.LiteralPrefix(); !strings.Contains(text, prefix) {
		return false, ctx.Err()
	}
	feed := feeder{text: text, done: ctx.Done(), look: bytesPerLook}
	hit := r.re.MatchReader(&feed)
	return hit, ctx.Err()
}

// feeder reads a text rune by rune until done is closed.
type feeder struct {
	text string
	at   int
	look int // where done is checked next
	done <-chan struct{}
}

// ReadRune implements io.RuneReader.
func (f *feeder) ReadRune() (r rune, size int, err error) {
	if f.at >= f.look {
		f.look = f.at + bytesPerLook
		select {
		case <-f.done:
			f.at = len(f.text)
		default:
		}
	}
	if f.at == len(f.text) {
		return 0, 0, io.EOF
	}
	r, size = rune(f.text[f.at]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRuneInString(f.text[f.at:])
	}
	f.at += size
	return r, size, nil
}
