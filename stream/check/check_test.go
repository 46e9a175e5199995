package check_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/check"
	"signalbox/stream/claims"
	"signalbox/stream/evidence"
)

var (
	entails     = check.Inference{Entailment: 0.9, Neutral: 0.08, Contradiction: 0.02}
	isNeutral   = check.Inference{Entailment: 0.1, Neutral: 0.85, Contradiction: 0.05}
	contradicts = check.Inference{Entailment: 0.05, Neutral: 0.05, Contradiction: 0.9}
)

// judge returns the result of a function and records what it was asked.
type judge struct {
	says  func(check.Pair) check.Inference
	err   error
	takes time.Duration // per call

	mu      sync.Mutex
	batches [][]check.Pair
}

func always(i check.Inference) *judge {
	return &judge{says: func(check.Pair) check.Inference { return i }}
}

func (j *judge) Judge(ctx context.Context, pairs []check.Pair) ([]check.Inference, error) {
	j.mu.Lock()
	j.batches = append(j.batches, slices.Clone(pairs))
	j.mu.Unlock()
	time.Sleep(j.takes)
	if j.err != nil {
		return nil, j.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]check.Inference, len(pairs))
	for i, p := range pairs {
		out[i] = j.says(p)
	}
	return out, nil
}

func (j *judge) asked() []check.Pair { return slices.Concat(j.batches...) }

// marker marks every occurrence of some words.
type marker struct {
	words []string
	err   error
	seen  []string // evidence
	q     string
}

func (m *marker) Mark(_ context.Context, facts []string, question, answer string) ([]check.Mark, error) {
	m.seen, m.q = facts, question
	var marks []check.Mark
	for _, w := range m.words {
		if at := strings.Index(answer, w); at >= 0 {
			marks = append(marks, check.Mark{Start: at, End: at + len(w), Score: 0.8})
		}
	}
	return marks, m.err
}

