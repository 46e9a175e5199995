package numeric

// Thresholds decide between verdicts. Each is on the agreement of the words around two numbers, as
// a share of the words of the claim, weighted by how rare they are, in [0,1]. A model bundle can
// carry them; the zero value is no useful set.
type Thresholds struct {
	// SameSubject is the agreement from which on another value contradicts; below it the number is
	// unsupported. Default 0.40.
	SameSubject float64 `json:"same_subject"`
	// SwapMargin is by how much another value must fit the claim better than the one that matches,
	// for the number to be that of another subject; its square where the two differ in their names
	// alone. Default 0.24.
	SwapMargin float64 `json:"swap_margin"`
	// DateMargin is SwapMargin for a date, of which a text about one thing has several. Default 0.50.
	DateMargin float64 `json:"date_margin"`
	// SwapFloor is how well that other value must fit at least. Default 0.60.
	SwapFloor float64 `json:"swap_floor"`
	// Stray is the agreement below which a matching number shares no words with the claim, and
	// matches by chance where the evidence speaks of the claim's subject elsewhere. Default 0.05.
	Stray float64 `json:"stray"`
	// Topic is the agreement from which on a sentence speaks of the claim's subject. Default 0.60.
	Topic float64 `json:"topic"`
	// Stated is how well a comparable number must fit the claim to stand in the way of arithmetic:
	// the evidence says what the subject has, and it is another number. Claims of differences are
	// exempt, for they name the subject of a number and mean another. Default 0.75.
	Stated float64 `json:"stated"`
}

// DefaultThresholds were chosen on the generated fact sheets of package planted and on textbook
// sentences with swapped numbers (nli_synthetic, training part).
func DefaultThresholds() Thresholds {
	return Thresholds{SameSubject: 0.40, SwapMargin: 0.24, DateMargin: 0.50, SwapFloor: 0.60, Stray: 0.05, Topic: 0.60, Stated: 0.75}
}
