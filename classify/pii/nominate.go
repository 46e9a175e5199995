package pii

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reach is the amount of text around a sign that is nominated with it, in bytes: a model needs the
// surroundings to recognise a name.
const reach = 96

// Nominate appends to dst the parts of a long text that a token model should read, in the order of
// the text, without overlaps, each cut at white space if there is some within reach. It looks for
// signs of personal data that Patterns cannot find:
//
//   - a capitalised word that does not begin a sentence, in any script that has capitals (Latin,
//     Greek, Cyrillic, Armenian, Georgian);
//   - words that announce a name, a home or an employer, in the languages of the patterns;
//   - a number next to a word for a street.
//
// Scripts without capitals (Han, kana, hangul, Arabic, Hebrew, Thai, Indic) only have the
// announcing words as signs, including titles and suffixes of names (先生, さん, 씨, السيد). A name
// without such a word is not nominated; a caller that must find those has to read the whole text.
//
// Range.Weight is the sum of the signs of a range, so that a caller with room for a few windows can
// take the heaviest. Time is linear, and nothing but dst is allocated. The error is that of ctx,
// which is checked every 64 KiB; the ranges are incomplete in that case.
func Nominate(ctx context.Context, text string, dst []Range) ([]Range, error) {
	n := nominator{s: scanner{text: text}, out: dst}
	n.initial = true
	look := 0
	for i := 0; i < len(text); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return n.out, err
			}
			look = i + bytesPerLook
		}
		switch b := text[i]; {
		case b >= utf8.RuneSelf:
			i = n.wide(i)
		case isLetter(b):
			i = n.latin(i)
		case isDigit(b):
			i = n.digits(i)
		case b == '.' || b == '!' || b == '?' || b == '\n':
			n.initial = n.initial || b != '.' || i+1 >= len(text) || text[i+1] <= ' '
			i++
		default:
			i++
		}
	}
	n.shut()
	return n.out, nil
}

// bytesPerLook is the amount of text read between two checks of the context.
const bytesPerLook = 64 << 10

// longestRun is how much of a run of letters is taken as one word: the cues in a longer one, which
// a script without spaces may have, are looked for in each of its parts.
const longestRun = 4 << 10

// runEnd returns the end of the letters that begin at i, or of their first part.
func (n *nominator) runEnd(i int) int {
	limit := min(len(n.s.text), i+longestRun)
	end := i
	for end < limit && (isLetter(n.s.text[end]) || n.s.text[end] >= utf8.RuneSelf) {
		end++
	}
	if end == limit {
		for end < len(n.s.text) && !utf8.RuneStart(n.s.text[end]) {
			end++
		}
	}
	return end
}

// nominator is one pass over a text. It keeps the current range open because the next sign may be
// near.
type nominator struct {
	s    scanner
	out  []Range
	open bool // the last range of out belongs to this pass and may grow to the end of its last sign
	last int  // end of the last capitalised word

	initial bool // the next word begins a sentence
}

// The weights of signs. Two adjacent capitalised words are more often a name than one; an
// announcing word is the strongest sign.
const (
	weightCapital = 1
	weightPair    = 2
	weightCue     = 3
)

// latin looks at the word that begins with an ASCII letter at i.
func (n *nominator) latin(i int) int {
	end, initial := n.runEnd(i), n.initial
	n.initial = false
	if isUpper(n.s.text[i]) && !initial && n.nameLike(i, end) {
		n.capital(i, end)
		return end
	}
	if cueWords.has(n.s.text[i:end]) {
		n.add(i, end, weightCue)
	}
	return end
}

// nameLike reports whether the capitalised word [i, end) could be one of a name: months, weekdays
// and I are none, and neither is a word of capitals only, unless it stands alone among lower case.
func (n *nominator) nameLike(i, end int) bool {
	if end-i < 2 || isUpper(n.s.text[end-1]) && end-i <= 4 {
		return false
	}
	word := n.s.text[i:end]
	if _, ok := calendar[word]; ok {
		return false
	}
	return true
}

