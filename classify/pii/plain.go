package pii

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The embedded model was trained on names mostly in English sentences. In other languages of the
// Latin script it takes common words for names. plain reports whether a span is such a word: one in
// lower case by a writer who capitalises, one capitalised only because it begins its sentence, or a
// German noun after a determiner.

// The minimum probabilities of names in such sentences. Set by hand on 1,164 sentences of documents
// in seven languages, and on the probabilities of names in 2,400 others.
const (
	plainLower   = 0.97 // in lower case inside its sentence
	plainAmong   = 0.99 // the same, by a writer who capitalises
	plainInitial = 0.8  // a single word at the start of a sentence
	plainFront   = 0.7  // several words, of which only the first is capitalised
)

func (s *scanner) plain(p *Span, value string) bool {
	first, size := utf8.DecodeRuneInString(value)
	initial := unicode.IsUpper(first) && s.opensClause(p.Start)
	single := strings.IndexByte(value, ' ') < 0
	var least float64
	switch behind := s.wordBehind(p.Start); {
	case unicode.IsLower(first) && lowerCase(value) && !tellsName(behind):
		least = plainLower
		if from, to := lineOf(s.text, p.Start); setsCapitals(s.text[from:to]) {
			least = plainAmong
		}
		if single && counts(behind) {
			least = max(least, plainAmong)
		}
	case value == "Usa", single && p.Type == Person && counts(behind):
		least = 1
	case initial && opensWith(value):
		least = 1
	case initial && single:
		least = plainInitial
	case initial && lowerCase(value[size:]):
		least = plainFront
	}
	if p.Score >= least || s.keyed(p.Start, p.Type) || s.cuedBy(p.Start, beforeName) || s.cuedBy(p.Start, beforeHome) {
		return false
	}
	from, to := lineOf(s.text, p.Start)
	line := s.text[from:to]
	return (!unicode.IsLower(first) || setsCapitals(line)) && foreign(line)
}

// opensWith reports whether all words at the start of a sentence are function words: Buna göre.
// Words that are names in another language do not count (hans, kim).
func opensWith(value string) bool {
	for w := range strings.FieldsSeq(value) {
		word := fold(w)
		_, joins := commons["function"][word]
		_, opens := openers[word]
		if _, usual := commons["everyday"][word]; usual && nobodyElse(w) {
			opens = true
		}
		if _, name := alsoNames[word]; name || !joins && !opens {
			return false
		}
	}
	return true
}

// setsCapitals reports whether a line, or a sentence in it, begins with a capital.
func setsCapitals(line string) bool {
	if unicode.IsUpper(firstLetter(line)) {
		return true
	}
	k := strings.Index(line, ". ")
	return k >= 0 && unicode.IsUpper(firstLetter(line[k:]))
}

// wordBehind returns the word before the one at i, in lower case.
func (s *scanner) wordBehind(i int) string {
	end := len(strings.TrimRight(s.text[max(0, i-cueWidth):i], " ")) + max(0, i-cueWidth)
	if end == i {
		return ""
	}
	return fold(s.text[s.wordStart(end):end])
}

func counts(word string) bool    { _, ok := counting[word]; return ok }
func tellsName(word string) bool { _, ok := telling[word]; return ok }

// opensClause reports whether a sentence begins at i, ignoring list marks and quotation marks.
func (s *scanner) opensClause(i int) bool {
	from := max(0, i-cueWidth)
	before := strings.TrimRight(s.text[from:i], " \t\"'*_`«„“(-•>#")
	if before == "" {
		return from == 0
	}
	end := len(before) - 1
	if before[end] == '.' { // dr. and J. do not end a sentence
		word := end - (&scanner{text: before}).wordStart(end)
		_, joins := commons["function"][fold(before[end-word:end])]
		return word == 0 || word > len("prof") || joins
	}
	return strings.IndexByte("\n!?:|", before[end]) >= 0
}

// foreign reports whether a line is in a language of the Latin script other than English, by its
// function words, or letters that English lacks.
func foreign(line string) bool {
	english, others := tongues(line)
	return others > max(1, english)
}

// tongues counts the words of a line that are English function words, and those of other languages.
func tongues(line string) (english, others int) {
	for line != "" {
		var token string
		token, line = nextToken(line)
		word := fold(strings.Trim(token, ".,;:!?()\"'“”„«»*_`"))
		if _, ok := sharedWords[word]; ok {
			continue
		} else if _, ok := englishWords[word]; ok {
			english++
		} else if _, ok := commons["function"][word]; ok {
			others++
		} else if strings.ContainsAny(word, "ıışğąęłżźśćńőűøåß") {
			others++
		}
	}
	return english, others
}

//nolint:gochecknoglobals // constant tables
var (
	// englishWords are English function words that are rare in other languages.
	englishWords = wordSet("the of and to that with you your this these are it its be been can not by from have " +
		"when if what " +
		"which there were for but my he she his they their our us does did how who where why all any more most " +
		"some than then " +
		"out about after before into under again also always because being both could during each few further " +
		"here him just " +
		"must now off once only other own same she should such them themselves those through too until up very " +
		"while whom " +
		"without yet yourself an nor between against everything never ever even still every much many would")
	// sharedWords are function words of English and of another language.
	sharedWords = wordSet("in is am on or as at no so was over will her do has i me men die had")
	// openers begin Turkish sentences and are not function words of another language.
	openers = wordSet("burada bunun buna bundan şurada orada eğer ancak fakat çünkü sadece yalnız bütün diğer aynı " +
		"aşağıdaki aşağıdakilerden aşağıdakilerin yukarıdaki yukarıda şöyle ayrıca örneğin genellikle böylece")
	// alsoNames are names that are function words in another language.
	alsoNames = wordSet("hans kim per sin sia ella elle noi ti si jan jak ole may will ben can ali ana han har hon tem")
	// counting are determiners of German, Dutch, Spanish, Italian, Portuguese, Polish and Turkish,
	// which precede a thing and hardly ever a name.
	counting = wordSet("dieser diese dieses diesem diesen jeder jede jedes jedem jeden ein eine einen einem " +
		"einer eines kein " +
		"keine keinen keinem keiner welcher welche welches een dit deze geen elke un una uno este esta ese esa " +
		"questo questa " +
		"ogni quale quali qual une um uma essa esse cada ten ta każdy każda bu şu her bir hangi")
	// telling are words that introduce a person's name.
	telling = wordSet("bin ben soy sou sono jestem suis är ich ik yo herr frau señor señora senhor senhora " +
		"signor signora " +
		"meneer mevrouw pan pani bay bayan heiße heisse heet llamo chamo chiamo adım")
)
