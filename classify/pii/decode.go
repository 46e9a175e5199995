package pii

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Token is a word piece as a model saw it.
type Token struct {
	Start, End int       // byte offsets in the text
	Probs      []float32 // calibrated probability of each label, sum 1; not retained
}

// Decoder turns the labels of a token model into spans. It is immutable and safe for concurrent
// use.
type Decoder struct {
	types  []string
	of     []int8 // for each label the index of its type, -1 for O
	begins []bool // for each label whether it is a B- label
	latin  bool
}

// LatinAlone declares that the model only knows the Latin script. In other scripts its spans are
// accepted only if their form confirms them. It must be called before the decoder is used.
func (d *Decoder) LatinAlone() { d.latin = true }

// maxTypes is the maximum number of types of a model, so that the scores of a word fit on the
// stack.
const maxTypes = 64

// NewDecoder returns a decoder for a model with the given labels: "O", and for each type "B-" and
// "I-" before its name, or "I-" or the bare name alone. Types that this package does not define
// keep their names. Errors: no O, a duplicate label, or more than 64 types.
func NewDecoder(labels []string) (*Decoder, error) {
	d := &Decoder{of: make([]int8, len(labels)), begins: make([]bool, len(labels))}
	seen := make(map[string]bool, len(labels))
	for i, label := range labels {
		if seen[label] {
			return nil, fmt.Errorf("label %q is given twice", label)
		}
		seen[label] = true
		if label == "O" {
			d.of[i] = -1
			continue
		}
		name, begins := strings.CutPrefix(label, "B-")
		name = strings.TrimPrefix(name, "I-")
		if name == "" {
			return nil, fmt.Errorf("label %q names no type", label)
		}
		d.begins[i] = begins
		d.of[i] = d.typeOf(name)
	}
	switch {
	case !seen["O"]:
		return nil, errors.New("labels have no O")
	case len(d.types) == 0 || len(d.types) > maxTypes:
		return nil, fmt.Errorf("labels have %d types, expected 1 to %d", len(d.types), maxTypes)
	}
	return d, nil
}

func (d *Decoder) typeOf(name string) int8 {
	for t, known := range d.types {
		if known == name {
			return int8(t)
		}
	}
	d.types = append(d.types, name)
	return int8(len(d.types) - 1)
}

// FuseContext appends to dst the combined spans of patterns and tokens, sorted by start and without
// overlaps. patterns must come from PatternsContext on the same text. tokens must be in the order
// of the text. Ignored are empty tokens, tokens that begin before the end of the previous one
// (overlapping windows), and tokens whose Probs does not have the length of the labels.
//
// A word has one type: the one whose probability, B- and I- added, has the highest mean over its
// pieces. Consecutive words of one type form a span; a short word between two of them joins them.
// An I- without a B- begins a span as well.
//
// Its error is that of ctx, which is checked first and then every few thousand words and spans;
// nothing is appended in that case.
func (d *Decoder) FuseContext(
	ctx context.Context, text string, patterns []Span, tokens []Token, dst []Span,
) ([]Span, error) {
	out := slices.Concat(patterns)
	if len(tokens) > 0 {
		r := reader{d: d, text: text, out: out, lines: judge{text: text}}
		if err := r.read(ctx, tokens); err != nil {
			return dst, err
		}
		if _, err := r.yield(ctx, len(patterns)); err != nil {
			return dst, err
		}
		out = r.out
	}
	if len(out) == 0 {
		return dst, nil
	}
	spans, err := resolve(ctx, out)
	if err != nil {
		return dst, err
	}
	if spans, err = again(ctx, text, spans); err != nil {
		return dst, err
	}
	return append(dst, spans...), nil
}

// itemsPerLook is the number of words or spans processed between two checks of the context.
const itemsPerLook = 4096

// errAt returns the error of ctx if item is a multiple of itemsPerLook, else nil.
func errAt(ctx context.Context, item int) error {
	if item%itemsPerLook != 0 {
		return nil
	}
	return ctx.Err()
}

// lexeme is a word with the model's judgement.
type lexeme struct {
	start, end int
	kind       int8    // index of the type, -1 for none
	begins     bool    // the first piece is more likely B- than I-
	prob       float32 // of kind
	second     int8    // the most probable type if kind is -1
	maybe      float32 // its probability
}

// reader decodes one sequence of tokens.
type reader struct {
	d     *Decoder
	text  string
	words []lexeme
	out   []Span
	lines judge
}

