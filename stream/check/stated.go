package check

import (
	"slices"
	"strings"
	"unicode"

	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

// stance is what evidence other than a sentence says about a claim.
type stance uint8

const (
	silentOn stance = iota
	agrees
	disagrees
)

// statedWords is the maximum number of words in a claim that is compared with a field or an item;
// our choice. A longer claim says more than whether something is so.
const statedWords = 12

// stated compares a claim with what its premises say without a sentence: a boolean field
// ("in_stock": false), a checkbox ("- [ ] payment page"), or the heading of a list ("## Removed").
// at is the index of the premise that decided.
func (r *reading) stated(e *evidence.Evidence) (s stance, at int) {
	var claim []words.Word
	for i := range r.found {
		p := &r.found[i]
		if !tells(e, p) {
			continue
		}
		if claim == nil {
			if claim = words.Scan(nil, r.claim.Text); !plainClaim(claim) {
				return silentOn, 0
			}
		}
		if p.Sentence >= 0 && e.Record(p.Sentence) && namesOther(claim, p.Text) {
			continue
		}
		one := fieldsSay(claim, p.Text)
		if one == silentOn && p.Sentence >= 0 {
			one = itemSays(e, claim, p.Sentence)
		}
		switch {
		case one == silentOn:
		case s != silentOn && s != one:
			return silentOn, 0
		case s == silentOn:
			s, at = one, i
		}
	}
	return s, at
}

// namesOther reports whether a claim has a name that a record lacks.
func namesOther(claim []words.Word, record string) bool {
	all := words.Scan(nil, unjoin(record))
	return slices.ContainsFunc(claim, func(w words.Word) bool {
		return w.Has(words.Name) && !w.Has(words.Stop) && indexOf(all, w.Hash) < 0
	})
}

// plainClaim reports whether a claim is short and unconditional.
func plainClaim(claim []words.Word) bool {
	return len(claim) <= statedWords && !follows(claim, toBe) && !slices.ContainsFunc(claim, func(w words.Word) bool {
		return terms[w.Hash] != 0 || forces[w.Hash] == perhaps || laterWords[w.Hash]
	})
}

// tells reports whether a premise has a boolean field, a checkbox or a heading.
func tells(e *evidence.Evidence, p *evidence.Premise) bool {
	if p.Sentence >= 0 {
		if _, heading := e.Item(p.Sentence); heading != "" {
			return true
		}
		if _, ok := e.Box(p.Sentence); ok {
			return true
		}
	}
	for rest := p.Text; ; {
		at := strings.IndexAny(rest, ":=")
		if at < 0 {
			return false
		}
		rest = rest[at+1:]
		if _, ok := truth(rest); ok {
			return true
		}
	}
}

// fieldsSay compares a claim with the boolean fields of a record. If two fields that match
// disagree, the result is silentOn, because it is unclear which one the claim means.
func fieldsSay(claim []words.Word, record string) (s stance) {
	rest := record
	var all []words.Word // of the record; scanned when first needed
	for {
		at := strings.IndexAny(rest, ":=")
		if at < 0 {
			return s
		}
		name := fieldName(rest[:at])
		rest = rest[at+1:]
		holds, ok := truth(rest)
		if !ok || name == "" {
			continue
		}
		parts, told := fieldTold(claim, name)
		if !told || strings.Count(record, "{") > 1 {
			continue
		}
		if all == nil {
			all = words.Scan(nil, unjoin(record))
		}
		if ownWords(claim, all) {
			return silentOn
		}
		one := fieldSays(claim, parts, holds)
		if one != silentOn && s != silentOn && one != s {
			return silentOn
		}
		s = max(s, one)
	}
}

// fieldName returns the name at the end of a text, without quotes.
func fieldName(text string) string {
	text = strings.TrimRight(text, " \"'`")
	return text[1+strings.LastIndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}):]
}

// truth reads the boolean at the start of a text.
func truth(text string) (holds, ok bool) {
	text = strings.TrimLeft(text, " \"'")
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	if after := strings.TrimLeft(text[end:], " \"'"); after != "" &&
		!strings.ContainsRune(",;}])|\r\n#", rune(after[0])) {
		return false, false // "Support: on request"
	}
	switch strings.ToLower(text[:end]) {
	case "true", "yes", "on", "ja":
		return true, true
	case "false", "no", "off", "nein":
		return false, true
	}
	return false, false
}

// fieldTold returns the words of a field name, and whether the claim contains them next to each
// other.
func fieldTold(claim []words.Word, name string) (parts []words.Word, ok bool) {
	if len(name) > maxName {
		return nil, false
	}
	name = unjoin(name)
	parts = words.Scan(nil, name)
	if len(parts) > 1 && isAux(name) {
		parts = parts[1:]
	}
	return parts, len(parts) > 0 && follows(claim, parts)
}

// maxName is the maximum length of a field name that is compared, in bytes; our choice.
const maxName = 128

// fieldSays compares a claim that contains the name of a field with the value of the field.
func fieldSays(claim, name []words.Word, holds bool) stance { //nolint:revive // a fact about the field
	if holds == ((negations(claim)+negations(name))%2 == 0) {
		return agrees
	}
	return disagrees
}

// unjoin separates the words of a name by spaces: in_stock, inStock.
func unjoin(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case r == '_' || r == '-':
			r = ' '
		case lower && unicode.IsUpper(r):
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		lower = unicode.IsLower(r)
		b.WriteRune(r)
	}
	return b.String()
}

