package keyring

import (
	"maps"
	"testing"
)

// A file is read as written, or refused. What was read can be written and read again unchanged, and
// an accepted record is one that a request could have made.
func FuzzFile(f *testing.F) {
	const sum = "9a2ef6f4d4ef25f8df1e9a8a1f8b7a90e8bd3c5d0aa1f14e8f3a53ab8f6f3c11"
	f.Add([]byte(`{"version":1,"keys":{}}`))
	f.Add([]byte(`{"version":1,"keys":{"web":{"id":"aaaaaaaaaaaaaaaa","name":"web","sha256":"` + sum +
		`","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","rate":{"rpm":1},"budget":{"usd":1e300}}}}`))
	f.Add([]byte(`{"version":1,"keys":{"a":null,"b":[[[[]]]],"":{}}}`))
	f.Add([]byte(`{"version":1,"keys":{"web":{"name":"web","expires_at":"9999-12-31T23:59:59Z"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		texts, err := decode(b)
		if err != nil {
			return
		}
		again, err := encode(texts)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		same, err := decode(again)
		if err != nil || !maps.Equal(texts, same) {
			t.Fatalf("%q became %q, %v", texts, same, err)
		}
		for name, text := range texts {
			e, err := parse(name, text)
			if err != nil {
				continue
			}
			if e.key.CheckGrants() != nil || e.Name != name || !isID(e.ID) || e.Rate.RPM < 0 || !(e.Budget.USD >= 0) {
				t.Errorf("accepted: %s", text)
			}
			if _, err := e.Record.text(); err != nil {
				t.Errorf("%s cannot be written: %v", text, err)
			}
		}
	})
}
