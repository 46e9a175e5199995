package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestReckonedBeforeTheReader checks that a calculation from the claim's own numbers needs no
// evidence, and that a wrong one is flagged.
func TestReckonedBeforeTheReader(t *testing.T) {
	t.Parallel()
	x := index("Item one was posted on 3 April 2019 at 09:02, and item two at 16:56.",
		"The sheets of Jensen run from 329 to 338.", "The metal cools from 178.0 °C to 29.7 °C.",
		"Russell died in 2018 at 76.", "In the shop 74 % of the sales of 56,100 euros came through phones.",
		"Canada has 88 % and Britain 70 %.", "The festival opens on 9 November and ends on the 12th.",
		"Zverev beat Kay, who is ranked 176.", "The shop pays 95 euros a night for 14 nights, and 41,500 euros a year.",
		"The flat has three bedrooms and two bathrooms.", "Kay has 22 rooms, of which nine are let at 95 euros.")
	for _, tt := range []struct {
		claim string
		want  bool // whether the claim is flagged
	}{
		{"Items one and two are seven hours and 54 minutes apart (09:02 and 16:56).", false},
		{"Items one and two are six hours and 54 minutes apart (09:02 and 16:56).", true},
		{"Jensen fills ten sheets (329 to 338).", false},
		{"Jensen fills 14 sheets (329 to 338).", true},
		{"The metal cools from 178.0 °C to 29.7 °C, a drop of 148.3 °C.", false},
		{"The metal cools from 178.0 °C to 29.7 °C, a drop of 158.3 °C.", true},
		{"He died in 2018 at 76, so Russell was born in 1941 or 1942.", false},
		{"He died in 2018 at 76, and Russell was born in 1944.", true},
		{"At 74 % some 41,514 euros came through phones.", false},
		{"At 74 % some 44,514 euros came through phones.", true},
		{"For 14 nights at 95 euros the shop pays 1,330 euros.", false},
		{"For 14 nights at 95 euros the shop pays 1,430 euros.", true},
		{"Of 56,100 euros 41,500 euros, or 74.0 %, came through phones.", false},
		{"Of 56,100 euros 41,500 euros, or 64.0 %, came through phones.", true},
		{"Of the rooms nine are let, so Kay has 13 left.", false},
		{"Kay has 13 rooms so cold that nine are let.", true},
		{"With a cat Kay would pay 140 euros.", false},
		{"Kay would not let 140 rooms.", true},
		{"You'd pay Kay 140 euros.", false},
		{"For 14 nights at 99 euros the shop pays 1,386 euros.", true},
		{"Russell had 3 children, died in 2018 and married in 2015.", true},
		{"So far Kay has let 1,900 rooms.", true},
		{"Rooms are let to guests, so far by 1,900 firms.", true},
		{"The flat has two bedrooms and three bathrooms.", true},
		{"Britain has 18 pointed roofs.", true},
		{"Britain lies 18 points behind Canada.", false},
		{"Britain lies 28 points behind Canada.", true},
		{"It lasts from 9 November to 12 November, three days.", false},
		{"It lasts from 9 November to 12 November, 13 days.", true},
		{"The festival ends on 12 November.", false},
		{"Zverev beat Kay, who is ranked 176th.", false},
		{"Zverev beat Kay, who is ranked 167th.", true},
	} {
		verdict, findings := x.Check(nil, tt.claim, "")
		if (verdict >= numeric.Unsupported) != tt.want {
			t.Errorf("%q: %v, flagged %v wanted: %+v", tt.claim, verdict, tt.want, findings)
		}
	}
}
