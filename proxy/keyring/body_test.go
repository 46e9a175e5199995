package keyring

import "testing"

func TestAValueOfAnotherKindIsToldWhatTheFieldTakes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"rate":{"rpm":"60"}}`:         "rate.rpm: cannot be this string, expected a whole number",
		`{"budget":{"usd":"5"}}`:        "budget.usd: cannot be this string, expected a number",
		`{"models":"small"}`:            "models: cannot be this string, expected a list",
		`{"name":7}`:                    "name: cannot be this number, expected a text",
		`{"rate":60}`:                   "rate: cannot be this number, expected an object",
		`{"expires_at":"tomorrow"}`:     "expires_at: cannot be this string, expected a time such as 2026-12-31T00:00:00Z",
		`{"models":[{"name":"small"}]}`: "models.0: cannot be an object, expected a text",
	} {
		err := parseBody([]byte(body), new(createBody))
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