func (n *nominator) capital(i, end int) {
	weight := weightCapital
	if n.last > 0 && i-n.last <= 2 {
		weight = weightPair
	}
	n.last = end
	n.add(i, end, weight)
}

// wide looks at the run of other scripts at i, as far as its next ASCII byte.
func (n *nominator) wide(i int) (end int) {
	r, size := utf8.DecodeRuneInString(n.s.text[i:])
	initial := n.initial
	n.initial = !unicode.IsLetter(r) && (initial || r == '。' || r == '！' || r == '？' || r == '…')
	switch {
	case unicode.IsUpper(r):
		if end = n.runEnd(i); !initial {
			n.capital(i, end)
		}
		return end
	case !unicode.IsLetter(r):
		return i + size
	case spaced(r):
		end = n.runEnd(i)
		if word := n.s.text[i:end]; cueWords.has(word) || !unicode.IsLower(r) && holdsCue(word) {
			n.add(i, end, weightCue)
		}
		return end
	}
	for _, cue := range wideCues {
		if strings.HasPrefix(n.s.text[i:], cue) {
			n.add(i, i+len(cue), weightCue)
			return i + len(cue)
		}
	}
	return i + size
}

// holdsCue reports whether a word of a script without capitals holds one of wideCues: their words
// take endings.
func holdsCue(word string) bool {
	return slices.ContainsFunc(wideCues, func(cue string) bool { return strings.Contains(word, cue) })
}

// digits looks at a number: beside the word of a street it is a house.
func (n *nominator) digits(i int) int {
	end := n.s.digitsEnd(i)
	n.initial = false
	if end-i > 6 {
		return end
	}
	from, to := max(0, i-24), min(len(n.s.text), end+24)
	if hasStreet(n.s.text[from:i]) || hasStreet(n.s.text[end:to]) {
		n.add(i, end, weightPair)
	}
	return end
}

// hasStreet reports whether a word of text is, or ends in, the word of a street.
func hasStreet(text string) bool {
	for len(text) > 0 {
		start := 0
		for start < len(text) && !isLetter(text[start]) && text[start] < utf8.RuneSelf {
			start++
		}
		end := start
		for end < len(text) && (isLetter(text[end]) || text[end] >= utf8.RuneSelf) {
			end++
		}
		word := text[start:end]
		if len(word) >= 3 && streetLike(word) {
			return true
		}
		text = text[end:]
	}
	return false
}

func streetLike(word string) bool {
	if !streetEnds[word[len(word)-1]&31] {
		return false
	}
	for _, suffix := range streetSuffixes {
		k := len(word) - len(suffix)
		if k >= 0 && word[len(word)-1]|0x20 == suffix[len(suffix)-1]|0x20 &&
			strings.EqualFold(word[k:], suffix) {
			return true
		}
	}
	return false
}

// add nominates the surroundings of [start, end).
func (n *nominator) add(start, end, weight int) {
	if k := len(n.out) - 1; n.open {
		if start-n.out[k].End <= 2*reach {
			n.out[k].End = end
			n.out[k].Weight += weight
			return
		}
		n.shut()
	}
	n.out = append(n.out, Range{n.reachBack(start), end, weight})
	n.open = true
}

// shut ends the open range.
func (n *nominator) shut() {
	if n.open {
		last := &n.out[len(n.out)-1]
		last.End = n.reachOn(last.End)
		n.open = false
	}
}

// reachBack returns where the text that goes with a sign at start begins: at a word if white space
// shows one, else between code points.
func (n *nominator) reachBack(start int) int {
	from := max(0, start-reach)
	for k := from; k < start && from > 0; k++ {
		if n.s.text[k] <= ' ' {
			return k + 1
		}
	}
	for from < start && !utf8.RuneStart(n.s.text[from]) {
		from++
	}
	return from
}

