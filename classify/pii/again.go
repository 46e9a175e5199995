package pii

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A person who is named in full once is called by a part of the name elsewhere: Rachel Okonjo,
// Hello Rachel.

// again adds to spans, which are sorted, the occurrences in text of the first or last word of a
// full name in spans. Words with another meaning are excluded, and so are all words in lines of
// code.
func again(ctx context.Context, text string, spans []Span) ([]Span, error) {
	parts := partsOf(text, spans)
	if len(parts) == 0 {
		return spans, nil
	}
	found := len(spans)
	s, lines := scanner{text: text}, judge{text: text}
	for i, look, k := 0, 0, 0; i < len(text); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return spans, err
			}
			look = i + bytesPerLook
		}
		for k < found && spans[k].End <= i {
			k++
		}
		free := len(text)
		if k < found {
			free = spans[k].Start
		}
		if i >= free {
			i = spans[k].End
			continue
		}
		if !s.capitalAt(i) || s.wordBefore(i) {
			i++
			continue
		}
		end := s.fullWord(i)
		score, known := parts[text[i:end]]
		p := Span{Type: Person, Start: i, End: end, Score: score}
		if known && end <= free && !s.wordAfter(end) && !lines.at(i) && !s.inCode(&p, false) {
			spans = append(spans, p)
		}
		i = max(end, i+1)
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return spans, nil
}

// fullWord returns the end of the letters that begin at i, with hyphens and apostrophes inside.
func (s *scanner) fullWord(i int) int {
	end := s.wordEnd(i)
	for b := s.byteAt(end); b == '-' || b == '\'' && s.capitalAt(end+1); b = s.byteAt(end) {
		next := s.wordEnd(end + 1)
		if next == end+1 {
			break
		}
		end = next
	}
	return end
}

// surePart is the probability of a full name from which its parts are searched for.
const surePart = 0.7

// maxParts is the maximum number of parts of names searched for in a text.
const maxParts = 256

// partsOf returns the first and last words of the full names of people in spans, with the highest
// score of the names that contain them.
func partsOf(text string, spans []Span) map[string]float64 {
	var parts map[string]float64
	for k := range spans {
		p := &spans[k]
		if p.Type != Person || p.Score < surePart && !p.Pattern {
			continue
		}
		value := text[p.Start:p.End]
		first, last := strings.IndexByte(value, ' '), strings.LastIndexByte(value, ' ')
		if first < 0 || !fullNameLike(value) {
			continue
		}
		for _, w := range [...]string{value[:first], value[last+1:]} {
			if !nobodyElse(w) || usual(w) {
				continue
			}
			if parts == nil {
				parts = make(map[string]float64)
			}
			if len(parts) < maxParts {
				parts[w] = max(parts[w], p.Score)
			}
		}
	}
	return parts
}

// nobodyElse reports whether a word of a name has no other meaning as a capitalised word in a
// sentence.
func nobodyElse(word string) bool {
	first, _ := utf8.DecodeRuneInString(word)
	if utf8.RuneCountInString(word) < 3 || !unicode.IsUpper(first) || strings.IndexByte(word, '.') >= 0 ||
		gazetteer.words[word] != 0 {
		return false
	}
	lower := fold(word)
	for _, kind := range [...]string{"function", "noun"} {
		if _, ok := commons[kind][lower]; ok {
			return false
		}
	}
	for _, kind := range [...]string{"german", "abbreviation", "signer"} {
		if _, ok := commons[kind][word]; ok {
			return false
		}
	}
	_, thing := things[lower]
	_, month := calendar[word]
	_, joins := englishWords[lower]
	_, both := alsoWords[word]
	return !thing && !month && !joins && !both
}

// usual reports whether a word of a name is also the name of a month in some language, or a word or
// product that texts and headings capitalise.
func usual(word string) bool {
	_, thing := alsoThings[word]
	_, everyday := commons["everyday"][fold(word)]
	_, name := monthNames[word]
	return thing || everyday || isMonth(word) && !name
}

