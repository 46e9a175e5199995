package numeric_test

import (
	"testing"

	"signalbox/stream/numeric"
)

// TestTruthsBesideNumbersThatLookLikeChanges checks that true claims are not flagged because of a
// planned or denied change, a range, the hours of an event, or words that look like a rise or a
// fall.
func TestTruthsBesideNumbersThatLookLikeChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fact, claim string }{
		{"The fee will be raised from 10 to 20 euros next year.", "The fee is currently 10 euros."},
		{"Die Gebühr wird 2027 von 10 auf 20 Euro erhöht.", "Die Gebühr beträgt derzeit 10 Euro."},
		{"The limit was not raised from 10 to 20 users.", "The limit is 10 users."},
		{"Reduced tickets are sold to children from 6 to 14 years.", "A child of 6 years gets a ticket."},
		{"The price drop applies to orders from 10 to 50 euros.", "The price drop applies to orders of 10 euros."},
		{"The meeting went from 9:00 to 17:00.", "The meeting is at 9:00."},
		{"Meeting: 2026-11-25 09:00-17:00", "The meeting ends at 17:00."},
		{"Termin: 25.11.2026 10:30-11:30 Uhr", "Der Termin endet um 11:30 Uhr."},
		{"The number of errors fell from 9 to 5.", "The number of errors is 5."},
		{"The number of errors fell from 9 to 5.", "The number of errors fell by 4."},
		{"The number of open tickets dropped from 12 to 3.", "There are 3 open tickets."},
		{"The countdown runs from 10 to 1.", "The countdown starts at 10."},
		{"Das Konzert findet statt um 20 Uhr, Einlass ist um 19 Uhr.", "Das Konzert ist um 20 Uhr."},
		{"Fees of the previous 12 months are refunded within 2 months.", "Fees of 12 months are refunded."},
		{"Der Weg steigt von 300 m auf 900 m.", "Das Tal liegt auf 300 m."},
		{"The down payment is 20%.", "You pay 20% up front."},
		{"Es fallen 5 Euro Gebühren an.", "Der Preis erhöht sich um 5 Euro."},
		{"You save up to about 20%.", "Costs are reduced by about 20%."},
		{`{"expires_in": 3600}`, "The token expires in 3600 seconds."},
		{"会员可享20%的折扣。", "会员打八折。"},
		{"Am 20.06. findet das Fest statt.", "Das Fest findet am 20. Juni statt."},
		{"A visita ao museu é no dia 20/06.", "A visita ao museu é em 20 de junho."},
		{"Entrega: 30/05", "A entrega é em 30 de maio."},
		{"Öffnungszeiten: 08.00 - 17.30", "Die Öffnungszeiten beginnen um 8:00 Uhr."},
		{"Horario: lunes a viernes de 7.30 a 18.00 hs.", "El horario es de 7:30 a 18:00."},
		{"Sábado das 8h às 14h.", "Sábado das 8 às 14 horas."},
		{"SUMMER2025: -15 %", "SUMMER2025 gives a discount of 15 %."},
		{"SUMMER2025: -15 %", "With SUMMER2025 it is 15 % less."},
		{"WELCOME10 : -10 €", "Avec WELCOME10, on économise dix euros."},
		{"Children of 6–15 years pay 5 euros.", "A child of 10 years pays 5 euros."},
		{"配車日の48時間前まで無料です。", "配車日の2日前まで無料です。"},
		{"The meeting is on Wednesday at 9:00.", "La réunion est mercredi à 9 h."},
		{"The meeting is on Wednesday at 9:00.", "会议在星期三9点。"},
		{"专业版每月99元。", "专业版年1188元。"},
		{"Das Konzert beginnt um 19:30 Uhr.", "Das Konzert beginnt um halb acht."},
		{"งานจัดขึ้นเมื่อวันที่ 5 มีนาคม 2024", "งานจัดขึ้นเมื่อวันที่ 5 มีนาคม พ.ศ. 2567"},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.fact}})
		if got, findings := x.Check(nil, c.claim, ""); got >= numeric.Unsupported {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.fact, got, findings)
		}
	}
}

// TestOtherDiscountsAndAgesAreFlagged checks that a wrong discount, or an age outside a range, is
// flagged.
func TestOtherDiscountsAndAgesAreFlagged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fact, claim string }{
		{"SUMMER2025: -15 %", "SUMMER2025 gives a discount of 20 %."},
		{"SUMMER: -15 %", "Growth is 15 %, unless coffee is included."},
		{"The change of the price is -15 %.", "The change of the price is 15 %."},
		{"Children of 6–15 years pay 5 euros.", "A child of 20 years pays 5 euros."},
		{"A visita ao museu é no dia 20/06.", "A visita ao museu é em 21 de junho."},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.fact}})
		if got, findings := x.Check(nil, c.claim, ""); got < numeric.Unsupported {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.fact, got, findings)
		}
	}
}

// TestTheWholeOfAPartIsASumOfWhatStandsTogether checks that a total may be the sum of two adjacent
// counts, one of which the claim states.
func TestTheWholeOfAPartIsASumOfWhatStandsTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		flagged     bool
	}{
		{"=== 126 passed, 2 failed in 3.21s ===", "Of the 128 tests, 126 passed.", false},
		{"Passed: 118, failed: 4", "4 of the 122 checks failed.", false},
		{"=== 126 passed, 2 failed in 3.21s ===", "Of the 130 tests, 126 passed.", true},
		{"=== 126 passed, 2 failed in 3.21s ===", "Of the 128 tests, 120 passed.", true},
		{"=== 126 passed, 2 failed in 3.21s ===", "The 128 tests passed.", true},
	} {
		x := numeric.NewIndex(t.Context(), []numeric.Sentence{{Text: c.fact}})
		if got, findings := x.Check(nil, c.claim, ""); got >= numeric.Unsupported != c.flagged {
			t.Errorf("%q beside %q: %v: %+v", c.claim, c.fact, got, findings)
		}
	}
}
