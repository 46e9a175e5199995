// Package question tells whether two questions may share an answer.
//
// Sentences that are nearly the same often ask for different things: "turn on" and "turn off", "15
// %" and "18 %", "Austria" and "Australia". Embeddings and n-grams put such pairs nearer to each
// other than most true paraphrases. So this package reads questions word by word and is suspicious:
// every word of one has to be accounted for in the other, by the same word, a form of it, or a word
// that a small lexicon calls equal. What it does not know it does not excuse. Numbers, signs and
// quotations must be the same, negations balance, both must ask for the same kind of thing (who,
// when, how, whether ...), and be about the same time and about what is, may or must be (mood.go).
// The order of words has to agree but for what is known to say the same in another one (order.go),
// and so have prepositions of direction: who does what to whom is a matter of order in English.
//
// Read makes a Reading, Compare compares two. The lexicon (folder lexicon) is English with the
// question words and some common words of German, French and Spanish; in other languages only
// questions of the same words meet.
//
// The package starts no goroutine, does no I/O and is safe for concurrent use.
package question
