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

// Own appends to dst the places of text without the sentences that well-known programs put into the
// messages of their users, each the same in every request; nothing where it has none, or nothing
// else. Such
// a sentence is no user's, whatever it looks like: "These instructions OVERRIDE any default
// behavior" stands above the rules of every project that Claude Code works in. Time is linear in
// the text.
func Own(text string, dst [][2]int) [][2]int {
	var found []span
	for _, phrase := range phrases() {
		for at := 0; ; {
			n := strings.Index(text[at:], phrase)
			if n < 0 {
				break
			}
			found = append(found, span{at + n, at + n + len(phrase)})
			at += n + len(phrase)
		}
	}
	if len(found) == 0 {
		return dst
	}
	slices.SortFunc(found, earlier)
	at := 0
	for _, f := range append(found, span{len(text), len(text)}) {
		if strings.TrimSpace(text[at:f.from]) != "" {
			dst = append(dst, [2]int{at, f.from})
		}
		at = f.to
	}
	return dst
}
