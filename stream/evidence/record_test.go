package evidence

import "testing"

func TestListsTellHowManyEntriesTheyHave(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"of a record": {
			`{"order":{"id":"A-17","items":[{"sku":"x1"},{"sku":"y2"}]}}`,
			[]string{
				`A-17 order items: {"sku":"x1"}`, `A-17 order items: {"sku":"y2"}`, `{"order.id":"A-17"}`,
				"A-17 order items: 2 items",
			},
		},
		"of strings": {
			`{"user":"mira","roles":["admin","editor"],"devices":[{"os":"ios"}]}`,
			[]string{`mira devices: {"os":"ios"}`, `{"user":"mira","roles":"admin","roles":"editor"}`, "mira roles: 2 roles"},
		},
		"without a name": {
			`[{"a":1},{"a":2},{"a":3}]`, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`, "list: 3 results"},
		},
		"of numbers it is none of theirs": {
			`[{"at":[1.5,2.5]},{"at":[3.5,4.5]}]`,
			[]string{`{"at":1.5,"at":2.5}`, `{"at":3.5,"at":4.5}`, "list: 2 results"},
		},
		"nothing of what is prose": {`{"roles":["admin","editor"]}`, []string{`{"roles":["admin","editor"]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantSentences(t, tt.text, tt.want)
		})
	}
}
