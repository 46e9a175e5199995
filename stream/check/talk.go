package check

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/evidence/words"
)

// asks reports whether a claim is a question, which states nothing.
func asks(claim string) bool {
	claim = strings.TrimRightFunc(claim, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'”’»)*_`, r)
	})
	return strings.HasSuffix(claim, "?") || strings.HasSuffix(claim, "？") || strings.HasSuffix(claim, "؟") || echoes(claim)
}

// echoes reports whether a claim is a question without a question mark, such as a title that
// repeats the question. It has a question word, possibly a word that it asks for, and an inverted
// verb ("How much did the company pay"), or begins with such a verb ("Is it open").
func echoes(claim string) bool {
	var form [maxTalk]byte
	folded := foldTo(&form, strings.TrimLeft(claim, " *_#\"“"))
	if beginsWith(folded, asked) {
		return true
	}
	if !beginsWith(folded, questionWords) {
		return false
	}
	for range 3 {
		at := bytes.IndexByte(folded, ' ')
		if at < 0 {
			return false
		}
		folded = folded[at+1:]
		if beginsWith(folded, inverted) {
			return true
		}
	}
	return false
}

// questionWords begin English questions.
//
//nolint:gochecknoglobals // constant table
var questionWords = []string{
	"how much", "how many", "how long", "how far", "how often", "how old", "how", "why", "when",
	"where", "who", "what", "which",
}

// asked are English verbs that begin questions and hardly ever statements.
//
//nolint:gochecknoglobals // constant table
var asked = []string{"is", "are", "was", "were", "does", "did", "has"}

// inverted are English verbs with a subject after them that occur only in questions. "what is" also
// begins statements.
//
//nolint:gochecknoglobals // constant table
var inverted = []string{
	"did the", "does the", "do the", "did a", "does a", "did it", "does it", "did they", "do they",
	"do you", "did you", "do i", "does he", "did he", "did she", "does she", "did we", "do we",
}

// addresses reports whether a claim is about the conversation and not about the world: an offer,
// thanks, an apology, or that something is unknown. It looks at the start of the claim. A claim
// with "that", a colon or a semicolon may state something and is not accepted.
func addresses(claim string) bool {
	// Skip marks of emphasis and quotation.
	for len(claim) > 0 {
		r, size := utf8.DecodeRuneInString(claim)
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			break
		}
		claim = claim[size:]
	}
	var form [maxTalk]byte
	folded := foldTo(&form, claim)
	if !beginsWith(folded, talk) || beginsWith(folded, causes) {
		return false
	}
	return !strings.Contains(claim, " that ") && !strings.ContainsAny(claim, ":;")
}

// introduces reports whether a claim only says that something follows: "Here is the order:". counts
// is set if its only number, up to 99, comes first and counts what follows: "Here are 3 facts:".
func introduces(claim string) (opens, counts bool) {
	const digits = "0123456789"
	var form [maxTalk]byte
	claim = strings.Trim(claim, " *_#\n")
	if !strings.HasSuffix(claim, ":") {
		return false, false
	}
	if !beginsWith(foldTo(&form, claim), introductions) {
		return announces(claim), false
	}
	at := max(0, strings.IndexAny(claim, digits))
	after := strings.TrimLeft(claim[at:], digits)
	n := len(claim) - at - len(after)
	return true, (n == 1 || n == 2) && after[0] == ' ' && !strings.ContainsAny(after, digits) &&
		slices.Contains(introductions, string(foldTo(&form, strings.TrimRight(claim[:at], " *_"))))
}

// mostAnnounced is the maximum number of words in a line that announces something; our choice.
const mostAnnounced = 8

// announces reports whether a line that ends in a colon only names what follows: a few words, one
// of them for an answer or its format, and no number or name.
func announces(line string) bool {
	list := words.Scan(make([]words.Word, 0, mostAnnounced+1), line[:min(len(line), maxLine)])
	found, told := false, false
	for _, w := range list {
		form := announced[w.Hash] || strings.HasSuffix(line[:w.End], "daten") && !soldiers(line[w.Start:w.End])
		if w.Has(words.Number) || w.Has(words.Negation) || w.Has(words.Name) && !form || told && !onward[w.Hash] {
			return false
		}
		found, told = found || form, told || found && verbs[w.Hash]
	}
	return found && len(line) <= maxLine && len(list) <= mostAnnounced
}

