package origin

import (
	_ "embed" // of the table of phrases
	"slices"
	"strings"
	"sync"
)

//go:embed phrases.txt
var phraseList string

// phrases are the sentences of phrases.txt.
//
//nolint:gochecknoglobals // constant table
var phrases = sync.OnceValue(func() (list []string) {
	for line := range strings.Lines(phraseList) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			list = append(list, line)
		}
	}
	return list
})

// Own appends to dst the ranges of text without the sentences that well-known programs insert into
// their users' messages, identical in every request. found reports whether there is such a
// sentence; without one, or if there is nothing else, nothing is appended. Such a sentence is never
// the user's, whatever it looks like: "These instructions OVERRIDE any default behavior" precedes
// the rules of every project in Claude Code. Time is linear in the text.
func Own(text string, dst [][2]int) (own [][2]int, found bool) {
	var at []span
	for _, phrase := range phrases() {
		for from := 0; ; {
			n := strings.Index(text[from:], phrase)
			if n < 0 {
				break
			}
			at = append(at, span{from + n, from + n + len(phrase)})
			from += n + len(phrase)
		}
	}
	if len(at) == 0 {
		return dst, false
	}
	slices.SortFunc(at, earlier)
	end := 0
	for _, p := range append(at, span{len(text), len(text)}) {
		if p.from > end && strings.TrimSpace(text[end:p.from]) != "" {
			dst = append(dst, [2]int{end, p.from})
		}
		end = max(end, p.to)
	}
	return dst, true
}
