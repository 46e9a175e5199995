package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestFieldsBoxesAndHeadings checks that evidence without sentences decides, whatever a judge says.
func TestFieldsBoxesAndHeadings(t *testing.T) {
	t.Parallel()
	const (
		lamp  = `{"name":"Lamp","available": false,"price": 20}`
		tasks = "- [x] login page\n- [ ] payment page\n- [x] search"
		notes = "# Tessera 4.2\n\n## Added\n- Support for PostgreSQL 17.\n\n" +
			"## Removed\n- Support for Python 3.8 clients.\n- Dark mode"
		hotel = "## Not included\n- Breakfast\n- Parking"
	)
	for _, c := range []struct {
		fact, claim string
		judge       check.Inference
		want        check.Verdict
	}{
		{`{"in_stock": false, "qty": 0}`, "It is in stock.", entails, check.Contradicted},
		{`{"in_stock": true, "qty": 2}`, "It is in stock.", entails, check.Supported},
		{`{"in_stock": false, "qty": 0}`, "It is not in stock.", contradicts, check.Unchecked},
		{`{"inStock": false}`, "It is in stock at ACME.", entails, check.Contradicted},
		{`{"in_stock": false}`, "The Graz lamp is out of stock.", entails, check.Supported},
		{lamp, "The Lamp is available.", entails, check.Contradicted},
		{lamp, "The Lamp is available if you ask Bob.", entails, check.Unchecked},
		{`{"paid":false,"invoice":"R-77"}`, "Invoice R-77 has been paid.", entails, check.Contradicted},
		{`[{"name":"Lamp","ready":false},{"name":"Desk","ready":true}]`, "The Desk is ready.", entails, check.Supported},
		{"Enabled: no\nRetries: 3", "It is enabled at ACME.", entails, check.Contradicted},
		{"Support: on request", "The Support is not on hand.", isNeutral, check.Unsupported},
		{tasks, "The payment page is done.", entails, check.Contradicted},
		{tasks, "The login page is done.", entails, check.Supported},
		{notes, "Support for PostgreSQL 17 was removed.", entails, check.Contradicted},
		{notes, "Support for PostgreSQL 17 was added.", entails, check.Supported},
		{notes, "Support for Python 3.8 clients was added.", entails, check.Contradicted},
		{notes, "Support for Python 3.8 clients was removed.", entails, check.Supported},
		{notes, "Support for Python 3.8 clients was added in 4.2.", entails, check.Contradicted},
		{notes, "Dark mode was added in 4.2.", entails, check.Contradicted},
		{hotel, "Breakfast is never included.", contradicts, check.Unchecked},
		{hotel, "Breakfast is included.", entails, check.Contradicted},
	} {
		wantVerdict(t, c.judge, c.fact, c.claim, c.want)
	}
}
