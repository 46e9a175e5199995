package numeric

import (
	"strings"

	"signalbox/stream/evidence/words"
)

// measures maps adjectives after an amount, by hash, to the nouns of what they measure, as used in
// column heads.
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

// nameMeasures replaces an adjective directly after an amount of the claim by the noun of what it
// measures, if the evidence has only the noun: "75 cm wide" for a column "width".
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
