package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"signalbox/memory/outcomes"
)

// What the product exports of outcomes is what is read.
func TestRatingsAreReadFromAnExportOfOutcomes(t *testing.T) {
	t.Parallel()
	s, _, err := outcomes.Open(outcomes.Options{Limit: 10, Tenants: 2, Waiting: 10})
	if err != nil {
		t.Fatal(err)
	}
	log := ""
	for i, arm := range []string{"control", "control", "canary", "canary", "canary"} {
		id := fmt.Sprintf("r-%d", i)
		s.Decided(outcomes.Outcome{Tenant: "t", ID: id, Model: "m"}, []float32{1, 0})
		if i < 4 { // nobody judges the last
			if _, err := s.Judge("t", id, float64(i)/4, 1, "", "feedback"); err != nil {
				t.Fatal(err)
			}
		}
		log += line(fmt.Sprintf(`"id":%q,"arm":%q,"model":"m","action":{"verb":"use","canary":"m 0.5"}`, id, arm))
	}
	var export bytes.Buffer
	if err := s.Export(&export, ""); err != nil {
		t.Fatal(err)
	}
	log += strings.Replace(line(`"id":"r-0"`), `"t"`, `"another"`, 1) // whose id is the same
	for _, text := range []string{export.String(), zipped(t, export.String())} {
		ratings, err := ReadRatings(strings.NewReader(text))
		if err != nil || len(ratings) != 4 {
			t.Fatalf("%d ratings, %v", len(ratings), err)
		}
		r := sum(t, Options{By: []string{ByTenant, ByArm}, Ratings: ratings}, log)
		if got := r.Total.Rated; got != (Rated{4, 0.375}) {
			t.Errorf("all: %+v", got)
		}
		for _, g := range r.By[0].Groups {
			if want := map[string]int64{"t": 4, "another": 0}[g.Name]; g.Rated.Answers != want {
				t.Errorf("tenant %s has %d rated answers, want %d", g.Name, g.Rated.Answers, want)
			}
		}
		means := r.By[1].Comparisons[0].Means
		if p := means[len(means)-1]; p.Name != "rating" || p.Control.Value != 0.125 || p.Canary.Value != 0.625 || p.Difference.Value != 0.5 {
			t.Errorf("arms: %+v", p)
		}
	}
}

func TestRatingsThatAreNoneAreNamed(t *testing.T) {
	t.Parallel()
	const good = `{"tenant":"t","id":"a","score":1}` + "\n\n"
	for text, want := range map[string]string{
		good + `{"torn`: "line 3: ", good + `{"id":"a"}`: "line 3: id or score is missing", `{"id":"a","score":1.5}`: "line 1: score 1.5 is not between 0 and 1",
		"\x1f\x8bno": "",
	} {
		if _, err := ReadRatings(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
	if got, err := ReadRatings(strings.NewReader(good + `{"tenant":"t","id":"b","score":0,"waiting":true}`)); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}
