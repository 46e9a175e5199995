package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestAnAdjectiveTellsWhatIsMeasured checks that "75 cm wide" is compared with the column of
// widths.
func TestAnAdjectiveTellsWhatIsMeasured(t *testing.T) {
	t.Parallel()
	const (
		sizes  = "model Oslo | width 120 | height 75 | depth 60"
		masse  = "Modell: Oslo | Breite: 120 cm | Höhe: 75 cm"
		spoken = "The Oslo desk: width 120 cm, height 75 cm."
	)
	wantSaid(t, []said{
		{sizes, "The Oslo is 120 cm wide.", numeric.Supported},
		{sizes, "The Oslo is 75 cm wide.", numeric.Contradicted},
		{sizes, "The Oslo is 75 cm high.", numeric.Supported},
		{sizes, "The Oslo is 120 cm tall.", numeric.Contradicted},
		{masse, "Oslo ist 120 cm breit.", numeric.Supported},
		{masse, "Oslo ist 75 cm breit.", numeric.Contradicted},
		{spoken, "The Oslo desk is 75 cm high.", numeric.Supported},
		{spoken, "The Oslo desk is 75 cm wide.", numeric.Contradicted},
	})
}
