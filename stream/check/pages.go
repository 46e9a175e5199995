package check

import "errors"

// pages is how claims are weighed beside a long source. A judge reads two windows of it and can miss the one that matters,
// so that words, which are looked up in more of it, count for more there than beside a short fact.
type pages struct {
	words      float64 // a source of more words is a page
	forest     forest  // what it gives is added to the sum of the other one
	slope      float64
	offset     float64
	thresholds Thresholds
}

// pagesData is the member pages of the file.
type pagesData struct {
	Words       float64         `json:"words"`
	Trees       []treeData      `json:"trees"`
	Calibration calibrationData `json:"calibration"`
	Thresholds  Thresholds      `json:"thresholds"`
}

func (d *pagesData) pages(names []int32) (*pages, error) {
	if !finite(d.Words) || d.Words < 0 {
		return nil, errors.New("words must be finite and at least 0")
	}
	if err := errors.Join(d.Calibration.validate(), d.Thresholds.validate()); err != nil {
		return nil, err
	}
	trees, err := grow(0, d.Trees, names)
	if err != nil {
		return nil, err
	}
	return &pages{words: d.Words, forest: trees, slope: d.Calibration.Slope, offset: d.Calibration.Offset, thresholds: d.Thresholds}, nil
}
