package numeric_test

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/numeric"
	"signalbox/stream/numeric/planted"
)

// TestPlantedNumbers requires that at least 95 % of the false claims are caught and at most 2 % of
// the true ones are flagged.
func TestPlantedNumbers(t *testing.T) {
	t.Parallel()
	type cell struct{ n, flagged int }
	byHow := map[string]*cell{}
	var total [2]cell
	seeds := uint64(300)
	if testkit.Race {
		// The race detector is ten times as slow, and nothing here runs in parallel.
		seeds = 30
	}
	for seed := range seeds {
		// Sheets of three kinds form one body of evidence, like the facts of one request.
		sheets := planted.Sheets(seed)
		var list []numeric.Sentence
		for _, s := range sheets {
			for _, fact := range s.Facts {
				for _, sentence := range strings.SplitAfter(fact, ". ") {
					list = append(list, numeric.Sentence{Text: strings.TrimSpace(sentence), Group: len(list)})
				}
			}
		}
		x := numeric.NewIndex(t.Context(), regroup(list))
		for _, s := range sheets {
			for _, c := range s.Claims {
				verdict, found := x.Check(nil, c.Text, "")
				flagged := verdict == numeric.Unsupported || verdict == numeric.Contradicted
				key := fmt.Sprintf("%v %s", c.True, c.How)
				if byHow[key] == nil {
					byHow[key] = &cell{}
				}
				side := 0
				if c.True {
					side = 1
				}
				total[side].n++
				byHow[key].n++
				if flagged {
					total[side].flagged++
					byHow[key].flagged++
				}
				if flagged == c.True && byHow[key].n < 40 {
					t.Logf("%v %q (%s) → %v %+v", c.True, c.Text, c.How, verdict, found)
				}
			}
		}
	}
	for how, c := range byHow {
		t.Logf("%-30s flagged %4d of %4d", how, c.flagged, c.n)
	}
	recall, alarms := float64(total[0].flagged)/float64(total[0].n), float64(total[1].flagged)/float64(total[1].n)
	t.Logf("recall of false numbers %.4f of %d, false alarms %.4f of %d", recall, total[0].n, alarms, total[1].n)
	if recall < 0.95 || alarms > 0.02 {
		t.Errorf("recall %.4f, want at least 0.95; false alarms %.4f, want at most 0.02", recall, alarms)
	}
}

// regroup puts a sentence that begins with a pronoun into the group of the previous one.
func regroup(list []numeric.Sentence) []numeric.Sentence {
	group := -1
	for i := range list {
		if !strings.HasPrefix(list[i].Text, "It ") {
			group++
		}
		list[i].Group = group
	}
	return list
}
