package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"signalbox/proxy/decisionlog"
)

// Ratings are how good the answers to requests were, in [0,1].
type Ratings map[rated]float64

type rated struct{ tenant, id string }

// Of is how good the answer to a request of a tenant was; ok is false where nobody has said.
func (r Ratings) Of(tenant, id string) (score float64, ok bool) {
	score, ok = r[rated{tenant, id}]
	return score, ok
}

// maxRatings is how many ratings are kept, which is as many as a proxy keeps outcomes at most.
const maxRatings = 1_000_000

// ReadRatings reads an export of outcomes: a JSON object a line, with tenant, id and score. Those
// that nobody has judged are left out. A line that cannot be read is an error that names it, and so
// are more ratings than maxRatings.
func ReadRatings(r io.Reader) (Ratings, error) {
	r, err := plain(r)
	if err != nil {
		return nil, err
	}
	out := make(Ratings)
	lines := decisionlog.NewLines(r, maxLine)
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lines.Number(), err)
		}
		if len(text) == 0 {
			continue
		}
		var o struct {
			Tenant  string   `json:"tenant"`
			ID      string   `json:"id"`
			Score   *float64 `json:"score"`
			Waiting bool     `json:"waiting"`
		}
		err = json.Unmarshal(text, &o)
		switch {
		case err != nil:
		case o.ID == "" || o.Score == nil:
			err = errors.New("id or score is missing")
		case !within(*o.Score, 1):
			err = fmt.Errorf("score %v is not between 0 and 1", *o.Score)
		case o.Waiting:
			continue
		case len(out) >= maxRatings:
			err = fmt.Errorf("there are more than %d ratings", maxRatings)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", lines.Number(), err)
		}
		out[rated{o.Tenant, o.ID}] = *o.Score
	}
}