// reachOn returns where the text that goes with a sign that ends at end stops.
func (n *nominator) reachOn(end int) int {
	to := min(len(n.s.text), end+reach)
	if to == len(n.s.text) {
		return to
	}
	for k := to; k > end; k-- {
		if n.s.text[k] <= ' ' {
			return k
		}
	}
	for to > end && !utf8.RuneStart(n.s.text[to]) {
		to--
	}
	return to
}

// wordIndex is a set of words, compared without the case of ASCII letters, with a filter in front.
type wordIndex struct {
	words map[string]struct{}
	pairs [32][32]bool // by the first two letters; other bytes count by their low bits
}

func newWordIndex(list string) *wordIndex {
	x := &wordIndex{words: wordSet(list)}
	for w := range x.words {
		x.pairs[w[0]&31][w[1]&31] = true
	}
	return x
}

// longestIndexed is the longest word of an index, in bytes.
const longestIndexed = 24

func (x *wordIndex) has(w string) bool {
	if len(w) < 2 || len(w) > longestIndexed || !x.pairs[w[0]&31][w[1]&31] {
		return false
	}
	var buf [longestIndexed]byte
	b := buf[:copy(buf[:], w)]
	for k, c := range b {
		if isUpper(c) {
			b[k] = c | 0x20
		}
	}
	_, ok := x.words[string(b)]
	return ok
}

//nolint:gochecknoglobals // constant tables
var (
	// cueWords announce a name, a home or an employer.
	cueWords = newWordIndex("name named surname lastname firstname nickname mr mrs ms miss dr " +
		"prof sir dear sincerely regards signed address resident employer employee colleague " +
		"wife husband brother sister daughter son mother father boss manager doctor patient " +
		"client customer born lives lived reside resides born " +
		"heiße heisse heißt herr frau wohne wohnt adresse name geboren straße nombre llamo llama " +
		"vivo vive dirección señor señora nacido nacida " +
		"nom appelle habite monsieur madame né née nome chamo moro mora endereço senhor senhora " +
		"nascido chiamo abito abita indirizzo signor signora nato nata " +
		"naam heet woon woont meneer mevrouw namn heter bor född nazywam imię mieszkam pan pani " +
		"urodzony adım adresim ismim " +
		"зовут имя фамилия живу адрес улица господин госпожа родился родилась")
	// wideCues do the same in scripts that set no spaces, or have no capitals; longer ones come
	// first.
	wideCues = []string{
		"我叫", "我是", "姓名", "名叫", "叫做", "先生", "女士", "小姐", "住在", "地址", "名前", "と申します", "住所", "さん", "様",
		"氏", "殿", "くん", "ちゃん", "이름", "씨", "님", "주소",
		"اسمي", "اسمه", "اسم", "السيد", "السيدة", "عنوان", "שמי", "שמו", "כתובת", "ชื่อ", "นาย",
		"นาง", "คุณ", "ที่อยู่", "नाम", "श्री", "पता",
	}
	// streetSuffixes end the words of streets; in Germanic languages the word is one with its name.
	streetSuffixes = []string{
		"street", "avenue", "road", "lane", "drive", "boulevard", "straße", "strasse", "weg",
		"platz", "gasse", "allee", "rue", "chemin", "calle", "avenida", "plaza", "rua", "travessa",
		"via", "piazza", "viale", "straat", "laan", "plein", "gracht", "singel", "vägen", "gatan",
		"gränd", "torget", "stigen", "ulica", "aleja", "sokak", "caddesi", "mahallesi", "ул",
		"улица", "пр", "проспект", "пер",
	}
	// streetEnds is a filter in front of streetSuffixes, by the low bits of the last byte.
	streetEnds = func() (t [32]bool) {
		for _, w := range streetSuffixes {
			t[w[len(w)-1]&31] = true
		}
		return t
	}()
	calendar = wordSet("Monday Tuesday Wednesday Thursday Friday Saturday Sunday January " +
		"February March April May June July August September October November December")
)
