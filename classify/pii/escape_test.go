package pii

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestLettersWrittenAsNumbersAreRead(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"n": "Jos\u00e9 N\u00FA\u00f1ez", "k": 1}`, `{"n": "José Núñez", "k": 1}`},
		{`"\u5c71\u7530"`, `"山田"`},
		{`in "{\"n\":\"Jos\\u00e9\"}"`, `in "{\"n\":\"José\"}"`},
		{`\ud842\udfb7\u7530!`, `𠮷田!`},
		{`\ud842 \udfb7 \ud842\ud842 \u00`, ""},
		{`a\u0041b \u 100 \uq0e9`, ""},
		{"José", ""},
	} {
		u, ok := Unescape(tt.text)
		if ok != (tt.want != "") || ok && u.Text() != tt.want {
			t.Errorf("%q became %+v", tt.text, u)
		}
		if !ok {
			continue
		}
		for at, r := range tt.want { // every character has its own place
			end := at + len(string(r))
			s := u.Place(Span{Start: at, End: end})
			was, plain := strings.TrimLeft(tt.text[s.Start:s.End], `\`), ""
			_ = json.Unmarshal([]byte(`"\`+was+`"`), &plain)
			if was != string(r) && plain != string(r) && r != '\\' {
				t.Errorf("%q: %q stands for %q", tt.text, tt.text[s.Start:s.End], r)
			}
		}
	}
}
