// Package question decides whether two questions may share an answer.
//
// Sentences that are nearly the same often ask for different things: "turn on" and "turn off", "15
// %" and "18 %", "Austria" and "Australia". Embeddings and n-grams consider such pairs more similar
// than most true paraphrases. This package therefore compares questions word by word and is strict:
// every word of one must have a counterpart in the other, which is the same word, a form of it, or
// a word that a small lexicon lists as equivalent. Unknown words are never optional. Numbers, signs
// and quotations must be the same, and negations must match. Both must ask for the same kind of
// thing (who, when, how, whether ...), and agree in time and in what is, may or must be (mood.go).
// The order of words must agree, except where another order is known to mean the same (order.go),
// and so must prepositions of direction: in English the word order shows who does what to whom.
//
// Read makes a Reading, Compare compares two. The lexicon (folder lexicon) is English with the
// question words and some common words of German, French and Spanish; in other languages only
// questions with the same words match.
//
// The package starts no goroutine, does no I/O and is safe for concurrent use.
package question
