package numeric_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/stream/numeric"
)

func index(facts ...string) *numeric.Index {
	var list []numeric.Sentence
	for i, s := range facts {
		list = append(list, numeric.Sentence{Text: s, Group: i})
	}
	return numeric.NewIndex(context.Background(), list)
}

func TestCheck(t *testing.T) {
	t.Parallel()
	tower := []string{"The Eiffel Tower is 329.6 m tall and was completed on 31 March 1889.", "The Tokyo Tower is 332.9 m tall. Tickets cost 1,200 yen."}
	for _, tt := range []struct {
		name  string
		facts []string
		claim string
		want  numeric.Verdict
		why   numeric.Reason // of the worst number
	}{
		{"an equal number is supported", tower, "The Eiffel Tower measures 329.6 metres.", numeric.Supported, numeric.SameValue},
		{"a number rounded to its digits is supported", tower, "The Eiffel Tower is 330 m tall.", numeric.Supported, numeric.Rounded},
		{"a hedged number may be coarser", tower, "The Eiffel Tower is about 300 m tall.", numeric.Supported, numeric.Rounded},
		{"a number in another unit is supported", tower, "The Eiffel Tower is 1,081 feet tall.", numeric.Supported, numeric.Converted},
		{"another value for the subject contradicts", tower, "The Eiffel Tower is 350 m tall.", numeric.Contradicted, numeric.OtherValue},
		{"the number of another subject contradicts", tower, "The Eiffel Tower is 332.9 m tall.", numeric.Contradicted, numeric.OtherSubject},
		{"the right number with the wrong unit contradicts", tower, "The Eiffel Tower is 329.6 feet tall.", numeric.Contradicted, numeric.OtherValue},
		{"a number found nowhere is unsupported", tower, "Gerda bought 77 apples.", numeric.Unsupported, numeric.NoSuchNumber},
		{"a claim without numbers is not checkable", tower, "The Eiffel Tower is tall.", numeric.NotCheckable, ""},
		{"numbers that are no facts are not checkable", tower, "2. See step 4 and [7] for v1.2.3.", numeric.NotCheckable, ""},
		{"a date in another notation is supported", tower, "It was completed on 1889-03-31.", numeric.Supported, numeric.SameValue},
		{"a wrong day contradicts", tower, "The Eiffel Tower was completed on 30 March 1889.", numeric.Contradicted, numeric.OtherValue},
		{"a year within its decade is supported", tower, "It dates from the 1880s.", numeric.Supported, numeric.Rounded},
		{"a lower bound that holds is supported", tower, "The Eiffel Tower is more than 300 m tall.", numeric.Supported, numeric.Rounded},
		{"a lower bound that does not hold is caught", tower, "The Eiffel Tower is more than 340 m tall.", numeric.Contradicted, numeric.OtherValue},
		{"a difference follows when the claim says so", tower, "The Tokyo Tower is 3.3 m taller than the Eiffel Tower.", numeric.Supported, numeric.Derived},
		{"a difference does not follow without a word for it", tower, "The Tokyo Tower is 3.3 m tall.", numeric.Contradicted, numeric.OtherValue},
		{"a sum follows", []string{"Plant A made 300 t in May.", "Plant B made 450 t in May."}, "Both plants made a total of 750 t.", numeric.Supported, numeric.Derived},
		{"a percentage of change follows", []string{"Sales rose from 200 units in May to 250 units in June."}, "Sales increased by 25 %.", numeric.Supported, numeric.Derived},
		{"listed things are counted", []string{"The firm has offices in Oslo, Graz, Turin and Porto."}, "The firm has four offices.", numeric.Supported, numeric.Counted},
		{"temperatures convert with their offset", []string{"Water boils at 100 °C."}, "Water boils at 212 °F.", numeric.Supported, numeric.Converted},
		{"years tell apart what is otherwise the same", []string{"Revenue was $5 million in 2022 and $7 million in 2023."}, "Revenue was $7 million in 2022.", numeric.Contradicted, numeric.OtherSubject},
		{"opposite bounds do not agree", []string{"The plan covers more than 300 people."}, "The plan covers fewer than 300 people.", numeric.Contradicted, numeric.OtherValue},
		{"a copied hedge needs the same number", []string{"The kidneys make about 500 mL/day."}, "The kidneys make about 490 mL/day.", numeric.Contradicted, numeric.OtherValue},
		{"half is fifty percent", []string{"50 % of the members voted."}, "Half of the members voted.", numeric.Supported, numeric.Rounded},
		{"a full stop as thousands mark is read", []string{"Die Stadt hat 12.345 Einwohner."}, "The town has 12,345 inhabitants (Einwohner).", numeric.Supported, numeric.SameValue},
		{"no evidence supports no number", nil, "It is 5 m.", numeric.Unsupported, numeric.NoSuchNumber},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, found := index(tt.facts...).Check(nil, tt.claim, "")
			if got != tt.want {
				t.Fatalf("%q: %v, want %v: %+v", tt.claim, got, tt.want, found)
			}
			if tt.why != "" && !slices.ContainsFunc(found, func(f numeric.Finding) bool { return f.Verdict == got && f.Reason == tt.why }) {
				t.Errorf("%q: findings %+v, want reason %q", tt.claim, found, tt.why)
			}
		})
	}
}

