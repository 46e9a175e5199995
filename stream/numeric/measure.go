package numeric

import (
	"strings"

	"signalbox/stream/evidence/words"
)

// measures are adjectives behind an amount, by hash, to the nouns of what they measure: heads of
// columns have those.
//
//nolint:gochecknoglobals // constant table
var measures = func() map[uint64][]uint64 {
	m := map[uint64][]uint64{}
	for line := range strings.FieldsFuncSeq(
		"wide width,high height,tall height,long length,deep depth,thick thickness,old age,breit Breite,hoch Höhe,"+
			"lang Länge,tief Tiefe,dick Dicke,schwer Gewicht,heavy weight,large largeur,haut hauteur,long longueur,"+
			"ancho anchura,alto altura,largo longitud",
		func(r rune) bool { return r == ',' },
	) {
		list := words.Scan(nil, line)
		m[list[0].Hash] = append(m[list[0].Hash], list[1].Hash)
	}
	return m
}()

// nameMeasures takes an adjective of the claim right behind an amount for the noun of what it measures,
// where the evidence has that alone: "75 cm wide" of a column "width".
func (c *checker) nameMeasures() {
	for i := range c.values {
		k := c.wordFrom(c.values[i].End)
		if k == len(c.words) || strings.TrimSpace(c.claim[c.values[i].End:c.words[k].Start]) != "" {
			continue
		}
		w := &c.words[k]
		if _, known := c.x.idf[w.Hash]; known {
			continue
		}
		for _, noun := range measures[w.Hash] {
			if _, known := c.x.idf[noun]; known {
				w.Hash = noun
				break
			}
		}
	}
}
