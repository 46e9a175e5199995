package question

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

const (
	// maxForm is how many bytes of a word count; longer ones are cut.
	maxForm = 48
	// MaxWords is how many words of a question are compared. Longer texts meet only themselves.
	MaxWords = 64
	// MaxBytes is how long a question may be to be compared, in bytes.
	MaxBytes = 1024
)

// class is how much a word matters.
type class uint8

const (
	key    class = iota // has to be accounted for
	soft                // may stand on one side alone
	filler              // does not matter
	number              // digits, or a word for them
	sign                // + or $
)

// Reading is a question as Compare sees it. It does not refer to the text it was read from. The
// zero value is an empty question, which is the same as none. A Reading may be read again into; as
// long as nobody does, it is safe for concurrent use.
type Reading struct {
	kind      Kind
	negations int
	bare      bool // no word of it asks
	mine      bool // speaks of what is the speaker's
	yours     bool // speaks of what is the listener's
	strict    bool // the order of its words matters: a word of direction, or yes or no
	literal   bool // a question about words
	long      bool // too long to be compared
	words     []token
	arena     []byte // the forms of words
	raw       []rawWord

	mood, maybe mood // what its verbs say, and what they may say besides
	auxiliaries mood // be, do, have and modal
	inverts     bool // one of them asks what somebody else than the speaker does
	passive     bool // it says what is done, and not by whom
	finite      bool // the past of a verb stands near its beginning
	formed      bool // or anywhere
	verb        int  // the raw word with the participle of a passive
	part        part // what the thing asked for does
	byCase      bool // which the case of the question word tells
	things      bool // it asks what somebody does, and not who
	dangling    role // the preposition at its end
	objects     int  // pronouns to which something is done
	fronted     int  // how many words stand before what asks, behind a preposition
}

// token is a word that matters.
type token struct {
	form     []byte // folded; in the arena or in the lexicon
	concepts []uint16
	class    class
	name     bool // began with a capital inside a sentence
	quoted   bool
	meta     bool // speaks about words
	asked    bool // stands for what the question word asks for
	owner    bool // a possessive
	capitals capitals
	verb     bool // the participle of a passive
	role     role // the preposition in front
	chain    role // the same, of all words up to the next one that does not matter
}

// role is the word of direction in front of a word.
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

// rawWord is a word of the text, before anything is known about it.
type rawWord struct {
	from, to int // in the arena
	sign     bool
	digits   bool
	capital  bool // and not the first of its sentence
	label    bool // a single capital letter inside a sentence
	acronym  bool // two capital letters or more
	quoted   bool
	owner    bool // 's stands behind it
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

// Read makes r the reading of text. It allocates only to grow what r holds. What stood in r before
// is gone.
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

// splitter cuts a text into raw words.
type splitter struct {
	r      *Reading
	text   string
	pos    int
	inner  bool // a word came since the sentence began
	quoted bool
	single bool // by a single quotation mark

	end     int    // of the text without blanks
	letters int    // with which it begins
	code    string // the code in it
	coded   int    // where that begins
	exact   bool   // it is a flag, of which capitals count
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

// singleQuote reports whether a single quotation mark opens or closes a quotation here, and is no
// apostrophe.
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

// isSign reports whether a rune is a sign that matters. A minus or a slash is one in front of a digit,
// also behind a space, and between words of one letter. Of signs beyond ASCII all that are no
// punctuation matter, but for those of a brand: ∪, x², ½, 👍.
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

// betweenLetters reports whether a sign stands between two words of one letter, as in a - b.
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
	w.label = w.capital && runes == 1 && first != 'I'
	w.acronym = runes > 1 && upper == runes
	w.capitals = s.capitals(from, runes, upper, opens)
	s.inner = true
	r.raw = append(r.raw, w)
	if s.apostrophe() {
		s.contraction(w)
	}
}

// silent reports whether a rune in front of pos only parts the thousands of a number.
func (s *splitter) silent(c rune) bool { return (c == ',' || c == '\'') && thousands(s.text[s.pos:]) }

// fold returns a rune as it is compared.
func (s *splitter) fold(c rune) rune {
	if s.exact {
		return c
	}
	return unicode.ToLower(c)
}

// joins reports whether a rune between two digits belongs to their number.
func (s *splitter) joins(c rune, size int) bool {
	if c != '.' && c != ',' && c != '\'' || s.pos == 0 || s.pos+size >= len(s.text) {
		return false
	}
	return digit(s.text[s.pos-1]) && digit(s.text[s.pos+size])
}

// thousands reports whether the mark in front of a text parts thousands: three digits follow, or two and
// another mark, as in 12,34,567.
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

// contraction writes out what follows an apostrophe behind word w: "what's", "don't", and drops the s of a possessive.
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

// asks reports whether 's behind the word is short for is.
func asks(form []byte) bool {
	switch string(form) {
	case "what", "who", "how", "where", "when", "why", "it", "that", "there", "here":
		return true
	}
	return false
}

// put appends a word that the text does not spell out.
func (s *splitter) put(w string) {
	at := len(s.r.arena)
	s.r.arena = append(s.r.arena, w...)
	s.r.raw = append(s.r.raw, rawWord{from: at, to: len(s.r.arena), quoted: s.quoted})
}