// soldiers reports whether a word ends like the German word for data but means people.
func soldiers(word string) bool {
	return strings.HasSuffix(word, "Soldaten") || strings.HasSuffix(word, "soldaten") || strings.HasSuffix(word, "didaten")
}

// verbs say what an answer is, by hash. In a line that only announces, they are followed by words
// of onward.
//
//nolint:gochecknoglobals // constant tables
var (
	verbs  = hashes(`is are was were has have had ist sind war waren hat haben est sont était a ont es son era tiene`)
	onward = hashes(`as in the this that these a below here following follows shown given listed formatted structured
		provided valid json format form schema object list array table record data summary wie als im in folgt unten
		folgende folgenden folgendes hier le la les suivant suivante suivants suivantes dessous comme el la los las
		siguiente siguientes`)
)

// maxLine is the maximum length, in bytes, of a line that announces something.
const maxLine = 80

// announced are words, by hash, for an answer and its possible formats.
//
//nolint:gochecknoglobals // constant table
var announced = hashes(`json result results answer output record records data extraction extracted object list array
	summary table fields values details response following ergebnis ergebnisse antwort ausgabe datensatz daten
	zusammenfassung tabelle felder werte liste résultat résultats réponse données tableau résumé resultado resultados
	respuesta datos tabla resumen`)

// introductions begin lines that introduce something, in English, German, French and Spanish.
//
//nolint:gochecknoglobals // constant table
var introductions = []string{
	"here is", "here are", "here's", "below is", "below are", "as json", "in json", "json", "the json", "the answer as",
	"hier ist", "hier sind", "als json", "voici", "en json", "aquí está", "aquí tienes",
}

// beginsWith reports whether the folded text begins with one of the phrases, as whole words.
func beginsWith(folded []byte, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool {
		return len(folded) >= len(p) && string(folded[:len(p)]) == p && !letterFirst(folded[len(p):])
	})
}

// maxTalk is longer than every phrase in talk.
const maxTalk = 40

// foldTo returns the start of s in lower case, with straight apostrophes. It is stored in form.
func foldTo(form *[maxTalk]byte, s string) []byte {
	n := 0
	for _, r := range s {
		if n+utf8.UTFMax > maxTalk {
			break
		}
		if r == '’' {
			r = '\''
		}
		n += utf8.EncodeRune(form[n:], unicode.ToLower(r))
	}
	return form[:n]
}

func letterFirst(s []byte) bool {
	r, _ := utf8.DecodeRune(s)
	return unicode.IsLetter(r)
}

// talk lists how sentences about the conversation begin in English, German, French and Spanish.
//
//nolint:gochecknoglobals // constant table
var talk = []string{
	"i can help", "i can't", "i cannot", "i can not", "i could not find", "i couldn't find", "i will", "i'll", "i'd be happy", "i would be happy", "i'm happy",
	"i am happy", "i'm glad", "i am glad", "i'm sorry", "i am sorry", "i'm unable", "i am unable", "i'm not able", "i am not able", "i'm not sure", "i am not sure",
	"i don't have", "i do not have", "i don't know", "i do not know", "i have no information", "i hope", "i apologize", "i apologise", "let me", "let us", "let's",
	"feel free", "thank you", "thanks", "if you have any", "if you need any", "if you need more", "if you'd like", "if you would like", "if you want to know",
	"you asked", "you want to know", "you wanted to know", "your question", "happy to help", "glad to help", "sorry", "that is all.", "that's all.", "that is it.", "that's it.", "that is everything.",
	"ich kann ihnen", "ich kann dir", "ich habe keine informationen", "ich weiß nicht", "ich hoffe", "es tut mir leid", "vielen dank", "gerne helfe ich",
	"je peux vous", "je ne peux pas", "je ne sais pas", "je n'ai pas d'information", "n'hésitez pas", "j'espère", "merci", "désolé",
	"puedo ayudar", "no puedo", "no tengo información", "no sé", "espero que", "gracias", "lo siento",
}

// causes begin like thanks but name a cause: "Thanks to its harbour, the town grew."
//
//nolint:gochecknoglobals // constant table
var causes = []string{"thanks to", "gracias a"}
