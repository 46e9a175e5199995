package main

import (
	"context"
	_ "embed" // of what package main reads
	"encoding/json"
	"fmt"
	"strings"
)

// Sentences as they occur in answers about a text. Each set was written by an author who had seen
// neither the product nor its rules. Sets 1 to 5: fifty texts of many kinds, ten of them in German,
// French or Spanish, with two true and two false sentences each, mostly about numbers. The true
// ones restate, convert, add, divide, add a length of time to a date, or name a day of the week.
// Sets 6 to 10: sixty texts, ten or twelve in these languages, with four of each, hardly any about
// numbers. The false ones have another person, opposite, negation, exception or day; in sets 8 to
// 10 one in four is invented. Each set was measured before it was inspected; except for set 10, the
// rules were then developed further with it in view. ADR 67 and 68 have both figures.
//
//go:embed testdata/answers.jsonl
var answersSets string

// answers checks these sentences, set by set.
func (b *bench) answers(ctx context.Context, r *report) error {
	var list []pair
	for line := range strings.Lines(answersSets) {
		var row struct {
			Set         int
			Facts       facts
			True, False []string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			return err
		}
		add := func(label string, texts []string) {
			for _, text := range texts {
				list = append(list, pair{Facts: row.Facts, Answer: text, Label: label, Source: fmt.Sprintf("set %02d", row.Set)})
			}
		}
		add(supported, row.True)
		add(unsupported, row.False)
	}
	all, err := b.judgeSome(ctx, list)
	if err != nil {
		return err
	}
	for _, set := range sourcesOf(all) {
		own := of(all, set)
		r.figure("answers, "+set+": true, flagged", share(own, supported, unsupported), "")
		r.figure("answers, "+set+": false, flagged", share(own, unsupported, unsupported), "")
		r.figure("answers, "+set+": false, called supported", share(own, unsupported, supported), "")
	}
	b.dump("answers", all)
	return nil
}
