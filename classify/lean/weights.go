package lean

// The weights of the features in the order of Features, and behind them the bias. The fit weighed
// 1.4 turns that lean like one that does not.
//
//nolint:gochecknoglobals // constant tables
var (
	withCosine = [NumFeatures + 1]float64{
		-2.028, -0.511, -0.454, 32.374, 1.291, -1.508, 9.198, 6.657, 8.806, 0.444, 0.515, 15.796, 0.058,
	}
	without = [NumFeatures + 1]float64{
		-2.215, 0.787, 0.093, 20.374, 1.432, -1.297, 8.746, 6.962, 6.708, 11.661, -0.669, 0.000, 2.0,
	}
)
