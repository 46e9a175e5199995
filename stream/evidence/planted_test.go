package evidence_test

import (
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
	"signalbox/stream/numeric/planted"
)

// TestPlantedNumbersOfWholeFacts checks the limits on errors on the path of the product: facts of
// several sentences, lists with semicolons, and claims split from an answer. The sheets are those
// of bench/guard.
func TestPlantedNumbersOfWholeFacts(t *testing.T) {
	t.Parallel()
	const firstSeed = 1_000_000
	seeds := uint64(60)
	if testkit.Race {
		// The race detector is ten times as slow, and nothing here runs in parallel.
		seeds = 10
	}
	var asked, flagged [2]int
	for seed := range seeds {
		var texts []string
		var said []planted.Claim
		for _, s := range planted.Sheets(firstSeed + seed) {
			texts, said = append(texts, s.Facts...), append(said, s.Claims...)
		}
		e := build(t, evidence.Options{}, facts(texts...)...)
		for _, c := range said {
			side := 0
			if c.True {
				side = 1
			}
			v, found := judgeText(t, e, c.Text)
			asked[side]++
			if v >= numeric.Unsupported {
				flagged[side]++
			}
			if v >= numeric.Unsupported == c.True {
				t.Logf("seed %d %v: %q (%s) is %v %+v", seed, c.True, c.Text, c.How, v, found)
			}
		}
	}
	recall, alarms := float64(flagged[0])/float64(asked[0]), float64(flagged[1])/float64(asked[1])
	t.Logf("recall of false numbers %.4f of %d, false alarms %.4f of %d", recall, asked[0], alarms, asked[1])
	if recall < 0.98 || alarms > 0.005 {
		t.Errorf("recall %.4f, want at least 0.98; false alarms %.4f, want at most 0.005", recall, alarms)
	}
}
