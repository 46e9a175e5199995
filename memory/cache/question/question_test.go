package question

import (
	"os"
	"strings"
	"testing"
)

// lines reads a file of pairs: tab-separated, the pair last.
func lines(tb testing.TB, name string) [][]string {
	tb.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	var out [][]string
	for l := range strings.Lines(string(data)) {
		out = append(out, strings.Split(strings.TrimSuffix(l, "\n"), "\t"))
	}
	return out
}

func TestDebug(t *testing.T) {
	var a, b Reading
	for _, name := range []string{"minimal_pairs.tsv", "paraphrases.tsv"} {
		var same, n [2]int
		for i, l := range lines(t, name) {
			half := (i + 1) % 2
			p := l[len(l)-2:]
			a.Read(p[0])
			b.Read(p[1])
			d := Compare(&a, &b)
			n[half]++
			if d == Same {
				same[half]++
			}
			if half == 0 && (d == Same) == (name == "minimal_pairs.tsv") {
				t.Logf("%s %d %v %q %q\n   %s\n   %s", name, i+1, d, p[0], p[1], show(&a), show(&b))
			}
		}
		t.Logf("%s even %d/%d odd %d/%d", name, same[0], n[0], same[1], n[1])
	}
}

func show(r *Reading) string {
	s := r.kind.String()
	for i := range r.words {
		s += " " + string(r.words[i].form)
		if r.words[i].class == soft {
			s += "~"
		}
	}
	return s
}