func TestContextNamesTheSubject(t *testing.T) {
	t.Parallel()
	x := index("The Eiffel Tower is 330 m tall.", "The Tokyo Tower is 333 m tall.")
	for about, want := range map[string]numeric.Verdict{"Eiffel Tower, height": numeric.Contradicted, "Tokyo Tower, height": numeric.Supported} {
		if got, found := x.Check(nil, "333 m tall", about); got != want {
			t.Errorf("context %q: %v, want %v: %+v", about, got, want, found)
		}
	}
}

func TestLook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, claim string
		want        numeric.Signs
	}{
		{"small talk has no sign", "Sure, I can help you with that!", 0},
		{"numbers", "It weighs 5 kg.", numeric.HasNumber},
		{"dates", "It began in 1889.", numeric.HasDate},
		{"names inside a sentence", "We met in Paris.", numeric.HasName},
		{"a capitalised run at the start", "Marie Curie won it.", numeric.HasName},
		{"capitals", "NASA agreed.", numeric.HasName},
		{"quoted titles", "it was “The trial” then", numeric.HasName},
		{"quantities without a number", "most of them agreed", numeric.HasQuantity},
		{"negation in English", "they don't agree", numeric.HasNegation},
		{"negation in Chinese", "他不来", numeric.HasNegation | numeric.Uncased},
		{"scripts without case are checked to be safe", "هذا برج", numeric.Uncased},
		{"code is no fact", "use `x = 5` there", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := numeric.Look(tt.claim); got != tt.want {
				t.Errorf("signs of %q: %b, want %b", tt.claim, got, tt.want)
			}
			if numeric.Look(tt.claim).Checkable() != (tt.want != 0) {
				t.Errorf("%q: checkable is %v", tt.claim, tt.want == 0)
			}
		})
	}
}

// library returns an index of about n bytes of similar facts about many things: the worst case for
// distinguishing subjects.
func library(n int) *numeric.Index {
	var list []string
	for i := 0; n > 0; i++ {
		s := fmt.Sprintf("Station %c%c%d of the northern line was opened in %d, has %d platforms and served %d,%03d passengers in 2023. Its longest platform measures %d m.",
			'A'+i%26, 'a'+i/26%26, i, 1850+i%150, 2+i%7, 10+i%80, i*37%1000, 90+i%211)
		list = append(list, s)
		n -= len(s)
	}
	return index(list...)
}

func TestCheckDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector empties pools at random")
	}
	x := library(8 << 10)
	dst := make([]numeric.Finding, 0, 16)
	if n := testing.AllocsPerRun(100, func() {
		numeric.Look("Station Ba27 was opened in 1890 and has 5 platforms.")
		_, dst = x.Check(dst[:0], "Station Ba27 was opened in 1890 and has 5 platforms.", "")
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func BenchmarkCheck(b *testing.B) {
	x := library(64 << 10)
	var dst []numeric.Finding
	claims := []string{
		"Station Ba27 of the northern line was opened in 1890 and has 5 platforms.",
		"In total the stations Aa0 and Ba1 served 21,037 passengers, 12 % more than before.",
		"The longest platform of station Ca54 is about 470 feet, which is 40 m longer than that of Da3.",
		"Thank you for the question!",
	}
	took := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		claim := claims[i%len(claims)]
		if numeric.Look(claim).Checkable() {
			_, dst = x.Check(dst[:0], claim, "")
		}
		if len(took) < cap(took) {
			took = append(took, time.Since(start))
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func BenchmarkLook(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		numeric.Look("The tower in the city of Paris is quite tall and people like to climb it.")
	}
}
