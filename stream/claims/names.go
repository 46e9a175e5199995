package claims

import (
	"strings"
	"unicode"
)

// told prepends the names of the object and of the member to a value.
func (s *Splitter) told(c *Claim, value string) {
	l := &s.json.levels[len(s.json.levels)-1]
	lead := ""
	if l.label != "" {
		lead = l.label + ": "
	}
	if name := plain(l.name); name != "" {
		lead += name + ": "
	}
	if lead != "" {
		c.Said, c.Lead = lead+value, len(lead)
	}
}

// plain returns a member name in lower case, with its words joined by underscores.
func plain(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name[:min(len(name), maxLabel)] {
		if lower && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		if r == '-' || r == '.' {
			r = '_'
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.ToValidUTF8(b.String(), "")
}

// isMute reports whether the value of a member is not checked: how certain the answer is, where it
// was found, or a category.
func isMute(name string) bool { return anyPart(name, muteNames) }

// isMuteNumber is isMute for numbers, which also covers the start and end of a range that the
// answer gives.
func isMuteNumber(name string) bool { return name == "start" || name == "end" || isMute(name) }

// besides reports whether the contents of a member are about the answer itself and state nothing.
func besides(name string) bool { return anyPart(name, metaNames) }

// anyPart reports whether a part of a name is in a set.
func anyPart(name string, of map[string]bool) bool {
	for part := range strings.FieldsFuncSeq(plain(name), func(r rune) bool { return r == '_' || r == ' ' }) {
		if of[part] {
			return true
		}
	}
	return false
}

//nolint:gochecknoglobals // constant tables
var (
	yearNames = set("year", "jahr", "año", "année", "anno", "ano")
	metaNames = set("meta", "metadata", "usage", "debug", "tokens", "bbox", "logprobs")
	muteNames = set(strings.Fields(
		`confidence score scores probability prob certainty relevance similarity id ids uid uuid guid index idx rank
		offset page pages line lines chunk chunks token tokens latency version timestamp created updated generated
		retrieved seed logprob source sources citation citations reference references ref refs footnote url urls uri
		link links href file filename path doc document documents model lang language locale format type kind schema
		hash role title heading headline subject article section paragraph clause
		chapter step category categories label labels class intent sentiment tag tags verdict currency
		konfidenz sicherheit relevanz seite seiten quelle quellen quellenangabe beleg sprache währung typ kategorie
		kategorien dokument datei zeile verweis verweise artikel abschnitt absatz kapitel schritt titel
		confianza puntuación puntuacion certeza página páginas pagina paginas fuente fuentes idioma moneda tipo
		categoría categoria documento archivo etiqueta artículo articulo sección seccion
		capítulo paso título titulo
		confiance fiabilité fiabilite certitude pertinence catégorie categorie langue devise étiquette fichier
		référence références section chapitre étape titre`)...)
)
