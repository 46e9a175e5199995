package quantity

import "strings"

// role is what a word can be in a number phrase; the bits combine.
type role uint32

const (
	roleCardinal role = 1 << iota
	roleOrdinal
	roleMagnitude // hundred, thousand, million, dozen
	roleMonth
	roleFraction
	roleAnd       // joins parts of a number: and, und, y, et
	roleTo        // joins the ends of a range
	roleBetween   // opens a range whose ends "and" joins
	roleFrom      // opens two numbers that are no range
	roleLabel     // the number after it is a name: step 2, page 3
	roleHedge     // carries word.hedge
	roleThan      // after more, less, fewer
	roleNeedsThan // a hedge only with "than" after it
	roleAt        // before least, most
	roleNeedsAt   // a hedge only with "at" before it
	roleMeridiem  // am, pm: value 0 or 12
	roleEra       // BC, v. Chr.
	roleCentury
	rolePer
	roleSquare
	roleCubic
	roleOf       // of, de: may stand between day and month
	roleYearCue  // in, since, until: a four-digit number after it is a year
	roleArticle  // a, an, ein: one, before a magnitude or a fraction
	roleMinus    // minus, negative
	roleClockCue // o'clock, Uhr
)

// word is what the lexicon knows of a word.
type word struct {
	role  role
	num   float64
	month uint8
	hedge Hedge
	span  bool // tells a length of time: a four-digit number before it may be a year
}

//nolint:gochecknoglobals // constant table
var lexicon = buildLexicon()

func fields(s string) []string { return strings.Fields(s) }

type lexiconBuilder map[string]word

// add merges w into every word of list.
func (b lexiconBuilder) add(list string, w word) {
	for _, name := range fields(list) {
		old := b[name]
		old.role |= w.role
		if w.num != 0 {
			old.num = w.num
		}
		if w.month != 0 {
			old.month = w.month
		}
		if w.hedge != 0 {
			old.hedge = w.hedge
		}
		old.span = old.span || w.span
		b[name] = old
	}
}

func buildLexicon() map[string]word {
	b := lexiconBuilder{}
	b.cardinals()
	b.ordinals()
	b.calendar()
	b.hedges()
	b.frames()
	return b
}

// cardinals leaves out the Spanish "once", eleven: in English it is a frequent word for something
// else.
func (b lexiconBuilder) cardinals() {
	for n, list := range []string{
		0: "zero null zéro cero", 1: "one eins une uno", 2: "two zwei deux dos", 3: "three drei trois tres", 4: "four vier quatre cuatro",
		5: "five fünf cinq cinco", 6: "six sechs seis", 7: "seven sieben sept siete", 8: "eight acht huit ocho", 9: "nine neun neuf nueve",
		10: "ten zehn dix diez", 11: "eleven elf onze", 12: "twelve zwölf douze doce", 13: "thirteen dreizehn treize trece",
		14: "fourteen vierzehn quatorze catorce", 15: "fifteen fünfzehn quinze quince", 16: "sixteen sechzehn seize dieciséis",
		17: "seventeen siebzehn diecisiete", 18: "eighteen achtzehn dieciocho", 19: "nineteen neunzehn diecinueve",
		20: "twenty zwanzig vingt vingts veinte", 21: "veintiuno", 22: "veintidós", 23: "veintitrés", 24: "veinticuatro", 25: "veinticinco",
		30: "thirty dreißig dreissig trente treinta", 40: "forty vierzig quarante cuarenta", //nolint:misspell // French
		50: "fifty fünfzig cinquante cincuenta", 60: "sixty sechzig soixante sesenta", 70: "seventy siebzig septante setenta",
		80: "eighty achtzig huitante ochenta", 90: "ninety neunzig nonante noventa",
	} {
		w := word{role: roleCardinal, num: float64(n)}
		b.add(list, w)
	}
	b.add("a an ein eine einen un una", word{role: roleArticle})
	b.add("hundred hundert cent cents cien ciento 百", word{role: roleMagnitude, num: 100})
	b.add("thousand thousands tausend mille mil 千", word{role: roleMagnitude, num: 1000})
	b.add("million millions millionen mio millón millones mn mln", word{role: roleMagnitude, num: 1e6})
	b.add("billion billions milliarde milliarden mrd milliard milliards bn", word{role: roleMagnitude, num: 1e9})
	b.add("trillion trillions trn billones", word{role: roleMagnitude, num: 1e12})
	b.add("dozen dutzend douzaine docena", word{role: roleMagnitude, num: 12})
	b.add("lakh lakhs", word{role: roleMagnitude, num: 1e5})
	b.add("crore crores", word{role: roleMagnitude, num: 1e7})
	b.add("万 萬", word{role: roleMagnitude, num: 1e4})
	b.add("亿 億", word{role: roleMagnitude, num: 1e8})
	b.add("half hälfte moitié mitad", word{role: roleFraction, num: 0.5})
	b.add("thirds tiers drittel tercios tercio", word{role: roleFraction, num: 1.0 / 3})
	b.add("quarter quarters viertel quart quarts cuartos", word{role: roleFraction, num: 0.25})
	b.add("fifths", word{role: roleFraction, num: 0.2})
	b.add("sixths", word{role: roleFraction, num: 1.0 / 6})
	b.add("eighths", word{role: roleFraction, num: 0.125})
	b.add("tenths", word{role: roleFraction, num: 0.1})
}