func checker(tb testing.TB, o check.Options) *check.Checker {
	tb.Helper()
	c, err := check.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// wantVerdict checks the verdict on an English claim against one fact, with a model that returns
// says for every pair.
func wantVerdict(t *testing.T, says check.Inference, fact, claim string, want check.Verdict) {
	t.Helper()
	c := checker(t, check.Options{Judge: always(says), English: true})
	got := c.Check(t.Context(), facts(t, fact), "", []check.Claim{{Text: claim}})[0]
	if got.Verdict != want {
		t.Errorf("%q of %q: %s (%s), want %s", claim, fact, got.Verdict, got.Reason, want)
	}
}

func facts(tb testing.TB, texts ...string) *evidence.Evidence {
	tb.Helper()
	var list []evidence.Source
	for i, s := range texts {
		list = append(list, evidence.Source{ID: fmt.Sprintf("f%d", i), Text: s, Fact: true})
	}
	e, err := evidence.New(tb.Context(), list, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

var towers = []string{
	"The Eiffel Tower is 329.6 m tall and was completed on 31 March 1889.",
	"The Tokyo Tower is 332.9 m tall.",
	"The Louvre is a museum in Paris that is closed on Tuesdays.",
}

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		claim string
		kind  claims.Kind
		judge *judge
		want  check.Verdict
		by    check.Stage
		id    string
	}{
		{"code is not checkable", "x = 500", claims.Code, always(contradicts), check.NotCheckable, check.Sentinel, ""},
		{"small talk is not checkable", "sure, gladly", 0, always(contradicts), check.NotCheckable, check.Sentinel, ""},
		{"a question states nothing", "Shall we go to the Louvre?", 0, always(contradicts), check.NotCheckable, check.Sentinel, ""},
		{"an echo of the question states nothing", "How much did the Louvre pay in March", 0, always(entails), check.NotCheckable, check.Sentinel, ""},
		{"nor does one to be answered with yes", "Is the Louvre in Paris open on Tuesdays", 0, always(entails), check.NotCheckable, check.Sentinel, ""},
		{"nor does talk about it", "You asked whether the Louvre is open on Tuesdays.", 0, always(entails), check.NotCheckable, check.Sentinel, ""},
		{
			"nor does a line that something stands behind", "Here is the record of the Louvre as JSON:", 0,
			always(contradicts), check.NotCheckable, check.Sentinel, "",
		},
		{"a clause that only begins so is read", "When the Louvre opened, Paris had a museum.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"two of what the evidence does not speak of are unsupported", "a museum has two lanes", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"thanks state nothing", "Thanks for asking about the Louvre!", 0, always(contradicts), check.NotCheckable, check.Sentinel, ""},
		{"thanks to a cause state something", "Thanks to its guards, the Louvre is safe.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a heading states nothing", "The Louvre in Paris", claims.Heading, always(contradicts), check.NotCheckable, check.Sentinel, ""},
		{"a wrong number in a heading is contradicted", "The Eiffel Tower is 500 m tall", claims.Heading, always(entails), check.Contradicted, check.Numeric, "f0"},
		{"a wrong number wins over entailment", "The Eiffel Tower is 350 m tall.", 0, always(entails), check.Contradicted, check.Numeric, "f0"},
		{"a number found nowhere wins over entailment", "Gerda bought 77 apples.", 0, always(entails), check.Unsupported, check.Numeric, ""},
		{"an offer states nothing", "I can help you with the Louvre in Paris.", 0, always(isNeutral), check.NotCheckable, check.Sentinel, ""},
		{"a gap in knowledge states nothing", "**I don’t have** any figures for the Louvre.", 0, always(isNeutral), check.NotCheckable, check.Sentinel, ""},
		{"a wrong number in an offer is contradicted", "I'll say the Eiffel Tower is 500 m tall.", 0, always(entails), check.Contradicted, check.Numeric, "f0"},
		{"an apology that goes on is read", "I'm sorry that the Louvre is in Rome.", 0, always(contradicts), check.Contradicted, check.NLI, "f2"},
		{"a sentence that only begins alike is read", "Sorrythorpe is near the Louvre.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a sentence of the evidence is supported whatever a judge says", "The **Tokyo Tower** is 332.9 m tall", 0, always(contradicts), check.Supported, check.Sentinel, "f1"},
		{"entailment is supported", "The Louvre stands in Paris.", 0, always(entails), check.Supported, check.NLI, "f2"},
		{"contradiction is contradicted", "The Louvre is open on Tuesdays.", 0, always(contradicts), check.Contradicted, check.NLI, "f2"},
		{"neutral with a name is unsupported", "The Louvre pleases many.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"neutral without anything to name is not checkable", "it is never closed on a museum day", 0, always(isNeutral), check.NotCheckable, check.NLI, ""},
		{"a statement without any sign is read when the evidence speaks of it", "a museum is closed", 0, always(contradicts), check.Contradicted, check.NLI, "f2"},
		{"neutral with the right number as it stands is unsupported", "The Eiffel Tower, 329.6 m, was painted by Gerda.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"entailed with the right number is supported", "The Eiffel Tower is 329.6 m tall.", 0, always(entails), check.Supported, check.NLI, "f0"},
		{"a converted number is supported though the judge is neutral", "The Eiffel Tower is 1,081 feet tall.", 0, always(isNeutral), check.Supported, check.Numeric, "f0"},
		{"a rounded number is supported though the judge contradicts", "The Eiffel Tower is 330 m tall.", 0, always(contradicts), check.Supported, check.Numeric, "f0"},
		{"a converted number with a new name is not settled", "The Eiffel Tower is 1,081 feet tall and stands in Rome.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a converted number among unknown words is not settled", "The Eiffel Tower was sadly buried beneath 1,081 feet of gray volcanic ashes.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a number as it stands does not settle", "The Eiffel Tower measures 329.6 m.", 0, always(isNeutral), check.Unchecked, check.NLI, ""},
		{"a sum that the judge cannot follow is not flagged", "Both monuments together reach a combined height of 662.5 m.", 0, always(isNeutral), check.Unchecked, check.NLI, ""},
		{"a right number in another language is not flagged", "Der Eiffel Tower ist 329,6 m hoch.", 0, always(isNeutral), check.Unchecked, check.NLI, ""},
		{"a converted number with a negation is not settled", "The Eiffel Tower is not 1,081 feet tall.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a claim that shares no word with the evidence is read all the same", "Gerda lives near Hamburg.", 0, always(entails), check.Supported, check.NLI, "f0"},
		{"a claim that shares no word with the evidence is unsupported when the judge is neutral", "Gerda lives near Hamburg.", 0, always(isNeutral), check.Unsupported, check.NLI, ""},
		{"a name in a script without case does not show", "埃菲尔铁塔", 0, always(isNeutral), check.NotCheckable, check.NLI, ""},
		{"without a judge the right number word for word is supported", "Tokyo Tower is 332.9 m tall.", 0, nil, check.Supported, check.Numeric, "f1"},
		{"without a judge other words leave it unchecked", "The Tokyo Tower, painted in Rome, is 332.9 m tall.", 0, nil, check.Unchecked, check.Sentinel, ""},
		{"without a judge a word too many leaves it unchecked", "The Tokyo Tower is sadly 332.9 m tall.", 0, nil, check.Unchecked, check.Sentinel, ""},
		{"without a judge a word left out leaves it unchecked", "The Tower is 332.9 m tall.", 0, nil, check.Unchecked, check.Sentinel, ""},
		{"without a judge a number alone leaves it unchecked", "pizza weighs 332,9 m", 0, nil, check.Unchecked, check.Sentinel, ""},
		{"without a judge a name is unchecked", "The Louvre stands in Paris.", 0, nil, check.Unchecked, check.Sentinel, ""},
		{"without a judge a wrong number is contradicted", "The Tokyo Tower is 400 m tall.", 0, nil, check.Contradicted, check.Numeric, "f1"},
		{"without a judge a number found nowhere is unsupported", "Gerda bought 77 apples.", 0, nil, check.Unsupported, check.Numeric, ""},
		{"a judge that fails leaves what numbers say", "Tokyo Tower is 332.9 m tall.", 0, &judge{err: errors.New("down")}, check.Supported, check.Numeric, "f1"},
		{"a judge that fails supports nothing else", "The Louvre stands in Paris.", 0, &judge{err: errors.New("down")}, check.Unchecked, check.Sentinel, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := check.Options{}
			if tt.judge != nil {
				o.Judge = tt.judge
			}
			c, e := checker(t, o), facts(t, towers...)
			claim := check.Claim{Text: tt.claim, Kind: tt.kind}
			got := c.Check(t.Context(), e, "", []check.Claim{claim})[0]
			if got.Verdict != tt.want || got.By != tt.by || got.ID != tt.id {
				t.Errorf("%v by %v from %q, want %v by %v from %q: %+v", got.Verdict, got.By, got.ID, tt.want, tt.by, tt.id, got)
			}
			if (got.Source < 0) != (got.Premise == "") || (got.Source < 0) != (tt.id == "") {
				t.Errorf("source %d with premise %q", got.Source, got.Premise)
			}
			if failed := tt.judge != nil && tt.judge.err != nil; failed != (got.Err != nil) || failed && !errors.Is(got.Err, tt.judge.err) {
				t.Errorf("error %v", got.Err)
			}
			if quick, final := c.Quick(e, claim); final && quick != got {
				t.Errorf("final quick verdict %+v, checked %+v", quick, got)
			}
		})
	}
}

func TestNoEvidence(t *testing.T) {
	t.Parallel()
	j := always(entails)
	c := checker(t, check.Options{Judge: j, Marker: &marker{}})
	for _, e := range []*evidence.Evidence{nil, facts(t)} {
		for claim, want := range map[string]check.Verdict{
			"The Louvre stands in Paris.": check.Unchecked, "It is 5 m tall.": check.Unchecked, "sure, gladly": check.NotCheckable, "Is it 5 m tall?": check.NotCheckable,
		} {
			if got := c.Check(t.Context(), e, "", []check.Claim{{Text: claim}})[0]; got.Verdict != want || got.Err != nil {
				t.Errorf("%q: %+v, want %v", claim, got, want)
			}
			if _, final := c.Quick(e, check.Claim{Text: claim}); !final {
				t.Errorf("%q: a model should read it against nothing", claim)
			}
		}
		r, err := c.Text(t.Context(), e, "", "The Louvre stands in Paris. It is 5 m tall.")
		if err != nil || r.Verdict != check.Unchecked || len(r.Claims) != 2 {
			t.Errorf("report %+v, %v, want two unchecked claims", r, err)
		}
	}
	if len(j.batches) > 0 {
		t.Error("the judge was asked without evidence")
	}
}

func TestAllClaimsGoToTheJudgeInOneBatchEachPairOnce(t *testing.T) {
	t.Parallel()
	j := always(entails)
	c, e := checker(t, check.Options{Judge: j}), facts(t, towers...)
	list := []check.Claim{
		{Text: "The Louvre stands in Paris."}, {Text: "sure, gladly"}, {Text: "The Louvre stands in Paris."}, {Text: "The Eiffel Tower was built by many."},
	}
	c.Check(t.Context(), e, "", list)
	if len(j.batches) != 1 {
		t.Fatalf("%d batches, want 1", len(j.batches))
	}
	seen := map[check.Pair]bool{}
	perClaim := map[string]int{}
	for _, p := range j.asked() {
		if seen[p] {
			t.Errorf("pair %q was asked twice", p)
		}
		seen[p] = true
		perClaim[p.Claim]++
	}
	if perClaim[list[1].Text] != 0 || perClaim[list[0].Text] == 0 || perClaim[list[0].Text] > 2 || perClaim[list[3].Text] != 2 {
		t.Errorf("pairs by claim: %v", perClaim)
	}
}

func TestFinalClaimsAreNotAsked(t *testing.T) {
	t.Parallel()
	j := always(entails)
	c, e := checker(t, check.Options{Judge: j}), facts(t, towers...)
	c.Check(t.Context(), e, "", []check.Claim{{Text: "The Eiffel Tower is 350 m tall."}, {Text: "sure, gladly"}, {Text: "Gerda bought 77 apples."}})
	if len(j.batches) != 0 {
		t.Errorf("asked %q", j.asked())
	}
}

func TestAClaimThatPointsBackIsReadWithItsContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		claim check.Claim
		want  string
	}{
		{"a pronoun", check.Claim{Text: "It is closed on Tuesdays in Paris.", Context: "I like the Louvre."}, "I like the Louvre. It is closed on Tuesdays in Paris."},
		{"a pronoun of another language", check.Claim{Text: "Il se trouve à Paris.", Context: "Le Louvre."}, "Le Louvre. Il se trouve à Paris."},
		{"a claim with its own subject", check.Claim{Text: "Paris has the Louvre.", Context: "I like it."}, "Paris has the Louvre."},
		{"a cell with its heads", check.Claim{Text: "closed on Tuesdays", Context: "Louvre, Paris", Kind: claims.Cell}, "Louvre, Paris: closed on Tuesdays"},
		{"a long context is clipped after a word", check.Claim{Text: "It is in Paris.", Context: strings.Repeat("Louvre ", 60)}, strings.TrimSpace(strings.Repeat("Louvre ", 28)) + " It is in Paris."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := always(entails)
			checker(t, check.Options{Judge: j}).Check(t.Context(), facts(t, towers...), "", []check.Claim{tt.claim})
			for _, p := range j.asked() {
				if p.Claim != tt.want {
					t.Errorf("asked %q, want %q", p.Claim, tt.want)
				}
			}
			if len(j.asked()) == 0 {
				t.Error("not asked")
			}
		})
	}
}

