package check

import (
	"slices"
	"strings"
	"testing"
)

// TestRivalsAreWords checks that every entry of rivals.txt is one word, occurs once in its line,
// and excludes no form of its own group.
func TestRivalsAreWords(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(rivalList) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		groups := map[uint64]int{}
		list := strings.Split(line, " / ")
		for i, group := range list {
			for word := range strings.SplitSeq(group, "|") {
				h := hashOf(word)
				if other, known := groups[h]; h == 0 || known && other != i {
					t.Errorf("%q of %q is no word of one group", word, line)
				}
				groups[h] = i
			}
		}
		if len(list) < 2 {
			t.Errorf("%q excludes nothing", line)
		}
	}
	if right := hashOf("right"); !slices.Contains(rivals()[hashOf("left")], right) {
		t.Error("left and right are no rivals")
	}
}
