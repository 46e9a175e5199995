package quantity

import "strings"

// dayPart is a phrase for a part of the day after an hour.
type dayPart struct {
	words string
	later float64 // hours that it adds; for the night only to hours before midnight
	night bool
}

// dayParts are the words of dayPartNames, split.
//
//nolint:gochecknoglobals // constant table
var dayParts = func() (list [][]string) {
	for _, part := range dayPartNames {
		list = append(list, strings.Fields(part.words))
	}
	return list
}()

//nolint:gochecknoglobals // constant table
var dayPartNames = [...]dayPart{
	{"abends", 12, false},
	{"am Abend", 12, false},
	{"nachmittags", 12, false},
	{"am Nachmittag", 12, false},
	{"morgens", 0, false},
	{"am Morgen", 0, false},
	{"vormittags", 0, false},
	{"am Vormittag", 0, false},
	{"früh", 0, false},
	{"nachts", 12, true},
	{"in der Nacht", 12, true},
	{"du matin", 0, false},
	{"de l'après-midi", 12, false},
	{"de l’après-midi", 12, false},
	{"du soir", 12, false},
	{"de la mañana", 0, false},
	{"de la tarde", 12, false},
	{"de la noche", 12, true},
	{"da manhã", 0, false},
	{"da tarde", 12, false},
	{"da noite", 12, true},
	{"del mattino", 0, false},
	{"di mattina", 0, false},
	{"del pomeriggio", 12, false},
	{"di sera", 12, false},
	{"утра", 0, false},
	{"дня", 12, false},
	{"вечера", 12, false},
	{"ночи", 0, false},
}

// partElsewhere is partOfDay for languages other than English.
func (p *parser) partElsewhere(i int, minutes float64) (later float64, next int) {
	if p.tok(i).kind != tokWord {
		return 0, i
	}
	for n, list := range dayParts {
		k := i
		for k-i < len(list) && p.word(k, list[k-i]) {
			k++
		}
		if k-i < len(list) {
			continue
		}
		part := &dayPartNames[n]
		if part.night && (minutes < 6*60 || minutes >= 12*60) {
			return 0, k
		}
		return part.later, k
	}
	return 0, i
}

// hourOfPart returns the token after the hour at token i if a part of the day in another language
// follows: à 8 heures du soir, a las 8 de la tarde, в 8 часов вечера. Otherwise it returns i.
func (p *parser) hourOfPart(i int) int {
	t, next := p.tok(i), i+1
	word := t.kind == tokWord && t.word.role&roleCardinal != 0 && t.word.num >= 1
	if !word && !p.hour(i) || max(t.num, t.word.num) > 12 {
		return i
	}
	if u := p.tok(next).unit; u.dim == Duration && u.factor == hour {
		next++
	} else if p.word(next, "дня") {
		return i // it often means days
	}
	if _, end := p.partElsewhere(next, 0); end == next {
		return i
	}
	return next
}

// spokenHour reads an hour in words at token i: halb acht, acht Uhr, das 8 às 14 horas, 8 heures du
// soir. It sets minutes and the next token, and reports whether there is one.
func (p *parser) spokenHour(i int, minutes *float64, next *int) bool {
	t := p.tok(i)
	switch end := p.hourOfPart(i); {
	case p.halfBefore(i):
		*minutes = 60*max(p.tok(i+1).num, p.tok(i+1).word.num) - 30
		*next = i + 2
	case t.kind == tokWord && t.word.role&roleCardinal != 0 && t.word.num <= 24 && p.has(i+1, roleClockCue):
		*minutes = 60 * t.word.num
	case p.hour(i) && p.word(i-1, "das") && p.word(i+1, "às") && p.hour(i+2):
		*minutes *= 60
	case end > i:
		*minutes = 60 * max(t.num, t.word.num)
		*next = end
	default:
		return false
	}
	return true
}

// halfBefore reports whether token i begins "halb acht", which is half past seven.
func (p *parser) halfBefore(i int) bool {
	t := p.tok(i + 1)
	hour := t.kind == tokWord && t.word.role&roleCardinal != 0 && t.word.num <= 12 && t.word.num >= 1 ||
		p.hour(i+1) && t.num <= 12
	if !hour || !p.word(i, "halb") && !p.word(i, "Halb") {
		return false
	}
	_, _, measured := p.unitAt(i + 2)
	return !measured
}