func TestACancelledCheckAsksNobodyAndSupportsNothing(t *testing.T) {
	t.Parallel()
	j, m := always(entails), &marker{}
	c, e := checker(t, check.Options{Judge: j, Marker: m}), facts(t, towers...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := c.Check(ctx, e, "", []check.Claim{{Text: "The Louvre stands in Paris."}, {Text: "The Eiffel Tower is 350 m tall."}})
	if got[0].Verdict != check.Unchecked || !errors.Is(got[0].Err, context.Canceled) {
		t.Errorf("%+v, want unchecked with the context's error", got[0])
	}
	if got[1].Verdict != check.Contradicted || got[1].Err != nil {
		t.Errorf("%+v, want contradicted by numbers", got[1])
	}
	if len(j.batches) > 0 || m.seen != nil {
		t.Error("a model was asked")
	}
}

func TestAnAnswerOfTheJudgeThatIsNoneIsAFailure(t *testing.T) {
	t.Parallel()
	nan := float32(0)
	nan /= nan
	for name, says := range map[string]check.Inference{"above 1": {Entailment: 2}, "not a number": {Entailment: nan}, "below 0": {Neutral: -1}} {
		c := checker(t, check.Options{Judge: always(says)})
		if got := c.Check(t.Context(), facts(t, towers...), "", []check.Claim{{Text: "The Louvre stands in Paris."}})[0]; got.Verdict != check.Unchecked || got.Err == nil {
			t.Errorf("%s: %+v, want unchecked with an error", name, got)
		}
	}
}

func TestAnAnswerOfTheWrongLengthIsAFailure(t *testing.T) {
	t.Parallel()
	c := checker(t, check.Options{Judge: mute{}})
	if got := c.Check(t.Context(), facts(t, towers...), "", []check.Claim{{Text: "The Louvre stands in Paris."}})[0]; got.Verdict != check.Unchecked || got.Err == nil {
		t.Errorf("%+v, want unchecked with an error", got)
	}
}

// mute is a judge that returns nothing.
type mute struct{}

func (mute) Judge(context.Context, []check.Pair) ([]check.Inference, error) { return nil, nil }

func TestTheSurerPremiseDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		old, fresh check.Inference
		want       check.Verdict
		id         string
	}{
		"surer of the contradiction": {check.Inference{Contradiction: 0.95}, check.Inference{Entailment: 0.6}, check.Contradicted, "f0"},
		"surer of the entailment":    {check.Inference{Contradiction: 0.6}, check.Inference{Entailment: 0.95}, check.Supported, "f1"},
	} {
		j := &judge{says: func(p check.Pair) check.Inference {
			if strings.Contains(p.Premise, "old") {
				return tt.old
			}
			return tt.fresh
		}}
		e := facts(t, "Paris is old.", "Paris is fresh.")
		if got := checker(t, check.Options{Judge: j}).Check(t.Context(), e, "", []check.Claim{{Text: "We like Paris."}})[0]; got.Verdict != tt.want || got.ID != tt.id {
			t.Errorf("%s: %+v, want %v from %s", name, got, tt.want, tt.id)
		}
	}
}

