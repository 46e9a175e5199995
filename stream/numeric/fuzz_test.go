package numeric_test

import (
	"strings"
	"testing"

	"signalbox/stream/numeric"
)

// changeSeeds are texts about changes, as seeds for fuzzing.
var changeSeeds = []string{
	"The office moved from Bonn to Cologne in May.", "Der Termin wurde von Montag auf Mittwoch verlegt.",
	"raised from 2 GiB to 8 GiB", "9443 (was 8443)", "The old price was 30; it is now 20.", "It is now 20 euros.",
	"up to 50 from 60 to 70 or more, ab 6 bis 7", "from 10 to 12 million, from to from to", "per night per user (seat) each 5",
	"at 23:30 UTC on 3 December, 00:30 CET on 4 December", `{"temp_c":-4.5,"duration_s":540}`, "a monthly fee of 5, 6 and 7, respectively",
	"von \xff auf 5 zu \xc3", "was 5 was 6 now 7 now 8", strings.Repeat("from ", 3) + strings.Repeat("to ", 3), "",
}

func FuzzMoved(f *testing.F) {
	for _, s := range changeSeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		was, is, ok := numeric.Moved(text)
		if !ok && (was != numeric.Stretch{} || is != numeric.Stretch{}) {
			t.Fatalf("no change, and stretches %v, %v", was, is)
		}
		if ok && (was.Start < 0 || was.Start > was.End || was.End > is.Start || is.Start > is.End || is.End > len(text)) {
			t.Fatalf("stretches %v, %v in %d bytes", was, is, len(text))
		}
		if was2, is2, ok2 := numeric.Moved(text); was2 != was || is2 != is || ok2 != ok {
			t.Fatalf("%v, %v, %v the second time", was2, is2, ok2)
		}
		numeric.Present(text)
	})
}

func FuzzIndex(f *testing.F) {
	for i, s := range changeSeeds {
		f.Add(s, changeSeeds[(i+1)%len(changeSeeds)])
		f.Add(s+"\n"+changeSeeds[(i+5)%len(changeSeeds)], s)
	}
	f.Fuzz(func(t *testing.T, facts, claim string) {
		if len(facts) > 4<<10 || len(claim) > 2<<10 {
			t.Skip("longer than a sentence")
		}
		var list []numeric.Sentence
		for s := range strings.SplitSeq(facts, "\n") {
			list = append(list, numeric.Sentence{Text: s, Group: len(list) / 3})
		}
		x := numeric.NewIndex(t.Context(), list)
		verdict, findings := x.Check(nil, claim, facts)
		worst, end := numeric.NotCheckable, 0
		for _, n := range findings {
			if n.Start < end || n.End <= n.Start || n.End > len(claim) {
				t.Fatalf("finding at [%d, %d) behind %d in %d bytes", n.Start, n.End, end, len(claim))
			}
			if n.Sentence < -1 || n.Sentence >= len(list) || !(n.Score >= 0 && n.Score <= 1.000001) {
				t.Fatalf("finding %+v of %d sentences", n, len(list))
			}
			worst, end = max(worst, n.Verdict), n.End
		}
		if worst != verdict {
			t.Fatalf("verdict %v of findings up to %v", verdict, worst)
		}
		if again, _ := x.Check(nil, claim, facts); again != verdict {
			t.Fatalf("verdict %v, and %v the second time", verdict, again)
		}
	})
}
