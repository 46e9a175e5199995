package check

import (
	"signalbox/stream/evidence"
	"signalbox/stream/numeric"
)

// Features appends the features of a claim to dst, in the order of FeatureNames.
func Features(dst []float64, _ Claim, _ []evidence.Premise, _ []numeric.Finding, _ []Inference) []float64 {
	return dst
}
