package question

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

const (
	// maxForm is the number of bytes of a word that are compared; longer words are cut.
	maxForm = 48
	// MaxWords is the maximum number of words of a question. Longer texts only match themselves.
	MaxWords = 64
	// MaxBytes is the maximum length of a question, in bytes.
	MaxBytes = 1024
)

// class is how much a word matters.
type class uint8

const (
	key    class = iota // needs a counterpart
	soft                // optional
	filler              // ignored
	number              // digits, or a word for them
	sign                // + or $
)

// Reading is a question in the form used by Compare. It does not refer to the text it was read
// from. The zero value is an empty question. A Reading may be reused for another text; while it is
// not, it is safe for concurrent use.
type Reading struct {
	kind      Kind
	negations int
	bare      bool // it has no question word
	mine      bool // speaks of what is the speaker's
	yours     bool // speaks of what is the listener's
	all       bool // it has "and"
	either    bool // it has "or"
	// the order of its words matters: it has a word of direction, or is a yes-no question
	strict  bool
	literal bool // a question about words
	long    bool // too long to be compared
	words   []token
	arena   []byte // the forms of words
	raw     []rawWord

	mood, maybe mood // moods of its verbs, and moods they may have in addition
	auxiliaries mood // be, do, have and modal
	inverts     bool // an auxiliary is inverted with a subject other than the speaker
	passive     bool // it is in the passive without naming the agent
	finite      bool // a past form near its beginning
	formed      bool // or anywhere
	verb        int  // the raw word that is the participle of a passive
	part        part // role of the thing asked for
	byCase      bool // known from the case of the question word
	things      bool // it asks what someone does, not who
	dangling    role // the preposition at its end
	objects     int  // number of pronouns used as objects
	fronted     int  // number of words before the question word, after a preposition
}

// token is a meaningful word.
type token struct {
	form     []byte // folded; in the arena or in the lexicon
	concepts []uint16
	class    class
	name     bool // capitalised inside a sentence
	quoted   bool
	meta     bool // about words
	asked    bool // represents what the question word asks for
	owner    bool // a possessive
	denied   bool // follows a word that negates it
	capitals capitals
	verb     bool // the participle of a passive
	role     role // the preceding preposition
	chain    role // the same, for all words up to the next ignored one
}

// role is the preposition of direction before a word.
type role uint8

const (
	noRole role = iota
	from
	to
	than
	by
	with
	forr
	instead
	of
	loose // in, on, at, about
)

// rawWord is a word of the text before it is looked up.
type rawWord struct {
	from, to int // in the arena
	sign     bool
	digits   bool
	capital  bool // capitalised, and not the first word of its sentence
	label    bool // a letter or word used as a name: vitamin c, an or gate
	acronym  bool // two capital letters or more
	quoted   bool
	owner    bool // followed by 's
	capitals capitals
}

// Clone returns a copy that shares nothing with r.
func (r *Reading) Clone() *Reading {
	out := *r
	out.raw, out.words = nil, slices.Clone(r.words)
	size := 0
	for i := range r.words {
		size += len(r.words[i].form)
	}
	out.arena = make([]byte, 0, size)
	for i := range out.words {
		at := len(out.arena)
		out.arena = append(out.arena, r.words[i].form...)
		out.words[i].form = out.arena[at:len(out.arena):len(out.arena)]
	}
	return &out
}

// Read makes r the reading of text, replacing its contents. It only allocates to grow r's buffers.
func (r *Reading) Read(text string) {
	*r = Reading{words: r.words[:0], arena: r.arena[:0], raw: r.raw[:0]}
	if len(text) > MaxBytes {
		r.long = true
		return
	}
	s := splitter{r: r, text: text}
	s.split()
	r.interpret(theLexicon())
	r.measure()
	if r.kind == anyKind {
		r.kind, r.bare = Thing, true
	}
}

// splitter splits a text into raw words.
type splitter struct {
	r      *Reading
	text   string
	pos    int
	inner  bool // a word of the current sentence has been read
	quoted bool
	single bool // by a single quotation mark

	end     int    // end of the current token without white space
	letters int    // number of letters at its beginning
	code    string // the code in it
	coded   int    // where that begins
	exact   bool   // it is a flag, whose case matters
}