func (b lexiconBuilder) ordinals() {
	for n, list := range []string{
		1: "first erste ersten erster première premier primera primero", 2: "second zweite zweiten zweiter deuxième segundo segunda",
		3: "third dritte dritten dritter troisième tercer tercera", 4: "fourth vierte vierten quatrième cuarto cuarta",
		5: "fifth fünfte fünften cinquième quinto", 6: "sixth sechste sechsten sixième sexto", 7: "seventh siebte siebten septième séptimo",
		8: "eighth achte achten huitième octavo", 9: "ninth neunte neunten neuvième noveno", 10: "tenth zehnte zehnten dixième décimo",
		11: "eleventh elfte onzième", 12: "twelfth zwölfte douzième", 13: "thirteenth", 14: "fourteenth", 15: "fifteenth",
		16: "sixteenth", 17: "seventeenth", 18: "eighteenth", 19: "nineteenth", 20: "twentieth", 21: "twenty-first",
	} {
		for _, name := range fields(list) {
			w := b[name]
			w.role |= roleOrdinal
			if w.num == 0 {
				w.num = float64(n)
			}
			b[name] = w
		}
	}
}

func (b lexiconBuilder) calendar() {
	for n, list := range []string{
		1: "january jan januar janvier enero jänner", 2: "february feb februar février febrero", 3: "march mar märz mars marzo",
		4: "april apr avril abril", 5: "may mai mayo", 6: "june jun juni juin junio", 7: "july jul juli juillet julio",
		8: "august aug août agosto", 9: "september sep sept septembre septiembre", 10: "october oct oktober okt octobre octubre",
		11: "november nov novembre noviembre", 12: "december dec dezember dez décembre diciembre",
	} {
		b.add(list, word{role: roleMonth, month: uint8(n)})
	}
	b.add("am a.m", word{role: roleMeridiem})
	b.add("pm p.m", word{role: roleMeridiem, num: 12})
	b.add("bc bce b.c b.c.e", word{role: roleEra})
	b.add("century centuries jahrhundert jahrhunderts siècle siècles siglo", word{role: roleCentury})
	b.add("o'clock uhr", word{role: roleClockCue})
	b.add("in since until till by from of during year before after around circa ca late early mid to through throughout im jahr seit bis en depuis jusqu'en desde hasta año vers von um ende anfang mitte fin début finales principios mediados born founded established season class copyright vor nach zwischen", word{role: roleYearCue})
	b.add(`years year months days weeks age aged old later earlier after before lasted lasting lasts took takes span spanned between for since
		until duration long within over jahre jahren alt später ans âgé après años tarde edad`, word{span: true})
}

func (b lexiconBuilder) hedges() {
	b.add("about around roughly approximately approx circa ca some estimated ungefähr etwa rund zirka environ aproximadamente alrededor cerca unos unas ~ ≈ près approximatively", word{role: roleHedge, hedge: About})
	b.add("nearly almost knapp fast presque casi", word{role: roleHedge, hedge: Nearly})
	b.add("over above exceeding exceeded exceeds exceed beyond upwards über sobre", word{role: roleHedge, hedge: Over})
	b.add("under below unter", word{role: roleHedge, hedge: Under})
	b.add("more greater higher longer larger mehr más", word{role: roleHedge | roleNeedsThan, hedge: Over})
	b.add("plus", word{role: roleHedge | roleNeedsThan, hedge: Over})
	b.add("less fewer lower shorter smaller weniger moins menos", word{role: roleHedge | roleNeedsThan, hedge: Under})
	b.add("约 約", word{role: roleHedge, hedge: About})
	b.add("近", word{role: roleHedge, hedge: Nearly})
	b.add("超", word{role: roleHedge, hedge: Over})
	b.add("过 為 为", word{role: roleThan}) // 超过, 约为
	b.add("least", word{role: roleHedge | roleNeedsAt, hedge: Least})
	b.add("mindestens minimum", word{role: roleHedge, hedge: Least})
	b.add("most", word{role: roleHedge | roleNeedsAt, hedge: Most})
	b.add("höchstens maximum maximal", word{role: roleHedge, hedge: Most})
	b.add("up", word{role: roleHedge | roleNeedsThan, hedge: Most})
	b.add("than als to de que", word{role: roleThan})
	b.add("at au al the zum", word{role: roleAt})
}

func (b lexiconBuilder) frames() {
	b.add("and und y et & plus", word{role: roleAnd})
	b.add("to bis à", word{role: roleTo})
	b.add("between zwischen entre", word{role: roleBetween})
	b.add("from von de desde", word{role: roleFrom})
	b.add("per pro par por /", word{role: rolePer})
	b.add("square sq", word{role: roleSquare})
	b.add("cubic cu", word{role: roleCubic})
	b.add("of de del", word{role: roleOf})
	b.add("minus negative", word{role: roleMinus})
	b.add(`step steps chapter chapters figure figures fig figs table tables section sections page pages pp p equation eq exercise example
		examples appendix footnote note item line lines option question problem version release phase level part no nos number § rule article
		room building schritt kapitel abbildung abb tabelle seite abschnitt version étape chapitre page tableau paso capítulo página tabla figura vol volume issue`,
		word{role: roleLabel})
}