func TestPermutedFactsGiveTheSameVerdicts(t *testing.T) {
	t.Parallel()
	list := []string{
		"The Eiffel Tower is 329.6 m tall and was completed on 31 March 1889.", "The Tokyo Tower is 332.9 m tall.",
		"Marie Curie won the Nobel Prize in Physics in 1903.", "Bananas grow in Ecuador and ripen within 12 weeks.",
		"The firm Acme sold 4,500 pumps in 2023.", "Lake Geneva holds 89 cubic kilometres of water.",
	}
	said := []check.Claim{
		{Text: "The Eiffel Tower is 330 m tall."},
		{Text: "The Eiffel Tower is 332.9 m tall."},
		{Text: "Marie Curie won in 1911."},
		{Text: "Bananas come from Ecuador."},
		{Text: "Acme sold 5,400 pumps in 2023."},
		{Text: "Lake Geneva is in Peru."},
		{Text: "Gerda bought 77 apples."},
		{Text: "It holds 89 km³ of water.", Context: "We saw Lake Geneva."},
	}
	// The judge decides only by the words of the pair, as a model does.
	c := checker(t, check.Options{Judge: &judge{says: func(p check.Pair) check.Inference {
		switch (len(p.Premise) + len(p.Claim)) % 3 {
		case 0:
			return entails
		case 1:
			return contradicts
		}
		return isNeutral
	}}})
	verdicts := func(texts []string) []string {
		var out []string
		for _, r := range c.Check(t.Context(), facts(t, texts...), "", said) {
			out = append(out, fmt.Sprint(r.Verdict, r.By, r.Premise))
		}
		return out
	}
	want := verdicts(list)
	r := rand.New(rand.NewPCG(1, 2))
	for range 30 {
		mixed := slices.Clone(list)
		r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		if diff := cmp.Diff(want, verdicts(mixed)); diff != "" {
			t.Fatalf("facts %q (-in order +mixed):\n%s", mixed, diff)
		}
	}
}

