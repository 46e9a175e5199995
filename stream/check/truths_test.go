package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestTruthsBesideChangesAndFields checks that true claims are not flagged because of a change that
// is planned or about something else, a negative field name, or text between a heading and a list.
func TestTruthsBesideChangesAndFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ fact, claim string }{
		{"The customer switched from the basic plan to the premium plan.", "The customer is on the premium plan."},
		{"The office moved from the old harbour to the new harbour.", "The office is at the new harbour."},
		{"The logo was changed from a red fox to a red bear.", "The logo is a red bear."},
		{"The office moved from Bonn to Cologne, but the lab is in Bonn.", "The lab is in Bonn."},
		{"The office will be moved from Bonn to Cologne.", "The office is in Bonn."},
		{"The office was not moved from Bonn to Cologne.", "The office is in Bonn."},
		{"Support for the app was extended from Android to iOS.", "Android is supported."},
		{"The service was expanded from Germany to Austria.", "The service is available in Germany."},
		{`{"no_show": true, "guest": "Kent"}`, "The guest Kent is a no show."},
		{`{"never_expires": true}`, "It never expires."},
		{`{"smoking": false,"hotel":"Kent"}`, "Smoking is prohibited at the hotel Kent."},
		{`{"order":"R-77","shipped":false}`, "Order R-77 will be shipped."},
		{`{"invoice":"R-77","paid":false}`, "Invoice R-77 has to be paid."},
		{`[{"name":"Lamp","in_stock":false},{"name":"Desk","price":5}]`, "The Desk is in stock."},
		{"## Not included\n- Breakfast\n\nThese are part of every booking, free of charge:\n- Parking", "Parking is included."},
		{"- [ ] docs for the login page\n- [x] search", "The login page is finished."},
		{"- [x] Find missing files", "Files are missing."},
	} {
		got := checker(t, check.Options{Judge: always(entails), English: true}).
			Check(t.Context(), facts(t, c.fact), "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict == check.Contradicted || got.Verdict == check.Unsupported {
			t.Errorf("%q of %q: %s (%s)", c.claim, c.fact, got.Verdict, got.Reason)
		}
	}
}

// TestTheEntriesOfAListWithoutANameAreCounted checks that the entries of an untitled list are
// counted, although the evidence does not say what they are.
func TestTheEntriesOfAListWithoutANameAreCounted(t *testing.T) {
	t.Parallel()
	const dashes = "- Login fails on Safari\n- Export is slow. It takes long.\n- Dark mode flickers"
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{dashes, "There are three open issues.", check.Unchecked},
		{dashes, "There are 3 open issues.", check.Unchecked},
		{dashes, "There are four open issues.", check.Unsupported},
		{dashes + "\n\nThat is all.", "There are 3 open issues.", check.Unsupported},
		{dashes, "Three exports are slow.", check.Unsupported},
		{`["Login fails", "Export is slow", "Dark mode"]`, "There are three open issues.", check.Unchecked},
		{`["Login fails", "Export is slow", "Dark mode"]`, "There are 5 open issues.", check.Unsupported},
	} {
		got := checker(t, check.Options{Judge: always(isNeutral), English: true}).
			Check(t.Context(), facts(t, c.fact), "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%q of %q: %s (%s)", c.claim, c.fact, got.Verdict, got.Reason)
		}
	}
}
