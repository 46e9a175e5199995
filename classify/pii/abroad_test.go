package pii

import (
	"slices"
	"testing"
)

// A model that knows the Latin script is sure of words that it has never seen.
func TestAModelOfTheLatinScriptIsBelievedOfOthersByTheirForm(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"请": false, "李娜": true, "程序员": false, "翻译": false, "田中太郎": true, "作り方": false,
		"저": false, "김철수": true, "학생": false, "اسمي": false, "बहन": false, "ชื่อ": false,
		"Ошибка": false, "файл": false, "Иван Петров": true, "Anna Berg": true, "anna": true,
	} {
		toks := tokens(t, text, []piece{{text, "B-PERSON", 0.97}})
		for _, latin := range []bool{true, false} {
			d := decoder(t)
			if latin {
				d.LatinAlone()
			}
			got := slices.ContainsFunc(d.Fuse(text, nil, toks, nil), func(s Span) bool { return s.Type == Person })
			if got != (want || !latin) {
				t.Errorf("%s, Latin alone %t: found %t", text, latin, got)
			}
		}
	}
}