func TestConcurrentChecksGiveTheSameVerdicts(t *testing.T) {
	t.Parallel()
	c, e := checker(t, check.Options{Judge: always(isNeutral), Fusion: fusion(t, byEntailment)}), facts(t, towers...)
	list := []check.Claim{{Text: "The Louvre stands in Paris."}, {Text: "The Eiffel Tower is 350 m tall."}, {Text: "The Tokyo Tower is 1,092 feet tall."}}
	want := c.Check(t.Context(), e, "", list)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if diff := cmp.Diff(want, c.Check(t.Context(), e, "", list)); diff != "" {
					t.Errorf("results differ:\n%s", diff)
					return
				}
				for i := range list {
					c.Quick(e, list[i])
				}
			}
		})
	}
	wg.Wait()
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 9} {
		if _, err := check.New(check.Options{Premises: n}); err == nil {
			t.Errorf("%d premises are taken", n)
		}
	}
}

func TestPremisesBoundsThePairsOfAClaim(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{0: 2, 1: 1, 3: 3, 8: 3} {
		j := always(entails)
		e := facts(t, "Paris is large.", "Paris is old.", "Paris is famous.")
		checker(t, check.Options{Judge: j, Premises: n}).Check(t.Context(), e, "", []check.Claim{{Text: "We like Paris."}})
		if got := len(j.asked()); got != want {
			t.Errorf("premises %d: %d pairs, want %d", n, got, want)
		}
	}
}

// free is a judge without cost.
type free struct{}

func (free) Judge(_ context.Context, pairs []check.Pair) ([]check.Inference, error) {
	return make([]check.Inference, len(pairs)), nil
}
