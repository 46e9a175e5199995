package check

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
)

// Fusion turns the features of a claim into its support. It consists of a forest of regression
// trees over Features, a logistic calibration of their sum, and the thresholds of the verdicts. It
// is data that comes with a model; load it with ReadFusion. Immutable and safe for concurrent use.
type Fusion struct {
	forest     forest
	long       forest // added for long evidence; may be empty
	scale      calibrationData
	longScale  calibrationData
	thresholds Thresholds
	short      Thresholds // for short evidence
}

// Thresholds turn support and the probability of contradiction, both in [0,1], into verdicts.
type Thresholds struct {
	// Supported is the support from which a claim counts as entailed.
	Supported float64 `json:"supported"`
	// Contradicted is the judge's probability of contradiction from which a claim with neutral
	// support counts as contradicted.
	Contradicted float64 `json:"contradicted"`
	// Unsupported is the support below which a claim counts as neutral. Between it and Supported
	// the claim is undecided.
	Unsupported float64 `json:"unsupported"`
	// Alone is the neutral support below which a claim is flagged even if the evidence has every
	// name of it and is more than a fact or two. The default 0 flags none.
	Alone float64 `json:"alone"`
}

// DefaultThresholds returns the thresholds of a judge without a Fusion: the more likely outcome
// wins. Support is then the highest probability of entailment.
func DefaultThresholds() Thresholds {
	return Thresholds{Supported: 0.5, Contradicted: 0.5, Unsupported: 0.5}
}

func (t Thresholds) validate() error {
	for _, x := range [...]float64{t.Supported, t.Contradicted, t.Unsupported, t.Alone} {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("threshold %v: not in [0, 1]", x)
		}
	}
	if t.Unsupported > t.Supported {
		return fmt.Errorf("threshold unsupported %v: above supported %v", t.Unsupported, t.Supported)
	}
	if t.Alone > t.Unsupported {
		return fmt.Errorf("threshold alone %v: above unsupported %v", t.Alone, t.Unsupported)
	}
	return nil
}

// FusionFormat is the version of the format that ReadFusion reads.
const FusionFormat = 1

// ErrFusion is wrapped by the errors of ReadFusion about the data.
var ErrFusion = errors.New("invalid fusion")

// maxFusionBytes is the maximum size of the file.
const maxFusionBytes = 8 << 20

// fusionData is the file, format 1.
type fusionData struct {
	Format      int             `json:"format"`
	Features    []string        `json:"features"`
	Base        float64         `json:"base"`
	Trees       []treeData      `json:"trees"`
	Calibration calibrationData `json:"calibration"`
	Thresholds  Thresholds      `json:"thresholds"`
	Short       *Thresholds     `json:"thresholds_short"`
	Long        *longData       `json:"long"`
}

// longData is what is added to the sum for long evidence, with the calibration that applies then.
type longData struct {
	Base        float64         `json:"base"`
	Trees       []treeData      `json:"trees"`
	Calibration calibrationData `json:"calibration"`
}

// treeData is a tree as arrays over its nodes; node 0 is the root. Feature is an index into
// features, or -1 for a leaf, which uses Value. A test uses Threshold, Left and Right.
type treeData struct {
	Feature   []int32   `json:"feature"`
	Threshold []float64 `json:"threshold"`
	Left      []int32   `json:"left"`
	Right     []int32   `json:"right"`
	Value     []float64 `json:"value"`
}

type calibrationData struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

func (c calibrationData) validate() error {
	if !finite(c.Offset) || !finite(c.Slope) || c.Slope <= 0 {
		return errors.New("calibration must be finite, the slope above 0")
	}
	return nil
}

// ReadFusion reads a Fusion from JSON:
//
//	{"format": 1,
//	 "features": ["entail_max", "missing_share"], // names of FeatureNames that the trees use
//	 "base": 0.1,                                 // the sum begins with it
//	 "trees": [{"feature": [0, -1, -1], "threshold": [0.5, 0, 0],
//	            "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, -1, 1]}],
//	 // support = 1 / (1 + exp(-(slope * sum + offset)))
//	 "calibration": {"slope": 1, "offset": 0},
//	 // alone is optional
//	 "thresholds": {"supported": 0.5, "contradicted": 0.5, "unsupported": 0.4, "alone": 0.1},
//	 // optional: if the best premise is from a source of at most 150 words
//	 "thresholds_short": {...},
//	 // optional: for longer sources, added to the sum, with a calibration of its own
//	 "long": {"base": 0, "trees": [...], "calibration": {...}}}
//
// A test goes left if its feature is at most its threshold. ReadFusion returns an error that wraps
// ErrFusion for unknown and repeated keys, unknown features, indices out of range, nodes with two
// parents or none, numbers that are not finite, and a slope that is not above 0.
func ReadFusion(r io.Reader) (*Fusion, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFusionBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read fusion: %w", err)
	}
	if len(data) > maxFusionBytes {
		return nil, fmt.Errorf("read fusion: %w: more than %d bytes", ErrFusion, maxFusionBytes)
	}
	var d fusionData
	if err := json.Unmarshal(data, &d, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("read fusion: %w: %w", ErrFusion, err)
	}
	f, err := d.fusion()
	if err != nil {
		return nil, fmt.Errorf("read fusion: %w: %w", ErrFusion, err)
	}
	return f, nil
}

func (d *fusionData) fusion() (*Fusion, error) {
	if d.Format != FusionFormat {
		return nil, fmt.Errorf("format %d: only %d is known", d.Format, FusionFormat)
	}
	names, err := d.places()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(d.Calibration.validate(), d.Thresholds.validate()); err != nil {
		return nil, err
	}
	short := d.Thresholds
	if d.Short != nil {
		short = *d.Short
	}
	if err := short.validate(); err != nil {
		return nil, fmt.Errorf("thresholds_short: %w", err)
	}
	f := &Fusion{short: short, scale: d.Calibration, longScale: d.Calibration, thresholds: d.Thresholds}
	if f.forest, err = grow(d.Base, d.Trees, names); err != nil {
		return nil, err
	}
	if d.Long == nil {
		return f, nil
	}
	if err := d.Long.Calibration.validate(); err != nil {
		return nil, fmt.Errorf("long: %w", err)
	}
	f.longScale = d.Long.Calibration
	if f.long, err = grow(d.Long.Base, d.Long.Trees, names); err != nil {
		return nil, fmt.Errorf("long: %w", err)
	}
	return f, nil
}

// places returns the indices into Features of the features that the file names.
func (d *fusionData) places() ([]int32, error) {
	var at []int32
	for _, name := range d.Features {
		i := int32(slices.Index(featureNames[:], name))
		if i < 0 {
			return nil, fmt.Errorf("feature %q: unknown", name)
		}
		if slices.Contains(at, i) {
			return nil, fmt.Errorf("feature %q: named twice", name)
		}
		at = append(at, i)
	}
	return at, nil
}

// Support returns the support of a claim, in [0,1]. features must be those of Features; long says
// that the source of its best premise has more than 150 words. It does not allocate.
func (f *Fusion) Support(features []float64, long bool) float64 { //nolint:revive // a feature of the claim
	sum, scale := f.forest.sum(0, features), f.scale
	if long {
		sum, scale = f.long.sum(sum, features), f.longScale
	}
	return logistic(scale.Slope*sum + scale.Offset)
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
