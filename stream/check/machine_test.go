package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestOutputOfPrograms checks that a judge's objection does not flag a claim whose numbers are in
// the output of a program.
func TestOutputOfPrograms(t *testing.T) {
	t.Parallel()
	const (
		pytest  = "collected 128 items\n\n=========== 2 failed, 126 passed in 14.32s ==========="
		listing = "total 72\n-rw-r--r-- 1 dev staff  1204 Nov 12 10:01 main.go\n-rw-r--r-- 1 dev staff 53211 Nov 12 " +
			"10:02 parser.go"
		pulls = `{"total": 2, "pulls": [{"number": 412, "author": "mira", "additions": 120, "deletions": 8}, ` +
			`{"number": 415, "author": "jon", "additions": 900, "deletions": 41}]}`
		prose = "The team has 12 members, and the office in Graz was opened in May."
	)
	for _, c := range []struct {
		fact, claim string
		judge       check.Inference
		want        check.Verdict
	}{
		{pytest, "126 of 128 tests passed.", contradicts, check.Unchecked},
		{pytest, "The tests took 14.32 seconds.", contradicts, check.Unchecked},
		{pytest, "120 tests passed.", isNeutral, check.Contradicted},
		{listing, "main.go is 1204 bytes.", contradicts, check.Unchecked},
		{pulls, "There are 2 open pull requests.", contradicts, check.Unchecked},
		{pulls, "The PR of mira adds 120 lines.", contradicts, check.Unchecked},
		{pulls, "The PR of jon has 120 additions.", isNeutral, check.Contradicted},
		{prose, "The team of 12 members was dissolved in May.", contradicts, check.Contradicted},
	} {
		wantVerdict(t, c.judge, c.fact, c.claim, c.want)
	}
}