// read collects the words of tokens and adds their spans.
func (r *reader) read(ctx context.Context, tokens []Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.words = make([]lexeme, 0, len(tokens))
	look := itemsPerLook
	for i := 0; i < len(tokens); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = i + itemsPerLook
		}
		t := &tokens[i]
		if !r.valid(t) || len(r.words) > 0 && t.Start < r.words[len(r.words)-1].end {
			i++
			continue
		}
		end := i + 1
		for end < len(tokens) && end-i < maxPieces && r.goesOn(&tokens[end-1], &tokens[end]) {
			end++
		}
		r.words = append(r.words, r.judge(tokens[i:end]))
		i = end
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	return r.spans(ctx)
}

// maxPieces is the maximum number of pieces of a word. A longer run of pieces is not a word and has
// no type.
const maxPieces = 1024

// goesOn reports whether next is another piece of the same word as t.
func (r *reader) goesOn(t, next *Token) bool {
	return r.valid(next) && next.Start == t.End && r.joined(next.Start)
}

func (r *reader) valid(t *Token) bool {
	return t.Start >= 0 && t.Start < t.End && t.End <= len(r.text) && len(t.Probs) == len(r.d.of)
}

// joined reports whether i is inside a word.
func (r *reader) joined(i int) bool {
	before, _ := utf8.DecodeLastRuneInString(r.text[:i])
	after, _ := utf8.DecodeRuneInString(r.text[i:])
	return spaced(before) && (spaced(after) || unicode.IsMark(after))
}

// judge averages the probabilities of the pieces of one word.
func (r *reader) judge(pieces []Token) lexeme {
	var sums [maxTypes]float32
	var none, begin, inside float32
	for k := range pieces {
		for label, p := range pieces[k].Probs {
			t := r.d.of[label]
			if t < 0 {
				none += p
				continue
			}
			sums[t] += p
		}
	}
	w := lexeme{start: pieces[0].Start, end: pieces[len(pieces)-1].End, kind: -1, second: -1}
	for t := range r.d.types {
		if sums[t] > w.maybe {
			w.second, w.maybe = int8(t), sums[t]
		}
	}
	n := float32(len(pieces))
	w.maybe /= n
	if w.second < 0 {
		return w
	}
	for label, p := range pieces[0].Probs {
		if r.d.of[label] == w.second {
			if r.d.begins[label] {
				begin = p
			} else {
				inside = p
			}
		}
	}
	w.begins = begin > inside
	if w.maybe*n > none || w.maybe >= supported && r.listed(&w) {
		w.kind, w.prob = w.second, w.maybe
	}
	return w
}

// supported is the probability from which a word in the gazetteer is accepted.
const supported = 0.25

// listed reports whether the gazetteer lists the word with the type that the model suspects.
func (r *reader) listed(w *lexeme) bool {
	return r.listedAs(r.d.types[w.second], w.start, w.end)
}

func (r *reader) listedAs(kind string, start, end int) bool {
	e := gazetteer.words[r.text[start:end]]
	return kind == Place && e&entryPlace != 0 || kind == Group && e&entryGroup != 0 ||
		kind == Title && e&entryTitle != 0
}

// maxGap is the length in bytes of the longest word that joins two parts of a name whatever the
// model's label for it: "de la", "van", "and", "&".
const maxGap = 4

// fill gives a word between two words of one type their type if it is short or the model was
// undecided.
func (r *reader) fill(ctx context.Context) error {
	for i := 1; i+1 < len(r.words); i++ {
		if err := errAt(ctx, i); err != nil {
			return err
		}
		w, left, right := &r.words[i], &r.words[i-1], &r.words[i+1]
		if w.kind >= 0 || left.kind < 0 || left.kind != right.kind ||
			!fillable(r.d.types[left.kind]) {
			continue
		}
		word := r.text[w.start:w.end]
		short := len(word) <= maxGap && !strings.ContainsAny(word, ",.;:!?()\"") && !right.begins
		undecided := w.second == left.kind && w.maybe >= supported
		if (short || undecided) && r.close(left.end, w.start) && r.close(w.end, right.start) {
			w.kind, w.prob, w.begins = left.kind, max(w.maybe, supported), false
		}
	}
	return nil
}

func fillable(kind string) bool {
	switch kind {
	case Person, Organization, StreetAddress, Place, DateTime, PhoneNumber:
		return true
	}
	return false
}

// close reports whether at most a space, hyphen or the like separates two words.
func (r *reader) close(end, start int) bool {
	return start-end <= 2 && strings.Trim(r.text[end:start], " -'’.,&") == ""
}