// monthNames are first names in languages that write months without a capital.
//
//nolint:gochecknoglobals // constant table
var monthNames = wordSet("Jan Julio Maja")

// alsoThings are names that are words of headings, of German, or products, too.
//
//nolint:gochecknoglobals // constant table
var alsoThings = wordSet("Prince Gates Jobs Bridges Waters Read Quick Rush Sage Savage Shepherd Singer Sparks Temple " +
	"Wall Walls Ward Bacon Barber Bean Berry Booth Bright Brook Bolt Camp Castle Chambers Close Constant Crow Curry " +
	"Dear Diamond Dollar Early Flowers Foot Free Frost Gardener Glass Golden Goods Graves Guard Hand Hands Head Heart " +
	"Hunt Iron Justice Keys Lamb Lane Leaf Light Lock Merchant Mills Mist Money Noble Parks Pastor Peak Pike Pipe Plant " +
	"Player Pool Post Prior Ring Round Royal Sand Sands Self Shield Shields Shore Singleton Song Spear Stack Staple " +
	"Steel Sweet Teller Trace Vice Warden Way Weeks Wild Winner Worth Ginger Candy Charity Patience Harmony Melody " +
	"Gene Cliff Rocky Rod Trip Zip Data Build Release Order Product Service Support Team " +
	"Jenkins Docker Apache Maven Pascal Haskell Tesla Dell Disney Bosch Siemens Hilton Safari Siri Alexa Cortana " +
	"Watson Gauss Fourier Turing Apple Amazon Google Excel Word Teams Azure Oracle Perl Rust Scala Kotlin Mercedes " +
	"Ferrari Keller Vogel Mann König Engel Kraft Krebs Lange Ernst Jung Horn Kern Graf Ritter Jäger Bär Adler Stern " +
	"Nagel Hammer Baum Kohl Pfeffer Salz Sauer Reich Hahn Wald Feld Bach Brand Funk Sturm Block Stumpf Kunst Ernte " +
	"Stock Straße Domingo Mercado Iglesia Guerra Castillo Puente Reina Bravo Rico Fuentes Rojo Nieves Noël Boulanger " +
	"Mer Lion Mouton Colombe Villa Valle Ponte Chiesa Campo Porta Franca Luce Leone Leite Groot Jong Koning Bos")

// alsoWords are names that are words of a sentence, too.
//
//nolint:gochecknoglobals // constant table
var alsoWords = wordSet("Will Mark Bill Rose Grant Frank Faith Hope Grace Art Rich Young Page Miles Drew Chase " +
	"Chance Dean Guy Jack Pat Rob Sue Ray Don Main Law Price " +
	"Bush Stone Wood Woods Field Fields Church Park Banks Rice Bell " +
	"Ford Case Cross Day Long Short Small Little Brown Black White Green Gray Grey Gold Silver Snow Winter Summer " +
	"Autumn Baker Cook Carpenter Hall Hill Hills Lake Rivers West East North South Best Good Love Power Powers Speed " +
	"Marks Sharp Swift Stark Strong Wise True Hunter Mason Cooper Taylor Turner Fisher Archer Porter Carter Parker " +
	"Miller Weaver Butler Bishop Pope Knight Earl Duke Baron Major Judge Fox Wolf Swan Finch Drake Robin Jay Dawn " +
	"Eve Joy Ivy Lily Violet Daisy Olive Iris Ruby Pearl Amber Crystal Jade Star Sky Storm Rain Reed Banner Bond Cash " +
	"Penny Buck Skip Chip Dash Link Mercy Victor Angel Christian Roman English French Holland Ireland Lang Kurz Gross " +
	"Klein Weiß Schwarz Braun Richter Kaiser Koch Bauer Schneider Fuchs Sommer Herbst Berg Stein Wolff Blanc Noir " +
	"Grand Petit Roy Marin Berger Fleur Claire Aurore Santos Cruz Flores Rios Campos Mar Sol Luz Paz Rey Delgado " +
	"Blanco Rubio Moreno Rossi Bianchi Neri Verdi Marino Vitale Serena Gioia Fiore Bello Bella Costa Monte Conte")
