package check_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/check"
	"signalbox/stream/claims"
)

// louvre contradicts claims with Rome and entails other claims with Paris.
func louvre(p check.Pair) check.Inference {
	switch {
	case strings.Contains(p.Claim, "Rome"):
		return contradicts
	case strings.Contains(p.Claim, "Paris"):
		return entails
	}
	return isNeutral
}

func TestTextChecksEveryClaimInItsPlace(t *testing.T) {
	t.Parallel()
	const answer = "Sure, gladly! The Löuvre stands in Paris.\n\n- It is closed in Rome.\n\n```\nx = 500\n```\nThe Eiffel Tower is 350 m tall."
	j := &judge{says: louvre}
	r, err := checker(t, check.Options{Judge: j}).Text(t.Context(), facts(t, towers...), "", answer)
	if err != nil {
		t.Fatal(err)
	}
	type row struct{ Text, Verdict, By string }
	var got []row
	for _, cl := range r.Claims {
		if answer[cl.Bytes.Start:cl.Bytes.End] != cl.Text || string([]rune(answer)[cl.Runes.Start:cl.Runes.End]) != cl.Text {
			t.Errorf("claim %+v is not where it says", cl.Claim)
		}
		got = append(got, row{cl.Text, cl.Verdict.String(), cl.By.String()})
	}
	want := []row{
		{"Sure, gladly!", "not_checkable", "sentinel"},
		{"The Löuvre stands in Paris.", "supported", "nli"},
		{"It is closed in Rome.", "contradicted", "nli"},
		{"```", "not_checkable", "sentinel"},
		{"x = 500", "not_checkable", "sentinel"},
		{"```", "not_checkable", "sentinel"},
		{"The Eiffel Tower is 350 m tall.", "contradicted", "numeric"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(j.asked(), func(p check.Pair) bool { return p.Claim == "The Löuvre stands in Paris. It is closed in Rome." }) {
		t.Errorf("asked %q, none with the claim before", j.asked())
	}
	if r.Verdict != check.Unsupported {
		t.Errorf("verdict %v, want unsupported", r.Verdict)
	}
}

func TestTextScoresEveryClaimByTheModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		want         float64
	}{
		{"the least support counts", "The Louvre is fun. The Louvre stands in Paris.", float64(isNeutral.Entailment)},
		{"all supported", "The Louvre stands in Paris.", float64(entails.Entailment)},
		{"no words", "👍", 1},
		{"a question alone is read", "Shall we go?", float64(isNeutral.Entailment)},
		{"talk alone is read", "Let me know about Paris!", float64(entails.Entailment)},
		{"a question beside a statement does not count", "The Louvre stands in Paris. Shall we go?", float64(entails.Entailment)},
		{"a sentence without any sign is read as well", "a museum it is not closed today", float64(isNeutral.Entailment)},
		{"a sentence that shares no word with the facts is read as well", "bananas ripen in Paris", float64(entails.Entailment)},
		{"a wrong number has less than the judge grants it", "The Eiffel Tower in Paris is 350 m tall.", 0.1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := checker(t, check.Options{Judge: &judge{says: louvre}})
			r, err := c.Text(t.Context(), facts(t, towers...), "", tt.answer)
			if err != nil {
				t.Fatal(err)
			}
			if r.Support > tt.want+1e-6 || r.Support < tt.want-0.1 {
				t.Errorf("support %v, want %v", r.Support, tt.want)
			}
		})
	}
}

func TestTextAndCheckAgree(t *testing.T) {
	t.Parallel()
	const answer = "I like the Louvre. It is closed in Rome. The Eiffel Tower is 1,081 feet tall. Gerda bought 77 apples. The Tokyo Tower is 400 m tall. Paris is it!"
	c, e := checker(t, check.Options{Judge: &judge{says: louvre}}), facts(t, towers...)
	r, err := c.Text(t.Context(), e, "", answer)
	if err != nil {
		t.Fatal(err)
	}
	var list []check.Claim
	for i, cl := range r.Claims {
		claim := check.Claim{Text: cl.Text}
		if i > 0 {
			claim.Context = r.Claims[i-1].Text
		}
		list = append(list, claim)
	}
	for i, got := range c.Check(t.Context(), e, "", list) {
		if want := r.Claims[i]; got.Verdict != want.Verdict || got.By != want.By || got.ID != want.ID {
			t.Errorf("%q: checked alone %+v, in the text %+v", list[i].Text, got, want.Result)
		}
	}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	failed := errors.New("down")
	for _, tt := range []struct {
		name   string
		judge  *judge
		marker *marker
		claim  string
		want   check.Verdict
		by     check.Stage
		err    error
	}{
		{"a mark on a claim makes it unsupported", nil, &marker{words: []string{"Rome"}}, "The Louvre stands in Rome.", check.Unsupported, check.Tokens, nil},
		{"a claim without a mark is supported", nil, &marker{words: []string{"Berlin"}}, "The Louvre stands in Paris.", check.Supported, check.Tokens, nil},
		{"a mark wins over entailment", always(entails), &marker{words: []string{"Rome"}}, "The Louvre stands in Rome.", check.Unsupported, check.Tokens, nil},
		{"a contradiction wins over a mark", always(contradicts), &marker{words: []string{"Rome"}}, "The Louvre stands in Rome.", check.Contradicted, check.NLI, nil},
		{"no mark leaves it to the judge", always(isNeutral), &marker{}, "The Louvre stands in Rome.", check.Unsupported, check.NLI, nil},
		{"a mark wins over settled numbers", always(isNeutral), &marker{words: []string{"1,081"}}, "The Eiffel Tower is 1,081 feet tall.", check.Unsupported, check.Tokens, nil},
		{"a marker that fails leaves it to the judge", always(entails), &marker{err: failed}, "The Louvre stands in Rome.", check.Supported, check.NLI, failed},
		{"a judge that fails leaves it to the marker", &judge{err: failed}, &marker{words: []string{"Rome"}}, "The Louvre stands in Rome.", check.Unsupported, check.Tokens, failed},
		{"when both fail it is unchecked", &judge{err: failed}, &marker{err: failed}, "The Louvre stands in Rome.", check.Unchecked, check.Sentinel, failed},
		{"a wrong number needs no mark", nil, &marker{}, "The Eiffel Tower is 350 m tall.", check.Contradicted, check.Numeric, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := check.Options{Marker: tt.marker}
			if tt.judge != nil {
				o.Judge = tt.judge
			}
			c, e := checker(t, o), facts(t, towers...)
			got := c.Check(t.Context(), e, "where?", []check.Claim{{Text: "The Louvre is in Paris."}, {Text: tt.claim}})[1]
			if got.Verdict != tt.want || got.By != tt.by || !errors.Is(got.Err, tt.err) {
				t.Errorf("%+v, want %v by %v with %v", got, tt.want, tt.by, tt.err)
			}
			if !slices.Equal(tt.marker.seen, towers) || tt.marker.q != "where?" {
				t.Errorf("the marker saw %q and %q", tt.marker.seen, tt.marker.q)
			}
			r, err := c.Text(t.Context(), e, "where?", "The Louvre is in Paris. "+tt.claim)
			if err != nil || r.Claims[1].Verdict != tt.want {
				t.Errorf("in a text: %+v, %v, want %v", r, err, tt.want)
			}
		})
	}
}

