package main

import (
	"context"
	_ "embed" // of the sentences
	"strings"
)

// Sentences of this project in German, French, Spanish and Chinese, each with a true and a false
// claim in its language, and its meaning in English. The first set was inspected while the rules
// for other languages were developed, the second was written after them.
var (
	//go:embed testdata/languages.tsv
	languageRows string
	//go:embed testdata/languages_held.tsv
	languageRowsHeld string
)

// languages checks claims in four languages with evidence in the same language and in English.
func (b *bench) languages(ctx context.Context, r *report) error {
	for _, set := range []struct{ name, rows string }{{"", languageRows}, {", held out", languageRowsHeld}} {
		for _, beside := range []string{"the same language", "English"} {
			all, err := b.judgeSome(ctx, languagePairs(set.rows, beside))
			if err != nil {
				return err
			}
			r.languages("beside "+beside+set.name, all)
			b.dump("languages beside "+beside+set.name, all)
		}
	}
	return nil
}

func (r *report) languages(where string, all []judged) {
	told, rest := understood(all)
	for _, part := range []struct {
		name string
		of   []judged
	}{{"numbers, dates, names, copies", told}, {"meaning", rest}} {
		r.figure(part.name+" "+where+": false flagged", share(part.of, unsupported, unsupported), "")
		r.figure(part.name+" "+where+": true flagged", share(part.of, supported, unsupported), "")
		r.figure(part.name+" "+where+": false called supported", share(part.of, unsupported, supported), "")
		r.figure(part.name+" "+where+": true called supported", share(part.of, supported, supported), "")
	}
	for _, language := range []string{"de", "es", "fr", "zh"} {
		var of []judged
		for _, p := range told {
			if strings.HasSuffix(p.Source, " "+language) {
				of = append(of, p)
			}
		}
		r.note("Numbers, dates, names, copies %s, %s: flagged %s of false, %s of true; called supported %s of false, %s of true.", where, language,
			share(of, unsupported, unsupported), share(of, supported, unsupported), share(of, unsupported, supported), share(of, supported, supported))
	}
}

// understood separates claims that numbers and names can decide from those that need an
// understanding of the language.
func understood(all []judged) (told, rest []judged) {
	for _, p := range all {
		if strings.HasPrefix(p.Source, "meaning") {
			rest = append(rest, p)
		} else {
			told = append(told, p)
		}
	}
	return told, rest
}

// languagePairs returns the claims with the evidence in their language or, translated, in English.
func languagePairs(set, beside string) (list []pair) {
	for _, row := range rows(set, 6) {
		text := row[2]
		if beside == "English" {
			text = row[3]
		}
		source := row[0] + " " + row[1]
		list = append(list, pair{Source: source, Facts: facts{text}, Answer: row[4], Label: supported}, pair{Source: source, Facts: facts{text}, Answer: row[5], Label: unsupported})
	}
	return list
}
