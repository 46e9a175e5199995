package pii

import (
	"slices"
	"strings"
)

// Books, goods, orders and machines have numbers that are laid out as telephone numbers are. A word
// beside them says so, or a check digit.

// goodsWords name numbers that nobody is reached under. They count anywhere before a number in its
// sentence, but for another number, a comma or a word for telephones between the two.
//
//nolint:gochecknoglobals // constant tables
var (
	goodsWords = newWordIndex("isbn issn ismn isrc ean gtin upc asin sku barcode doi pmid imei " +
		"imeisv meid " +
		"orcid isni arxiv iccid")
	phoneWords = newWordIndex("phone call calls tel telephone mobile cell fax whatsapp sms text " +
		"dial hotline " +
		"contact reach telefon handy")
)

// goodsBefore reports whether one of goodsWords before i names the number that begins there.
func (s *scanner) goodsBefore(i int) bool {
	from, number := max(0, i-cueWidth), 0
	for k := i; k > from; {
		end := k
		switch b := s.text[k-1]; {
		case isLetter(b):
			for k > from && isLetter(s.text[k-1]) {
				k--
			}
			if word := s.text[k:end]; goodsWords.has(word) {
				return number == 0 || number-end < 3
			} else if phoneWords.has(word) {
				return false
			}
		case isDigit(b):
			for k > from && isDigit(s.text[k-1]) {
				k--
			}
			if number > 0 || end-k != 2 { // the 10, 13 and 14 of ISBN-10, EAN 13 and GTIN (14)
				return false
			}
			number = k
		case strings.IndexByte(",;?!\n", b) >= 0:
			return false
		default:
			k--
		}
	}
	return false
}

// linkWords may stand between the word for an order or a ticket and its number.
//
//nolint:gochecknoglobals // constant table
var linkWords = newWordIndex("number numbers no nr num id code confirmation reference ref is was " +
	"are the " +
	"of with called reads")

// orderBefore reports whether one of codeCues names the number at i, over up to four words that
// link the two.
func (s *scanner) orderBefore(i int) bool {
	const most = 4
	for range most {
		end := i
		for end > 0 && i-end < most && strings.IndexByte(between, s.text[end-1]) >= 0 {
			end--
		}
		start := end
		for start > 0 && end-start <= longestIndexed && isLetter(s.text[start-1]) {
			start--
		}
		word := s.text[start:end]
		switch {
		case word == "":
			return false
		case listsOf(word)>>beforeCode&1 != 0 && codeCues.have(word):
			return true
		case !linkWords.has(word):
			return false
		}
		i = start
	}
	return false
}

func (c cues) have(word string) bool {
	return slices.Contains(c, fold(word))
}

// namedAfter reports whether the words behind i say that a number of goods or of an order ended
// there: (ISBN), is your order number.
func (s *scanner) namedAfter(i int) bool {
	behind := fold(s.text[i:min(len(s.text), i+cueWidth)])
	behind = strings.TrimLeft(behind, " \t\"'()[]")
	if word, _ := nextToken(behind); goodsWords.has(strings.Trim(word, ".,:;()[]")) {
		return true
	}
	verb, rest := nextToken(behind)
	article, rest := nextToken(rest)
	word, rest := nextToken(rest)
	if verb != "is" && verb != "was" && verb != "as" || !articles.has(article) {
		return false
	}
	word = strings.Trim(word, ".,:;")
	return (codeCues.have(word) || goodsWords.has(word)) &&
		!strings.Contains(rest, "line") && !strings.Contains(rest, "phone")
}

//nolint:gochecknoglobals // constant table
var articles = newWordIndex("the an your my our his her their its this")

// inDOI reports whether i lies in the name of a document (ISO 26324): 10., a registrant, a slash.
func (s *scanner) inDOI(i int) bool {
	from, _ := s.tokenAt(i)
	k := strings.Index(s.text[from:i], "10.")
	if k < 0 {
		return false
	}
	slash := s.groupEnd(from + k + len("10."))
	return s.byteAt(slash) == '/' && slash-from-k >= len("10.1000")
}

// goods reports whether a number is laid out as one, or named as one before or behind it.
func (s *scanner) goods(start, end int) bool {
	return isbn10(s.text[start:end]) || s.cuedBy(start, beforeCode) || s.orderBefore(start) ||
		s.goodsBefore(start) || s.inDOI(start) || s.namedAfter(end)
}

// isbn10 reports the number of a book from before 2007 (ISO 2108:1992): ten digits in four groups,
// the last of them a check digit, modulo 11.
func isbn10(value string) bool {
	groups, _ := groupsOf(value)
	last := len(value) - 1
	if groups != 4 || !isDigit(value[last]) || isDigit(value[last-1]) {
		return false
	}
	sum, n := 0, 0
	for i := range len(value) {
		if isDigit(value[i]) {
			sum += (10 - n) * int(value[i]-'0')
			n++
		}
	}
	return n == 10 && sum%11 == 0
}

// quantityCues name what is measured or counted. They stand directly before it.
//
//nolint:gochecknoglobals // constant table
var quantityCues = cues{
	"range", "ranges", "range of", "range from", "ranges from", "between", "ratio", "ratios",
	"ratio of", "size", "sizes", "size of", "dimension", "dimensions", "resolution", "version",
	"versions", "release", "score", "scores", "score of", "scale", "scale of", "pages",
	"coordinate",
	"coordinates", "lat", "latitude", "lon", "lng", "longitude", "interval", "intervals", "section",
	"chapter", "proportion", "proportions", "sum", "sum of", "total", "total of", "sequence",
	"bereich", "verhältnis", "größe", "koordinaten", "seiten", "summe", "rapport", "taille",
	"coordonnées", "rango", "proporción", "tamaño", "coordenadas", "intervallo", "rapporto",
	"диапазон", "размер", "координаты", "范围", "比例", "坐标", "尺寸", "範囲", "座標",
}

// units follow a number with a space between.
//
//nolint:gochecknoglobals // constant table
var units = newWordIndex("mm cm km kg mg ml px pixel pixels pt ms sec seconds minutes hours " +
	"bytes kb mb gb tb hz " +
	"khz mhz ghz kwh usd eur gbp dollars euros points votes percent meters metres miles feet " +
	"inches " +
	"grams tons tonnes degrees rows lines tokens items")

// quantity reports whether the number in [start, end) measures something: by the word or the sign
// of a currency before it, or by a unit behind it.
func (s *scanner) quantity(start, end int) bool {
	for _, sign := range [...]string{"$", "€", "£", "¥", "±", "~"} {
		if strings.HasSuffix(s.text[:start], sign) {
			return true
		}
	}
	return s.cuedBy(start, beforeQuantity) ||
		s.byteAt(end) == ' ' && units.has(s.text[end+1:s.wordEnd(end+1)])
}

// called reports whether a parenthesis at i belongs to the name before it: a call, an index. The
// word for a telephone calls nothing.
func (s *scanner) called(i int) bool {
	if s.byteAt(i) != '(' {
		return false
	}
	b := s.byteAt(i - 1)
	return (s.wordBefore(i) || b == ')' || b == ']') && !s.cuedBy(i+1, beforePhone)
}