// spans adds the spans that the words form.
func (r *reader) spans(ctx context.Context) error {
	look := itemsPerLook
	for i := 0; i < len(r.words); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = i + itemsPerLook
		}
		if r.words[i].kind < 0 {
			i++
			continue
		}
		first := i
		sum := float64(r.words[i].prob)
		for i++; i < len(r.words) && r.continues(i); i++ {
			sum += float64(r.words[i].prob)
		}
		r.emit(first, i, sum/float64(i-first))
	}
	return nil
}

// continues reports whether word i belongs to the span of the word before it.
func (r *reader) continues(i int) bool {
	w, left := &r.words[i], &r.words[i-1]
	if w.kind != left.kind || w.start-left.end > 3 {
		return false
	}
	between := r.text[left.end:w.start]
	if strings.IndexByte(between, '\n') >= 0 {
		return false
	}
	return !w.begins || between == "" && fillable(r.d.types[w.kind])
}

// emit adds the span of words [first, end) if its score is sufficient.
func (r *reader) emit(first, end int, score float64) {
	kind := r.d.types[r.words[first].kind]
	from, to := trimSpan(r.text, kind, r.words[first].start, r.words[end-1].end)
	if from >= to {
		return
	}
	if r.listedAs(kind, from, to) {
		score = 1 - (1-score)/2 // two sources that err independently
	}
	if score >= threshold(kind) {
		r.out = append(r.out, Span{Type: kind, Start: from, End: to, Score: min(score, 1)})
	}
}

// threshold returns the minimum probability of a span that only the model found. It is high for
// types that patterns recognise reliably, such as an address with an @.
func threshold(kind string) float64 {
	switch kind {
	case EmailAddress, CreditCard, IBAN, IPAddress, SSN, DomainName:
		return 0.8
	case Age, ZipCode, DriverLicense, Title:
		return 0.6
	}
	return 0.5
}

// checkable reports whether Patterns decides about a type by its syntax or a checksum. Text that
// Patterns did not accept is then not of the type, whatever the model's label.
func checkable(kind string) bool {
	switch kind {
	case CreditCard, DomainName, EmailAddress, IBAN, IPAddress:
		return true
	}
	return false
}

// yield removes from the model's spans what overlaps patterns with a syntax of their own. The parts
// of a span outside of such patterns stay if they are still plausible. The first n spans are
// patterns; both lists are in the order of the text. It returns the number of comparisons: at most
// one for each span and one for each overlap.
func (r *reader) yield(ctx context.Context, n int) (compared int, err error) {
	guesses, patterns := slices.Clone(r.out[n:]), r.out[:n:n]
	r.out = r.out[:n]
	for i, s := range guesses {
		if err := errAt(ctx, i); err != nil {
			return compared, err
		}
		for len(patterns) > 0 && patterns[0].End <= s.Start {
			patterns = patterns[1:]
			compared++
		}
		for k := 0; k < len(patterns) && patterns[k].Start < s.End; k++ {
			compared++
			if p := &patterns[k]; p.rank() >= 3 {
				r.keep(s, s.Start, p.Start)
				s.Start = min(s.End, p.End)
			}
		}
		r.keep(s, s.Start, s.End)
	}
	return compared, nil
}

// keep adds the part [start, end) of the model's span s, if it is still plausible.
func (r *reader) keep(s Span, start, end int) {
	s.Start, s.End = trimSpan(r.text, s.Type, start, max(start, end))
	if s.Type == Person && s.Start < s.End {
		s.Start = r.hyphenated(s.Start)
	}
	if s.Start < s.End && !checkable(s.Type) && r.whole(&s) && r.plausible(&s) && (!r.d.latin || r.abroad(&s)) {
		r.out = append(r.out, s)
		if s.Type == Place {
			r.postcodeBefore(s.Start)
		}
	}
}

// hyphenated returns the start of the hyphenated word, such as the name Ana-Maria, that continues
// at i, else i.
func (r *reader) hyphenated(i int) int {
	s := scanner{text: r.text}
	if i < 2 || s.byteAt(i-1) != '-' || !s.capitalAt(i) {
		return i
	}
	if from := s.wordStart(i - 1); from < i-1 && s.capitalAt(from) && !s.wordBefore(from) &&
		s.wordEnd(from) == i-1 && !isUpper(s.byteAt(from+1)) {
		return from
	}
	return i
}

