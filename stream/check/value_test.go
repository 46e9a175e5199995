package check_test

import (
	"testing"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
)

// TestValuesOfJSONAreChecked checks that each value of a JSON answer is compared by itself with the
// evidence, bound to its member name and its object, and that a model decides on it only if its
// result is certain.
func TestValuesOfJSONAreChecked(t *testing.T) {
	t.Parallel()
	e := facts(t,
		"The Basic plan costs 9 euros a month.", "The Pro plan costs 19 euros a month.",
		"Applications for the Horizon grant are accepted until 1 March 2026.",
		"The call for the Horizon grant opens on 8 January 2026.", "Members get a discount of 15 %.",
		"The Hamburg office has 42 employees.", "The Munich office has 17 employees.",
	)
	flags := map[string]string{ // flagged parts of the answer
		`{"text": "The Hamburg office has 42 employees.", "confidence": 0.92, "page": 81}`:                    "",
		`{"text": "The Hamburg office has 42 employees.\nThe Munich office has 18 employees."}`:               "18",
		`{"text": "B\u00fcro: the Munich office has 18 employees."}`:                                          "18",
		`[{"plan": "Basic", "monthly_price_eur": 9}, {"plan": "Pro", "monthly_price_eur": 19}]`:               "",
		`[{"plan": "Basic", "monthly_price_eur": 9}, {"plan": "Pro", "monthly_price_eur": 9.0}]`:              "9.0",
		`{"plan": "Pro", "monthly_price_eur": 29}`:                                                            "29",
		`{"office": "Hamburg", "employees": 42}`:                                                              "",
		`{"office": "Hamburg", "employees": 17}`:                                                              "17",
		`{"grant": "Horizon", "deadline": "2026-03-01", "discount": 0.15}`:                                    "",
		`{"grant": "Horizon", "deadline": "2026-03-11"}`:                                                      "2026-03-11",
		`{"grant": "Horizon", "due_date": "03-01", "call_date": "01-08"}`:                                     "",
		`{"grant": "Horizon", "due_date": "03-11"}`:                                                           "03-11",
		"Of both:\n{\"office\": \"Hamburg\", \"employees\": 42}\n{\"office\": \"Munich\", \"employees\": 42}": "42",
		"```json\n{\"office\": \"Munich\", \"employees\": 71}\n```":                                           "71",
		`{"discount": 0.25}`: "0.25",
		`{"discount": 0.15, "key_points": 3, "staff": 42}`:            "",
		`{"discount": 0.15, "key_points": 300}`:                       "300",
		`[{"town": "hamburg", "n": 17}, {"town": "munich", "n": 42}]`: "1742",
		`{"office": "Munich", "lead": "Petra Lang"}`:                  "Lang",
		`{"office": "Munich", "eligible": "Yes", "city": "Bonn"}`:     "",
	}
	for answer, want := range flags {
		checkFlags(t, e, answer, want)
	}
}

// checkFlags compares the flagged parts of an answer with want, with a model that refutes
// everything.
func checkFlags(t *testing.T, e *evidence.Evidence, answer, want string) {
	t.Helper()
	report, err := checker(t, check.Options{Judge: always(contradicts)}).Text(t.Context(), e, "", answer)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i := range report.Claims {
		c := &report.Claims[i]
		if c.Verdict != check.Unsupported && c.Verdict != check.Contradicted {
			continue
		}
		at := c.Raw(c.Span)
		said := string([]rune(c.Text)[at.Start:at.End])
		if whole := string([]rune(answer)[c.Runes.Start+at.Start : c.Runes.Start+at.End]); whole != said {
			t.Errorf("%s: %q stands at %q", answer, said, whole)
		}
		got += said
	}
	if got != want {
		t.Errorf("%s: %q is flagged, want %q", answer, got, want)
	}
}

// TestBlocksOfJSONBehindTextAreChecked checks that JSON in a block after other text is judged like
// a JSON answer, unless it is an example or states nothing that the evidence knows.
func TestBlocksOfJSONBehindTextAreChecked(t *testing.T) {
	t.Parallel()
	e := facts(t,
		"The Basic plan costs 9 euros a month.", "The Pro plan costs 19 euros a month.",
		"The server listens on port 8080.", "The Hamburg office has 42 employees.",
		"Invoice 2024-117 is over 357 euros.",
	)
	block := func(text string) string { return "\n```json\n" + text + "\n```\nThat is it." }
	for answer, want := range map[string]string{
		"The record:" + block(`{"plan": "Pro", "monthly_price_eur": 19}`):                          "",
		"The record:" + block(`{"plan": "Pro", "monthly_price_eur": 29}`):                          "29",
		"The record:" + block(`{"plan": "Pro", "monthly_price_eur": 9}`):                           "9",
		"Die Daten:" + block(`{"nummer": "2024-117", "betrag": 375}`):                              "375",
		"The record:" + block(`{"id": 7, "employees": 43}`):                                        "43",
		"The record:\n```\n{\"office\": \"Hamburg\", \"staff\": 43}\n```":                          "43",
		"The record:" + block(`{"note": "The Hamburg office has 43 employees."}`):                  "43",
		"It goes on:" + block(`{"maxDepth": 12, "retries": 77, "logger": {"file_size": 1048576}}`): "",
		"It goes on:" + block(`{"target": "Visual Studio", "author": "Petra Lang"}`):               "",
		"For example:" + block(`{"port": 9090, "note": "The server listens on port 9090."}`):       "",
		"Set the port in the file:" + block(`{"port": 9090}`):                                      "",
		"The call:" + block(`{"name": "find", "arguments": {"plan": "Pro", "price": 29}}`):         "",
		"The record:\n```js\n{\"plan\": \"Pro\", \"monthly_price_eur\": 29}\n```":                  "",
	} {
		checkFlags(t, e, answer, want)
	}
}

// TestALineThatAnnouncesWhatFollowsStatesNothing checks that a line that names the format of what
// follows states nothing, unless it has a number or a name.
func TestALineThatAnnouncesWhatFollowsStatesNothing(t *testing.T) {
	t.Parallel()
	e := facts(t, "The Pro plan costs 19 euros a month.")
	for line, want := range map[string]check.Verdict{
		"The result as JSON:":                 check.NotCheckable,
		"Extrahierte Daten:":                  check.NotCheckable,
		"The extracted record is as follows:": check.NotCheckable,
		"Les données extraites :":             check.NotCheckable,
		"The answer is below:":                check.NotCheckable,
		"The data is in this table:":          check.NotCheckable,
		"All fields are required:":            check.Contradicted,
		"The results were all stolen:":        check.Contradicted,
		"Die Antwort ist falsch:":             check.Contradicted,
		"Die Kandidaten schweigen:":           check.Contradicted,
		"The result of Petra Lang:":           check.Contradicted,
		"The Pro plan costs less:":            check.Contradicted,
	} {
		claim := check.Claim{Text: line}
		got := checker(t, check.Options{Judge: always(contradicts)}).Check(t.Context(), e, "", []check.Claim{claim})[0]
		if got.Verdict != want {
			t.Errorf("%q: %s (%s), want %s", line, got.Verdict, got.Reason, want)
		}
	}
}