// isAux reports whether a name begins with an auxiliary verb that a sentence has elsewhere:
// is_active.
func isAux(name string) bool {
	first, _, _ := strings.Cut(name, " ")
	switch first {
	case "is", "has", "was", "are", "have":
		return true
	}
	return false
}

// follows reports whether the words of part occur in list, adjacent and in order.
func follows(list, part []words.Word) bool {
	for i := 0; i+len(part) <= len(list); i++ {
		if slices.EqualFunc(list[i:i+len(part)], part, func(a, b words.Word) bool { return a.Hash == b.Hash }) {
			return true
		}
	}
	return false
}

// foreignTo counts the content words of a claim that other lacks.
func foreignTo(claim, other []words.Word) int {
	n := 0
	for _, w := range claim {
		if !w.Has(words.Stop) && !w.Has(words.Negation) && indexOf(other, w.Hash) < 0 {
			n++
		}
	}
	return n
}

// ownWords reports whether a claim has words that a record lacks, except names and words such as
// "allowed". They may reverse it, as "prohibited" does.
func ownWords(claim, record []words.Word) bool {
	return slices.ContainsFunc(claim, func(w words.Word) bool {
		return !w.Has(words.Stop) && !w.Has(words.Negation) && !w.Has(words.Name) && !mayBe[w.Hash] &&
			indexOf(record, w.Hash) < 0
	})
}

// English and German words, by hash, for what is done and what is not.
//
//nolint:gochecknoglobals // constant tables
var (
	doneWords = hashes(
		"done complete completed finished ready implemented ticked erledigt fertig abgeschlossen umgesetzt",
	)
	toBe = words.Scan(nil, "to be") // has to be, is about to be
	// What is not yet, or has to be.
	laterWords = hashes("will would shall must should could soon yet about going planned " +
		"muss müssen soll sollen wird werden noch bald")
	// What a true field says of its name.
	mayBe     = hashes("allowed available possible included enabled active erlaubt möglich verfügbar enthalten aktiv")
	openWords = hashes("open pending missing outstanding todo incomplete unfinished offen ausstehend unerledigt")
)

// itemSays compares a claim with a list item: with its checkbox, or with its heading.
func itemSays(e *evidence.Evidence, claim []words.Word, sentence int) stance {
	text, heading := e.Item(sentence)
	item := words.Scan(nil, text)
	if ticked, ok := e.Box(sentence); ok {
		done := slices.ContainsFunc(claim, func(w words.Word) bool { return doneWords[w.Hash] })
		open := slices.ContainsFunc(claim, func(w words.Word) bool { return openWords[w.Hash] })
		if done == open || foreignTo(claim, item) > 1 || foreignTo(item, claim) > 0 || !touches(claim, item) {
			return silentOn
		}
		return sided(ticked, done, negations(claim))
	}
	if heading == "" || !touches(claim, item) {
		return silentOn
	}
	head := words.Scan(nil, heading)
	same, other, rest, numbers := headed(claim, head, item)
	if same == other || rest > 0 {
		return silentOn
	}
	says := sided(true, same, negations(claim)+negations(head))
	if numbers > 0 && (says == agrees || lacksNumber(item, claim)) {
		return silentOn // the releases are not distinguished
	}
	return says
}

// sided returns the stance of a fact (holds or not) towards a claim that states it (said) or its
// opposite, with a number of negations.
func sided(holds, said bool, negations int) stance { //nolint:revive // facts about the evidence and the claim
	if holds == said == (negations%2 == 0) {
		return agrees
	}
	return disagrees
}

// touches reports whether a claim has a content word of an item.
func touches(claim, item []words.Word) bool {
	return slices.ContainsFunc(
		claim,
		func(w words.Word) bool { return !w.Has(words.Stop) && indexOf(item, w.Hash) >= 0 },
	)
}

// lacksNumber reports whether an item has a number that the claim lacks.
func lacksNumber(item, claim []words.Word) bool {
	return slices.ContainsFunc(item, func(w words.Word) bool { return w.Has(words.Number) && indexOf(claim, w.Hash) < 0 })
}

// headed compares a claim with the heading of a list item. same: it has a word of the heading;
// other: it has an opposite of one. rest and numbers count its remaining words and numbers.
func headed(claim, head, item []words.Word) (same, other bool, rest, numbers int) {
	table := contraries()
	for _, w := range claim {
		switch {
		case w.Has(words.Stop) || w.Has(words.Negation) || indexOf(item, w.Hash) >= 0:
		case indexOf(head, w.Hash) >= 0:
			same = true
		case slices.ContainsFunc(table[w.Hash], func(h uint64) bool { return indexOf(head, h) >= 0 }):
			other = true
		case w.Has(words.Number):
			numbers++
		default:
			rest++
		}
	}
	return same, other, rest, numbers
}

// heed applies stated, which takes precedence over a judge that misses such evidence.
func (r *reading) heed(e *evidence.Evidence, out *Result) {
	switch s, at := r.stated(e); {
	case s == disagrees && out.Verdict != Contradicted:
		p := &r.found[at]
		*out = Result{
			Verdict: Contradicted, Score: min(out.Score, refutedNumber), Source: p.Source, ID: p.ID, Premise: p.Text,
			By: NLI, Reason: "a field, a box or a heading says otherwise",
		}
	case s == agrees && out.Verdict == Contradicted:
		*out = Result{
			Verdict: Unchecked,
			Score:   max(out.Score, halfDoubt),
			Source:  -1,
			By:      NLI,
			Reason:  "a field, a box or a heading says so",
		}
	}
}
