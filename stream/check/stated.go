package check

import (
	"slices"
	"strings"
	"unicode"

	"signalbox/stream/evidence"
	"signalbox/stream/evidence/words"
)

// stance is what evidence that is no sentence says of a claim.
type stance uint8

const (
	silentOn stance = iota
	agrees
	disagrees
)

// Bounds on what is compared with a field or an item, in words; our choice. A longer claim says more
// than whether something is so.
const statedWords = 12

// stated compares a claim with what its premises say without a sentence: the truth of a field
// ("in_stock": false), a box ("- [ ] payment page"), and the heading of a list ("## Removed"). at is
// the premise that says it.
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

// namesOther reports whether a claim has a name that a record does not have.
func namesOther(claim []words.Word, record string) bool {
	all := words.Scan(nil, unjoin(record))
	return slices.ContainsFunc(claim, func(w words.Word) bool {
		return w.Has(words.Name) && !w.Has(words.Stop) && indexOf(all, w.Hash) < 0
	})
}

// plainClaim reports whether a claim is short, and depends on nothing.
func plainClaim(claim []words.Word) bool {
	return len(claim) <= statedWords && !follows(claim, toBe) && !slices.ContainsFunc(claim, func(w words.Word) bool {
		return terms[w.Hash] != 0 || forces[w.Hash] == perhaps || laterWords[w.Hash]
	})
}

// tells reports whether a premise has a field that is true or false, a box or a heading.
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

// fieldsSay compares a claim with the fields of a record that are true or false. Where two of one
// name differ, they are of things that the claim is not told apart by.
func fieldsSay(claim []words.Word, record string) (s stance) {
	rest := record
	var all []words.Word // of the record, once a field needs them
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

// fieldName is the name that a text ends with, quoted or not.
func fieldName(text string) string {
	text = strings.TrimRight(text, " \"'`")
	return text[1+strings.LastIndexFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}):]
}

// truth reads the boolean that a text begins with.
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

// fieldTold is the words of the name of a field, and whether a claim holds them beside each other.
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

// maxName bounds the name of a field that is compared, in bytes; our choice.
const maxName = 128

// fieldSays compares a claim that holds the name of a field with what it says.
func fieldSays(claim, name []words.Word, holds bool) stance { //nolint:revive // a fact about the field
	if holds == ((negations(claim)+negations(name))%2 == 0) {
		return agrees
	}
	return disagrees
}

// unjoin puts spaces between the words of a name: in_stock, inStock.
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

// isAux reports whether a name begins with a verb that a sentence puts elsewhere: is_active.
func isAux(name string) bool {
	first, _, _ := strings.Cut(name, " ")
	switch first {
	case "is", "has", "was", "are", "have":
		return true
	}
	return false
}

// follows reports whether the words of part stand beside each other in list, in their order.
func follows(list, part []words.Word) bool {
	for i := 0; i+len(part) <= len(list); i++ {
		if slices.EqualFunc(list[i:i+len(part)], part, func(a, b words.Word) bool { return a.Hash == b.Hash }) {
			return true
		}
	}
	return false
}

// foreignTo counts the words of a claim, function words aside, that other does not have.
func foreignTo(claim, other []words.Word) int {
	n := 0
	for _, w := range claim {
		if !w.Has(words.Stop) && !w.Has(words.Negation) && indexOf(other, w.Hash) < 0 {
			n++
		}
	}
	return n
}

// ownWords reports whether a claim has words that a record does not have, names and what a field that
// is true says of its name aside: they may turn it round, as "prohibited" does.
func ownWords(claim, record []words.Word) bool {
	return slices.ContainsFunc(claim, func(w words.Word) bool {
		return !w.Has(words.Stop) && !w.Has(words.Negation) && !w.Has(words.Name) && !mayBe[w.Hash] &&
			indexOf(record, w.Hash) < 0
	})
}

// Words for what is done and what is not, of English and German, by hash.
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
	// What a field that is true says of its name.
	mayBe     = hashes("allowed available possible included enabled active erlaubt möglich verfügbar enthalten aktiv")
	openWords = hashes("open pending missing outstanding todo incomplete unfinished offen ausstehend unerledigt")
)

// itemSays compares a claim with an item of a list: with its box, and with its heading.
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
		return silentOn // which release is meant is not looked at
	}
	return says
}

// sided is the stance of what holds, or does not, to a claim that says that it does, or denies it.
func sided(holds, said bool, negations int) stance { //nolint:revive // facts about the evidence and the claim
	if holds == said == (negations%2 == 0) {
		return agrees
	}
	return disagrees
}

// touches reports whether a claim has a word of an item that is no function word.
func touches(claim, item []words.Word) bool {
	return slices.ContainsFunc(
		claim,
		func(w words.Word) bool { return !w.Has(words.Stop) && indexOf(item, w.Hash) >= 0 },
	)
}

// lacksNumber reports whether an item has a number that a claim does not have.
func lacksNumber(item, claim []words.Word) bool {
	return slices.ContainsFunc(item, func(w words.Word) bool { return w.Has(words.Number) && indexOf(claim, w.Hash) < 0 })
}

// headed reports whether a claim has a word of the heading of a list, or one of opposite meaning,
// and counts its words and its numbers that neither those nor the item are.
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

// heed lets what is stated without a sentence, which a judge of language reads past, overrule it.
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
