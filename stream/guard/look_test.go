package guard

import (
	"strings"
	"testing"
)

// TestWhiteSpaceIsNotKeptForTheForm checks that text which says nothing about the form is neither
// kept nor read again with the next piece.
func TestWhiteSpaceIsNotKeptForTheForm(t *testing.T) {
	t.Parallel()
	blanks := strings.Repeat("\n\n ", 1<<10)
	for name, c := range map[string]struct {
		before, after string // the pieces around many blank ones
		want          form
	}{
		"nothing else":           {"", "", blank},
		"before an object":       {" ", " {", maybe},
		"before prose":           {"", "\n[1] says", prose},
		"behind a bracket":       {" [", "1", json},
		"behind a list":          {"[1]", "", json},
		"before a block of JSON": {"\t", "```json\n", json},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &ledger{job: Job{MayAnnotate: true}, rules: rules{Policy: Policy{Mode: Annotate}}}
			ln := &lane{}
			most := 0
			feed := func(text string) {
				l.look(ln, []byte(text))
				most = max(most, len(ln.head))
			}
			feed(c.before)
			for i := range len(blanks) / 3 {
				feed(blanks[3*i : 3*i+3])
			}
			feed(c.after)
			if ln.form != c.want || most > 2*maxMaybe {
				t.Errorf("form %d, want %d; %d bytes were kept", ln.form, c.want, most)
			}
		})
	}
}