// whole widens a span of the model at a part of a number to the whole number. It reports false if
// that is not a number of the span's type.
func (r *reader) whole(s *Span) bool {
	switch s.Type {
	case PhoneNumber, ZipCode, SSN, DriverLicense:
		return (&scanner{text: r.text}).whole(s)
	case DateTime:
		return (&scanner{text: r.text}).wholeDate(s)
	case StreetAddress: // begins in A-1010 Wien, or ends in the first digits of 529.982.247-25
		if r.text[s.Start] == '-' {
			s.Start = (&scanner{text: r.text}).wordStart(s.Start)
		}
		for end := s.End; isDigit(r.text[s.End-1]) && end+1 < len(r.text) && (r.text[end] == '.' || r.text[end] == '-') &&
			isDigit(r.text[end+1]); s.End = end {
			for end++; end < len(r.text) && isDigit(r.text[end]); {
				end++
			}
		}
		if isAlnum(r.text[s.End-1]) {
			s.End = r.townBehind(s.Start, s.End)
		}
	}
	return true
}

// townBehind returns the end of the postcode and town after an address that ends at end, or of the
// town alone if the address ends with its postcode, else end.
func (r *reader) townBehind(start, end int) int {
	s := scanner{text: r.text}
	if k := strings.LastIndex(r.text[start:end], ", "); k > 0 && s.postcodeEnd(start+k+2) == end {
		return max(end, s.townAfter(start+k))
	}
	return s.townAfter(end)
}

// trimSpan removes from both ends what does not belong to a value: spaces, punctuation, articles,
// and the genitive of a name.
func trimSpan(text, kind string, start, end int) (from, to int) {
	// computed once: there may be many
	closed := start + strings.LastIndexByte(text[start:end], ')')
	for start < end {
		size := opensOutside(text[start:end], kind, closed > start)
		if size == 0 {
			break
		}
		start += size
	}
	opened := strings.IndexByte(text[start:end], '(')
	for start < end {
		size := endsOutside(text[start:end], kind, opened >= 0 && start+opened < end-1)
		if size == 0 {
			break
		}
		end -= size
	}
	if kind == Person || kind == Organization || kind == Place {
		end -= genitive(text[start:end])
	}
	if kind == Organization || kind == Place || kind == Group {
		start += article(text[start:end])
	}
	return start, end
}

// outside is punctuation that is not part of a value at either of its ends.
const outside = " \t\n\r,;:!?\"“”„«»'‘’`*_<>|/\\。，、；：！？「」『』"

// opensOutside returns the length of the first character of value if it is none of it, else 0.
// closed says that a parenthesis closes in value.
//
//nolint:revive // the caller knows, and has not to look each time
func opensOutside(value, kind string, closed bool) int {
	r, size := utf8.DecodeRuneInString(value)
	switch r {
	case '.', ')', ']':
		return size
	case '(', '[':
		if kind == PhoneNumber && closed {
			return 0
		}
		return size
	}
	if strings.ContainsRune(outside, r) || spelled(kind) && strings.ContainsRune(signs, r) {
		return size
	}
	return 0
}

// signs are characters that code and mentions put next to words; no name begins or ends with them.
const signs = "@#=~^+-&%$"

// spelled reports whether the values of a type are words.
func spelled(kind string) bool {
	switch kind {
	case Person, Organization, Place, Group, Title:
		return true
	}
	return false
}

// endsOutside returns the length of the last character of value if it does not belong to the value,
// else 0. opened reports whether value contains an opening parenthesis.
func endsOutside(value, kind string, opened bool) int {
	r, size := utf8.DecodeLastRuneInString(value)
	var out bool
	switch r {
	case '(', '[', ']':
		out = true
	case ')':
		out = !opened
	case '.':
		out = !keepsDot(value[:len(value)-size], kind)
	default:
		out = strings.ContainsRune(outside, r) || spelled(kind) && strings.ContainsRune(signs, r) ||
			kind == PhoneNumber && r >= utf8.RuneSelf && unicode.IsLetter(r) // a particle of Korean
	}
	if !out {
		return 0
	}
	return size
}

// genitive returns the length of the English genitive at the end of value.
func genitive(value string) int {
	for _, mark := range [...]string{"'s", "’s"} {
		if strings.HasSuffix(value, mark) {
			return len(mark)
		}
	}
	return 0
}

// article returns the length of the English article at the start of value, unless the gazetteer
// lists the name with it.
func article(value string) int {
	if gazetteer.words[value] != 0 {
		return 0
	}
	for _, word := range [...]string{"the ", "The ", "a ", "an "} {
		if strings.HasPrefix(value, word) {
			return len(word)
		}
	}
	return 0
}

// keepsDot reports whether the dot after value belongs to it: an abbreviated title, a legal form or
// an initial.
func keepsDot(value, kind string) bool {
	word := value[strings.LastIndexAny(value, " .")+1:]
	switch kind {
	case Title:
		return true
	case Organization:
		return gazetteer.words[word]&entryLegal != 0 || word == "Co" || len(word) == 1
	case Person:
		return len(word) == 1 || word == "Jr" || word == "Sr"
	}
	return false
}
