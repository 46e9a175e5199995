package report

import (
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"

	"signalbox/proxy/decisionlog"
)

// Ratings are the scores of responses in [0,1], by request.
type Ratings map[rated]float64

type rated struct{ tenant, id string }

// Of returns the score of the response to a tenant's request; ok is false if it was not rated.
func (r Ratings) Of(tenant, id string) (score float64, ok bool) {
	score, ok = r[rated{tenant, id}]
	return score, ok
}

// maxRatings is the maximum number of ratings, which equals the maximum of outcomes that a proxy
// stores.
const maxRatings = 1_000_000

// ReadRatings reads an export of outcomes: one JSON object per line, with tenant, id and score.
// Outcomes without a score are left out. An unreadable line is an error that names it, and so are
// more ratings than maxRatings.
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
