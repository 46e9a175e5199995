package words

// stopWords are function words of English, German, French and Spanish: they say nothing about the
// subject of a sentence.
//
//nolint:gochecknoglobals // constant table
var stopWords = table(
	"a", "an", "the", "and", "or", "but", "of", "in", "on", "at", "to", "for", "by", "with", "from", "as", "is", "are",
	"was", "were", "be", "been", "being", "has", "have", "had", "do", "does", "did", "it", "its", "it's", "this", "that",
	"these", "those", "he", "she", "they", "them", "his", "her", "their", "we", "our", "you", "your", "i", "my", "there",
	"which", "who", "whom", "whose", "what", "when", "where", "while", "than", "then", "so", "such", "also", "into",
	"about", "over", "under", "between", "up", "out", "can", "could", "may", "might", "will", "would", "should", "must",
	"not", "no", "nor", "only", "very", "more", "most", "some", "any", "each", "other", "after", "before", "during",
	"however", "therefore", "because", "if", "per", "via", "just", "around", "approximately", "roughly", "nearly",
	"almost", "least", "less", "fewer", "exactly", "according",
	"der", "die", "das", "den", "dem", "des", "ein", "eine", "einen", "einem", "einer", "eines", "und", "oder", "aber",
	"von", "vom", "im", "ist", "sind", "war", "waren", "wurde", "wurden", "wird", "werden", "hat", "haben", "hatte",
	"mit", "auf", "für", "zu", "zum", "zur", "bei", "nach", "aus", "als", "auch", "sich", "sie", "es", "er", "wir",
	"nicht", "dass", "wie", "über", "unter", "etwa", "rund", "noch", "nur",
	"le", "la", "les", "un", "une", "du", "et", "ou", "mais", "est", "sont", "était", "été", "il", "elle", "ils", "elles",
	"en", "dans", "par", "pour", "sur", "avec", "au", "aux", "ce", "cette", "ces", "qui", "que", "dont", "se", "sa", "son",
	"ses", "ne", "pas", "plus", "environ",
	"el", "los", "las", "una", "unos", "unas", "y", "o", "pero", "es", "son", "fue", "era", "por", "para", "con", "sin",
	"del", "al", "su", "sus", "lo", "como", "más", "de", "han", "ha",
)

// negations deny what their sentence says, in the languages with the most traffic.
//
//nolint:gochecknoglobals // constant table
var negations = table(
	"not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "without", "cannot", "nowhere", "hardly", "lacks",
	"nicht", "kein", "keine", "keinen", "keinem", "keiner", "keines", "nie", "niemals", "niemand", "nichts", "ohne", "weder",
	"pas", "jamais", "aucun", "aucune", "rien", "sans", "ni", "nunca", "ningún", "ninguna", "ninguno", "nadie", "nada", "sin",
	"não", "nem", "nenhum", "nenhuma", "sem", "non", "mai", "nessun", "nessuno", "nessuna", "senza", "geen", "niet", "nooit",
	"не", "нет", "ни", "никогда", "без", "nie", "nigdy", "bez", "لا", "ليس", "لم", "لن", "غير", "नहीं", "मत", "बिना", "tidak", "bukan",
	"değil", "yok", "inte", "ingen", "ikke", "aldrig", "không", "chưa", "아니", "없다", "않는다", "נו", "לא", "אין",
)

func table(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, w := range list {
		m[w] = true
	}
	return m
}
