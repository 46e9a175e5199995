package quantity

import "strings"

// fieldUnits are units at the end of a field name, after an underscore, that symbols and unitNames
// lack or define differently.
//
//nolint:gochecknoglobals // constant table
var fieldUnits = map[string]unit{
	"sec": {Duration, 1, 0}, "secs": {Duration, 1, 0},
	"kb": {storage, 1000, 0}, "mb": {storage, 1e6, 0}, "gb": {storage, 1e9, 0}, "tb": {storage, 1e12, 0},
	"eur": {eur, 1, 0}, "usd": {usd, 1, 0}, "gbp": {gbp, 1, 0}, "chf": {chf, 1, 0},
	"m": {length, 1, 0}, "c": {temperature, 1, 273.15}, "pct": {Percent, 1, 0}, "kwh": {energy, 3.6e6, 0},
}

// field gives v, a bare number at token i, the unit at the end of its field name: "duration_ms":
// 90000. Cents become hundredths of an unknown currency.
func (p *parser) field(i int, v *Value) {
	if v.Dim != Plain {
		return
	}
	switch u, cents, ok := p.fieldUnit(i); {
	case cents:
		v.Alt = v.Raw
		v.Raw, v.Step, v.Place = v.Raw/100, 0.01, placeOf(v.Raw/100, 0.01)
		v.RawHi = v.Raw
		v.scaled()
	case ok:
		v.setUnit(u)
	default:
		if u, v.Apart = p.unitSaid(i); v.Apart {
			v.setUnit(u)
		}
	}
}

// unitGap is the maximum number of tokens between a preceding unit and its number; our choice.
const unitGap = 8

// unitSaid returns the unit that precedes the bare number at token i, after "in" and separated only
// by punctuation and words for a setting: "how long to wait, in milliseconds; default 1500".
func (p *parser) unitSaid(i int) (u unit, ok bool) {
	set := false
	for k := i - 1; k >= max(p.free, i-unitGap); k-- {
		switch t := p.tok(k); {
		case t.kind == tokSymbol:
			set = set || t.sym == ':' || t.sym == '='
		case t.kind != tokWord:
			return u, false
		case setting[strings.ToLower(p.tokText(k))]:
			set = true
		case t.word.role&(roleTo|roleOf) != 0 || p.word(k, "is") || p.word(k, "ist") || p.word(k, "by"):
		case t.unit.dim != Plain && t.end-t.start > 1:
			return t.unit, set && (p.word(k-1, "in") || p.word(k-1, "In")) && t.unit.offset == 0
		default:
			return u, false
		}
	}
	return u, false
}

// setting are words for a configured value.
//
//nolint:gochecknoglobals // constant table
var setting = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`default defaults value standard standardwert standardmäßig vorgabe défaut
		predeterminado maximum max minimum min`) {
		m[w] = true
	}
	return m
}()

// measures reports whether the name before a unit of one letter says what is measured: weight_g.
func measures(name string) bool {
	name = strings.ToLower(name[strings.LastIndexByte(name, '_')+1:])
	switch name {
	case "weight", "mass", "height", "width", "length", "depth", "distance", "size", "temp", "temperature":
		return true
	}
	return false
}

// times reports whether the name before "s" or "h" is a length of time: duration_s.
func times(name, letter string) bool {
	if letter != "s" && letter != "h" {
		return false
	}
	switch strings.ToLower(name[strings.LastIndexByte(name, '_')+1:]) {
	case "duration",
		"elapsed",
		"timeout",
		"time",
		"latency",
		"delay",
		"interval",
		"uptime",
		"runtime",
		"ttl",
		"wait",
		"age":
		return true
	}
	return false
}

// fieldName returns the name of the field before the number at token i, or "".
func (p *parser) fieldName(i int) string {
	k := i - 1
	if (p.sym(k, '-') || p.sym(k, '−')) && p.touches(i) {
		k--
	}
	if !p.sym(k, ':') && !p.sym(k, '=') {
		return ""
	}
	if k--; p.sym(k, '"') || p.sym(k, '\'') {
		k--
	}
	return p.tokText(k)
}

// amountField reports whether the field name of the number at token i, or a part of it, says that
// the number is an amount and not a year: "total_amount": 1290.
func (p *parser) amountField(i int) bool {
	for part := range strings.SplitSeq(p.fieldName(i), "_") {
		switch strings.ToLower(part) {
		case "amount", "price", "cost", "total", "net", "gross", "tax", "subtotal", "sum", "fee", "value", "balance",
			"budget", "spent", "salary", "revenue", "count", "qty", "quantity", "size", "limit", "max", "min",
			"population", "tokens", "stock", "votes", "preis", "betrag", "summe", "anzahl", "menge":
			return true
		}
	}
	return false
}

// fieldUnit returns the unit at the end of the field name before the number at token i.
func (p *parser) fieldUnit(i int) (u unit, cents, ok bool) {
	name := p.fieldName(i)
	at := strings.LastIndexByte(name, '_')
	var form [16]byte
	if at <= 0 || len(name)-at > len(form) || len(name)-at < 3 && !measures(name[:at]) && !times(name[:at], name[at+1:]) {
		return u, false, false
	}
	suffix := append(form[:0], name[at+1:]...)
	for n, c := range suffix {
		if 'A' <= c && c <= 'Z' {
			suffix[n] = c + 'a' - 'A'
		}
	}
	switch string(suffix) {
	case "cents", "cent":
		return u, true, true
	// A number of that unit, such as day 3; expires_in.
	case "year", "month", "week", "day", "hour", "minute", "second", "in":
		return u, false, false
	}
	if u, ok = fieldUnits[string(suffix)]; !ok {
		if u, ok = unitNames[string(suffix)]; !ok {
			u, ok = symbols[string(suffix)]
		}
	}
	return u, false, ok && u.dim != Multiple && u.dim != degree && u.dim != pixels
}