func (s *splitter) split() {
	for s.pos < len(s.text) {
		s.enter()
		c, size := utf8.DecodeRuneInString(s.text[s.pos:])
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c):
			s.word(c)
			continue
		case c == '"' || c == '“' || c == '”' || c == '«' || c == '»' || c == '„' || c == '`':
			s.quoted = !s.quoted
		case s.singleQuote(c, size):
			s.single = !s.single
			s.quoted = s.single
		case c == '%':
			s.put("percent")
		case s.inCode(c):
			s.sign(c)
		case c == '.' || c == '!' || c == '?' || c == ':' || c == '\n' || c == '¿' || c == '¡':
			s.inner = false
		case s.isSign(c, size):
			s.sign(c)
		}
		s.pos += size
	}
}

func (s *splitter) sign(c rune) {
	at := len(s.r.arena)
	s.r.arena = utf8.AppendRune(s.r.arena, c)
	s.r.raw = append(s.r.raw, rawWord{from: at, to: len(s.r.arena), sign: true})
}

// singleQuote reports whether a single quotation mark opens or closes a quotation here, as opposed
// to an apostrophe.
func (s *splitter) singleQuote(c rune, size int) bool {
	if c != '\'' && c != '‘' && c != '’' || s.quoted && !s.single {
		return false
	}
	if s.single {
		return c != '‘'
	}
	before, _ := utf8.DecodeLastRuneInString(s.text[:s.pos])
	rest := s.text[s.pos+size:]
	next, _ := utf8.DecodeRuneInString(rest)
	free := s.pos == 0 || unicode.IsSpace(before) || before == '(' || before == ':'
	return c != '’' && free && unicode.IsLetter(next) && strings.ContainsAny(rest, "'’")
}

// isSign reports whether a rune is a meaningful sign. A minus or a slash is one before a digit,
// also after a space, and between words of one letter. Beyond ASCII all signs except punctuation
// and trademark symbols are meaningful: ∪, x², ½, 👍.
func (s *splitter) isSign(c rune, size int) bool {
	switch c {
	case '+', '*', '=', '<', '>', '^', '$', '€', '£', '¥', '&', '|', '~', '@', '°', '#', '√', '≤', '≥', '≠', '×', '÷', '\\', '{', '}', '[', ']':
		return true
	case '-', '−', '/':
		rest := s.text[s.pos+size:]
		if len(rest) > 0 && rest[0] == ' ' {
			rest = rest[1:]
		}
		return len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' || s.betweenLetters(size)
	}
	switch c {
	case '‰', '‱', '′', '″', '§':
		return true
	case '™', '®', '©':
		return false
	}
	return c > unicode.MaxASCII && (unicode.IsSymbol(c) || unicode.IsNumber(c))
}

// betweenLetters reports whether a sign is between two words of one letter, as in a - b.
func (s *splitter) betweenLetters(size int) bool {
	before, behind := strings.TrimRight(s.text[:s.pos], " "), strings.TrimLeft(s.text[s.pos+size:], " ")
	lone := func(letter, beside string) bool { return isLetter(letter[0]) && (beside == "" || !isLetter(beside[0])) }
	n := len(before)
	return n > 0 && behind != "" && lone(before[n-1:], before[max(0, n-2):n-1]) && lone(behind[:1], behind[1:])
}

// word reads the word at pos.
func (s *splitter) word(first rune) {
	r, start, from, opens := s.r, len(s.r.arena), s.pos, !s.inner
	w := rawWord{from: start, quoted: s.quoted}
	w.capital = s.inner && (unicode.IsUpper(first) || unicode.IsTitle(first))
	runes, upper := 0, 0
	for s.pos < len(s.text) {
		c, size := utf8.DecodeRuneInString(s.text[s.pos:])
		switch {
		case unicode.IsDigit(c):
			w.digits = true
		case !unicode.IsLetter(c) && !unicode.IsMark(c) && !s.joins(c, size):
			size = 0
		}
		if size == 0 || runes > 0 && script.IsUnspaced(c) {
			break
		}
		s.pos += size
		runes++
		if unicode.IsUpper(c) {
			upper++
		}
		if s.silent(c) || len(r.arena)-start > maxForm-utf8.UTFMax {
			continue
		}
		r.arena = utf8.AppendRune(r.arena, s.fold(c))
		if script.IsUnspaced(c) {
			break
		}
	}
	w.to = len(r.arena)
	w.label = runes == 1 && s.named(w.capital, first, from)
	w.acronym = runes > 1 && upper == runes
	w.capitals = s.capitals(from, runes, upper, opens)
	s.inner = true
	r.raw = append(r.raw, w)
	if s.apostrophe() {
		s.contraction(w)
	}
}

