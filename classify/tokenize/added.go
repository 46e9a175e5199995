package tokenize

import (
	"unicode"
	"unicode/utf8"
)

// addedToken is one entry of added_tokens: text that becomes one token before the model processes
// it.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// addedTokens finds added tokens: the leftmost first, then the longest.
type addedTokens struct {
	tokens []addedToken
	trie   *trie // from content to index in tokens; nil if there are none
}

// match is an added token found at bytes [from,to), including the white space that it swallows.
type match struct {
	id       int32
	from, to int
}

func newAddedTokens(tokens []addedToken) *addedTokens {
	a := &addedTokens{tokens: tokens}
	if len(tokens) == 0 {
		return a
	}
	entries := make([]entry, len(tokens))
	for i, t := range tokens {
		entries[i] = entry{t.Content, int32(i)}
	}
	a.trie = newTrie(entries)
	return a
}

func (a *addedTokens) empty() bool { return a.trie == nil }

// next returns the first match at or after at. Bytes before last belong to the match before it.
func (a *addedTokens) next(text string, last, at int) (match, bool) {
	if a.empty() {
		return match{}, false
	}
	for at < len(text) {
		if a.trie.root[text[at]] == 0 {
			at++
			continue
		}
		index, n := a.longest(text[at:])
		if n == 0 {
			at++
			continue
		}
		token := &a.tokens[index]
		from, to := at, at+n
		if token.SingleWord && !standsAlone(text, from, to) {
			at = to // as in the reference: a refused match is skipped as a whole
			continue
		}
		if token.LStrip {
			from = trimRight(text, last, from)
		}
		if token.RStrip {
			to = trimLeft(text, to)
		}
		return match{token.ID, from, to}, true
	}
	return match{}, false
}

func (a *addedTokens) longest(s string) (index int32, length int) {
	n := int32(0)
	index = -1
	for i := range len(s) {
		if n = a.trie.child(n, s[i]); n == 0 {
			break
		}
		if v := a.trie.value[n]; v >= 0 {
			index, length = v, i+1
		}
	}
	return index, length
}

// standsAlone reports whether no word character touches text[from:to].
func standsAlone(text string, from, to int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:from])
	if n > 0 && isWordRune(before) {
		return false
	}
	after, n := utf8.DecodeRuneInString(text[to:])
	return n == 0 || !isWordRune(after)
}

// trimRight moves from left over white space, not past last.
func trimRight(text string, last, from int) int {
	for from > last {
		r, n := utf8.DecodeLastRuneInString(text[last:from])
		if !isSpace(r) {
			break
		}
		from -= n
	}
	return from
}

// trimLeft moves to right over white space.
func trimLeft(text string, to int) int {
	for to < len(text) {
		r, n := utf8.DecodeRuneInString(text[to:])
		if !isSpace(r) {
			break
		}
		to += n
	}
	return to
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r >= '\t' && r <= '\r'
	}
	return unicode.Is(unicode.White_Space, r)
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}
