package numeric

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// cue is a set of hints that a number was calculated from others.
type cue uint16

const (
	cueSum cue = 1 << iota
	cueDiff
	cueMean
	cueRatio
	cueShare // percent of, share, growth
	cueSpan  // a length of time between dates
	cueAge   // an age in years
)

// cueWords maps English, German, French and Spanish words to their hints.
//
//nolint:gochecknoglobals // constant table
var cueWords = func() map[string]cue {
	m := map[string]cue{}
	add := func(list string, c cue) {
		for w := range strings.FieldsSeq(list) {
			m[w] |= c
		}
	}
	add("total totals totaling totalling sum combined altogether together overall insgesamt zusammen gesamt tous ensemble conjointement including einschließlich inklusive zuzüglich compris incluyendo suma conjunto both all entire", cueSum)
	add(`difference more less fewer higher lower taller longer larger smaller shorter bigger heavier lighter wider narrower deeper older younger increase increased increases
		decrease decreased rose rise risen grew grow growth fell fall drop dropped declined gain gained lost loss gap remaining remain left change changed
		exceeds exceeded ahead behind unterschied mehr weniger différence diferencia gestiegen gesunken stieg stiegen sank fiel wuchs gewachsen zugenommen abgenommen anstieg rückgang höher länger
		augmenté augmentation hausse baisse baissé diminué progressé subió bajó aumentó creció cayó disminuyó diferencia died dead killed perished rest others remainder without excluding surplus net by cheaper faster slower spread extra added save saves saved saving discount off remains missing majority margin lead
		günstiger teurer billiger kürzer kleiner größer leichter schwerer schneller langsamer senkt senkte gesenkt erhöht erhöhte steigt sinkt fällt wächst aufgestockt gekürzt
		spart gespart übrig verbleiben differenz überschuss moins reste économise économiser menos más queda quedan faltan restan ahorra`, cueDiff)
	add("average averages averaged averaging mean per each durchschnitt durchschnittlich pro moyenne promedio por par", cueMean)
	add("times twice double doubled doubling ratio triple tripled threefold twofold fold half halved mal fois veces quarter third quadrupled tenfold", cueRatio)
	add("percent percentage % share proportion fraction prozent anteil pourcent porcentaje", cueShare)
	add(`years year months days weeks age aged old later earlier after before lasted lasting lasts took takes span spanned between for since
		until duration long within over jahre jahren alt später ans âgé après años tarde edad
		brauchte brauchten braucht brauchen benötigte benötigt dauert dauerte needs needed stops`, cueSpan)
	add("aged age old turned when alter als jährig âge âgé âgée ans edad años cuando", cueAge)
	return m
}()

// cuesOf returns the hints of a claim that its numbers were calculated.
func cuesOf(claim string) cue {
	var found cue
	var form [48]byte
	for start, inWord := 0, false; start < len(claim); {
		end := strings.IndexFunc(claim[start:], func(r rune) bool { return unicode.IsLetter(r) != inWord })
		if end < 0 {
			end = len(claim) - start
		}
		if inWord && end > 0 && end < len(form) {
			found |= cueWords[string(appendLower(form[:0], claim[start:start+end]))]
		}
		start += end
		inWord = !inWord
	}
	if strings.Contains(claim, "%") {
		found |= cueShare
	}
	return found
}

// appendLower appends s in lower case to dst, up to the capacity of dst.
func appendLower(dst []byte, s string) []byte {
	for _, r := range s {
		if len(dst)+4 > cap(dst) {
			break
		}
		dst = utf8.AppendRune(dst, unicode.ToLower(r))
	}
	return dst
}
