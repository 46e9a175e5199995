package compress

import (
	_ "embed" // of the words
	"strings"
)

//go:embed stopwords.txt
var stopwords string

// languages are the function words of the languages that are told apart: words that join and point
// rather than name. The order gives piece.language. Chinese and Japanese are their characters of
// grammar.
//
//nolint:gochecknoglobals // constant table
var languages = func() (all [17]struct{ code, words string }) {
	at := -1
	for line := range strings.Lines(stopwords) {
		if code, ok := strings.CutPrefix(line, "= "); ok {
			at++
			all[at].code = strings.TrimSpace(code)
		} else if !strings.HasPrefix(line, "#") && at >= 0 {
			all[at].words += line
		}
	}
	return all
}()
