package simulator

import (
	"unicode"
	"unicode/utf8"
)

// maxPieceBytes is the length at which a long word is cut. It gives English prose about 1.3 tokens
// per word, the usual ratio of byte-pair tokenizers, and most CJK scripts a token for every two
// characters.
const maxPieceBytes = 7

// CountTokens returns how many simulated tokens text has. The rule is not any model's tokenizer:
// a word is one token for every 7 bytes or part of them, every other character that is not white
// space is one, and white space belongs to the token after it.
func CountTokens(text string) int {
	n := 0
	for text != "" {
		text = text[pieceLen(text):]
		n++
	}
	return n
}

// eachToken calls yield with every token of text.
func eachToken(text string, yield func(token string)) {
	for text != "" {
		n := pieceLen(text)
		yield(text[:n])
		text = text[n:]
	}
}

// pieceLen returns the length in bytes of the first token of text, which must not be empty. A token
// never ends inside a UTF-8 sequence, so the concatenation of all tokens is text.
func pieceLen(text string) int {
	start := 0
	for start < len(text) {
		r, size := utf8.DecodeRuneInString(text[start:])
		if !unicode.IsSpace(r) {
			break
		}
		start += size
	}
	end := start
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !wordRune(r) {
			if end == start {
				end += size
			}
			break
		}
		if end > start && end+size-start > maxPieceBytes {
			break
		}
		end += size
	}
	return end
}

// wordRune reports whether r continues a word.
func wordRune(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r)
}

// tokenID returns the simulated vocabulary id of a token, in [0, 128000).
func tokenID(token string) int {
	return int(hashString(0, token) % 128000)
}