// named reports whether the single letter at from, which ends at pos, is a name.
func (s *splitter) named(capital bool, first rune, from int) bool {
	return capital && first != 'I' || s.letter(from)
}

// letter reports whether the lower-case letter at from, which ends at pos, is a name, as of a
// variable, a unit or a vitamin: not part of a contraction, not an article and not a conjunction.
func (s *splitter) letter(from int) bool {
	before, behind := strings.TrimRight(s.text[:from], " "), strings.TrimLeft(s.text[s.pos:], " ")
	switch {
	case strings.HasSuffix(s.text[:from], "'"), strings.HasSuffix(s.text[:from], "’"), s.apostrophe(),
		strings.HasPrefix(behind, "-t-"), strings.HasSuffix(before, "-") && s.text[from] == 't': // a-t-il
		return false
	}
	switch s.text[from] {
	case 'c', 'd', 'j', 'l', 'm', 'n', 's', 't':
		return true
	case 'a', 'o', 'y':
		const signs = "+-*/=^<>()"
		return behind == "" || strings.IndexByte(".?!,;:\n"+signs, behind[0]) >= 0 ||
			before != "" && strings.IndexByte(signs, before[len(before)-1]) >= 0
	}
	return false
}

// silent reports whether a rune before pos only separates the thousands of a number.
func (s *splitter) silent(c rune) bool { return (c == ',' || c == '\'') && thousands(s.text[s.pos:]) }

// fold returns a rune in the form that is compared.
func (s *splitter) fold(c rune) rune {
	if s.exact {
		return c
	}
	return unicode.ToLower(c)
}

// joins reports whether a rune between two digits is part of a number.
func (s *splitter) joins(c rune, size int) bool {
	if c != '.' && c != ',' && c != '\'' || s.pos == 0 || s.pos+size >= len(s.text) {
		return false
	}
	return digit(s.text[s.pos-1]) && digit(s.text[s.pos+size])
}

// thousands reports whether the mark before a text separates thousands: three digits follow, or two
// and another mark, as in 12,34,567.
func thousands(text string) bool {
	n := 0
	for n < len(text) && digit(text[n]) {
		n++
	}
	return n == 3 || n == 2 && n < len(text) && text[n] == ','
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func (s *splitter) apostrophe() bool {
	return len(s.text) > s.pos && s.text[s.pos] == '\'' || len(s.text)-s.pos >= 3 && s.text[s.pos:s.pos+3] == "’"
}

// contraction expands a contraction after word w: "what's", "don't", and removes the s of a
// possessive.
func (s *splitter) contraction(w rawWord) {
	size := 1
	if s.text[s.pos] != '\'' {
		size = len("’")
	}
	rest := s.text[s.pos+size:]
	end := 0
	for end < len(rest) && (rest[end]|0x20 >= 'a' && rest[end]|0x20 <= 'z') {
		end++
	}
	r := s.r
	form := r.arena[w.from:w.to]
	switch rest[:end] {
	case "s", "S":
		s.pos += size + end
		if asks(form) {
			s.put("is")
		} else {
			r.raw[len(r.raw)-1].owner = true
		}
	case "t", "T":
		if base, ok := cutSuffix(form, "n"); ok {
			s.pos += size + end
			last := &r.raw[len(r.raw)-1]
			if string(base) == "ca" || string(base) == "wo" {
				base = form // can't, won't
			}
			last.to = last.from + len(base)
			s.put("not")
		}
	case "ll":
		s.pos += size + end
		s.put("will")
	case "d", "D", "re", "ve", "m":
		s.pos += size + end
	}
}

// asks reports whether 's after the word is short for is.
func asks(form []byte) bool {
	switch string(form) {
	case "what", "who", "how", "where", "when", "why", "it", "that", "there", "here":
		return true
	}
	return false
}

// put appends a word that the text only contains in contracted form.
func (s *splitter) put(w string) {
	at := len(s.r.arena)
	s.r.arena = append(s.r.arena, w...)
	s.r.raw = append(s.r.raw, rawWord{from: at, to: len(s.r.arena), quoted: s.quoted})
}
