package pii

import (
	"slices"
	"strings"
	"testing"
)

// Banks, word processors and typesetters keep the groups of a number on one line with spaces at
// which no line is broken.
func TestHardSpacesAreSpacesOfNumbers(t *testing.T) {
	for _, text := range []string{
		"Please use 4111 1111 1111 1111 soon.",
		"Please use DE89 3704 0044 0532 0130 00 soon.",
		"IBAN: GB82 WEST 1234 5698 7654 32",
		"IBAN : FR76 3000 6000 0112 3456 7890 189",
		"Call +1 415 555 2671 or 020 7946 0958.",
		"Le montant est de 1 234 567 890 euros, soit 12 %.",
	} {
		want := found(text, Patterns(text, nil))
		for _, space := range []string{"\u00a0", "\u202f", "\u2007", "\u2009"} {
			hard := strings.ReplaceAll(text, " ", space)
			got := found(hard, Patterns(hard, nil))
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], space, " ")
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q gave %q, want %q", hard, got, want)
			}
		}
	}
}