func TestAMarkTouchesOnlyItsClaim(t *testing.T) {
	t.Parallel()
	c := checker(t, check.Options{Marker: &marker{words: []string{"in Rome"}}})
	list := []check.Claim{{Text: "The Louvre is old."}, {Text: "The Louvre is in Rome."}, {Text: "The Louvre is loved."}}
	for i, got := range c.Check(t.Context(), facts(t, towers...), "", list) {
		if want := []check.Verdict{check.Supported, check.Unsupported, check.Supported}[i]; got.Verdict != want {
			t.Errorf("%q: %+v, want %v", list[i].Text, got, want)
		}
	}
}

func TestExamineGivesTheFeaturesThatTheFusionWeighs(t *testing.T) {
	t.Parallel()
	f := fusion(t, byEntailment)
	c, e := checker(t, check.Options{Judge: &judge{says: louvre}, Fusion: f}), facts(t, towers...)
	const answer = "The Louvre stands in Paris. It is closed in Rome. The Tokyo Tower is tall. Is it? The Eiffel Tower is 350 m tall."
	list, err := c.Examine(t.Context(), e, "", answer)
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Text(t.Context(), e, "", answer)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, cl := range r.Claims {
		if strings.HasSuffix(cl.Text, "?") {
			continue
		}
		x := list[at]
		at++
		if x.Claim != cl.Claim || x.Result != cl.Result || len(x.Inferences) == 0 {
			t.Errorf("examined %+v, checked %+v", x, cl)
		}
		if want := f.Support(x.Features, false); math.Abs(cl.Score-want) > 1e-12 {
			t.Errorf("%q: score %v, support of the features %v", cl.Text, cl.Score, want)
		}
	}
	if at != len(list) {
		t.Errorf("%d claims examined, want %d", len(list), at)
	}
	down := checker(t, check.Options{Judge: &judge{err: errors.New("down")}})
	if _, err := down.Examine(t.Context(), e, "", answer); err == nil {
		t.Error("features without the judge pass for whole")
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for v := check.NotCheckable; v <= check.Contradicted; v++ {
		if got, ok := check.ParseVerdict(v.String()); !ok || got != v {
			t.Errorf("%v is read as %v, %v", v, got, ok)
		}
	}
	if _, ok := check.ParseVerdict("true"); ok {
		t.Error("true is a verdict")
	}
	const n, u, s, un, c = check.NotCheckable, check.Unchecked, check.Supported, check.Unsupported, check.Contradicted
	for _, tt := range []struct {
		list []check.Verdict
		want check.Verdict
	}{
		{nil, u}, {[]check.Verdict{n}, u}, {[]check.Verdict{u, n}, u}, {[]check.Verdict{s, u, n}, s}, {[]check.Verdict{s, un}, un}, {[]check.Verdict{c, s}, un},
	} {
		if got := check.Overall(tt.list); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.list, got, tt.want)
		}
	}
}

func TestCellsAreReadWithTheirHeads(t *testing.T) {
	t.Parallel()
	j := always(entails)
	c := checker(t, check.Options{Judge: j})
	r, err := c.Text(t.Context(), facts(t, towers...), "", "| Tower | City |\n|---|---|\n| Eiffel | of Paris |\n")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(j.asked(), func(p check.Pair) bool { return strings.HasPrefix(p.Claim, "Eiffel, City: ") }) {
		t.Errorf("asked %q for %+v", j.asked(), r.Claims)
	}
	for _, cl := range r.Claims {
		if cl.Kind != claims.Cell {
			t.Errorf("%+v is no cell", cl.Claim)
		}
	}
}
