package numeric

// Thresholds decide between verdicts. Unless noted, each is a score in [0,1]: the share of the
// claim's words that agree around two numbers, weighted by rarity. A model bundle can carry them.
// The zero value is not a useful set; start from DefaultThresholds.
type Thresholds struct {
	// SameSubject is the score from which another value contradicts the claim; below it the number
	// is unsupported. Default 0.40.
	SameSubject float64 `json:"same_subject"`
	// SwapMargin is the lead that another value needs over the matching one for the number to
	// belong to another subject. If the two differ only in their names, its square applies. Default
	// 0.24.
	SwapMargin float64 `json:"swap_margin"`
	// DateMargin is SwapMargin for dates, because a text about one thing has several. Default 0.50.
	DateMargin float64 `json:"date_margin"`
	// SwapFloor is the minimum score of that other value. Default 0.60.
	SwapFloor float64 `json:"swap_floor"`
	// Stray is the score below which a matching number counts as a chance match if the evidence is
	// about the claim's subject elsewhere. Default 0.05.
	Stray float64 `json:"stray"`
	// Topic is the score from which a sentence is about the claim's subject. Default 0.60.
	Topic float64 `json:"topic"`
	// Stated is the score at which a comparable number rules out arithmetic, because the evidence
	// states a different number for the subject. Claims of differences are exempt, because they
	// name the subject of one number and mean another. Default 0.75.
	Stated float64 `json:"stated"`
}

// DefaultThresholds returns the defaults. They were chosen on the generated fact sheets of package
// planted and on textbook sentences with swapped numbers (nli_synthetic, training part).
func DefaultThresholds() Thresholds {
	return Thresholds{SameSubject: 0.40, SwapMargin: 0.24, DateMargin: 0.50, SwapFloor: 0.60, Stray: 0.05, Topic: 0.60, Stated: 0.75}
}
