package pii

import (
	"slices"
	"strings"
)

// Card numbers have 12 to 19 digits (ISO/IEC 7812-1).
const (
	minCard = 12
	maxCard = 19
)

// pan is a card number in its written form: the digits, and the end of each group.
type pan struct {
	digits [maxCard]byte
	ends   [maxCardGroups]struct{ n, end int }
	groups int
	over   bool // more digits follow than a card number and its code have
}

// maxCardGroups is the maximum number of groups in a card number: 19 digits in fours.
const maxCardGroups = 5

// maxCardCode is the maximum length of a security code. After the number it belongs to the finding.
const maxCardCode = 4

// number returns the digits up to the end of a group.
func (p *pan) number(group int) string { return string(p.digits[:p.ends[group].n]) }

// end returns the end of the last group.
func (p *pan) end() int { return p.ends[p.groups-1].end }

// card reads a payment card number: one run of digits, or groups of which the first has four.
// Issuer prefix and length must be consistent and the check digit correct; otherwise the number
// must have the layout of a card number, or be announced as one.
func (s *scanner) card(i, first int) int {
	if n := first - i; n != 4 && n < minCard || n > maxCard || !s.opensCard(i, first) {
		return 0
	}
	var p pan
	s.readPAN(i, &p)
	if p.over {
		return s.cardRun(i)
	}
	last := p.groups - 1
	for g := last; g >= 0 && p.ends[g].n >= minCard; g-- {
		if g < last && (p.ends[g].n < 15 || p.ends[last].n-p.ends[g].n > maxCardCode) {
			break
		}
		if s.isCard(p.number(g), i, p.end(), g > 0) {
			return s.add(CreditCard, i, p.end(), scoreChecksum)
		}
	}
	if s.suspectedCard(i, &p) {
		return s.add(CreditCard, i, p.end(), scoreSuspected)
	}
	return 0
}

// opensCard reports whether a card number may begin with the group [i, first): the preceding
// number, if joined, is a finding of its own, has another form, or cannot begin a card number.
func (s *scanner) opensCard(i, first int) bool {
	switch s.byteAt(i - 1) {
	case '.', '+', '-', '/':
		return false
	case ' ':
		return first-i >= minCard || !isDigit(s.byteAt(i-2)) || s.bareBefore(i) != 4 ||
			s.coveredTo(i-1)
	}
	return true
}

// readPAN reads the groups that begin at i.
func (s *scanner) readPAN(i int, p *pan) {
	n, spaces := 0, 0
	for k := i; ; {
		end := s.groupEnd(k)
		if p.groups == len(p.ends) || n+end-k > len(p.digits) {
			p.over = true
			return
		}
		n += copy(p.digits[n:], s.text[k:end])
		p.ends[p.groups].n, p.ends[p.groups].end = n, end
		p.groups++
		if !s.joinsOn(end) {
			return
		}
		if s.text[end] == ' ' {
			if n >= minCard && spaces == 0 || s.otherBehindCard(end+1, n) {
				return
			}
			spaces++
		}
		k = end + 1
	}
}

// otherBehindCard reports whether the group at i, after n digits of a card number, is something
// else: an expiry date, a date, a count.
func (s *scanner) otherBehindCard(i, n int) bool {
	if n >= 15 {
		return s.otherAt(i)
	}
	return s.strange(s.groupEnd(i))
}

// suspectedCard reports whether a number that fails the check is nevertheless meant as a card
// number, mistyped or made up: it has the layout of one, in prose or near a word for cards, or has
// 13 to 19 digits directly after such a word.
func (s *scanner) suspectedCard(i int, p *pan) bool {
	number := p.number(p.groups - 1)
	if len(number) < minCard+1 || !s.standsAlone(i, p.end()) || uniformDigits(number) ||
		s.cuedBy(i, beforeCode) || s.goodsBefore(i) {
		return false
	}
	if s.cuedBy(i, beforeCard) {
		return true
	}
	return p.laidOut() && (!s.lines.at(i) || s.cued(i, cueWidth, cardCues))
}

// laidOut reports whether the groups are those embossed on cards. Rows of years and of round
// numbers, which have them too, are excluded.
func (p *pan) laidOut() bool {
	if p.digits[0] == '0' {
		return false
	}
	var sizes [maxCardGroups]int
	years, round, from := true, true, 0
	for g := range p.groups {
		n := p.ends[g].n
		sizes[g] = n - from
		group := string(p.digits[from:n])
		years = years && len(group) == 4 && validYear(group)
		round = round && strings.HasSuffix(group, "00")
		from = n
	}
	return cardSizes(sizes[:p.groups]) && !years && !round
}

// cardSizes reports whether the sizes of groups are those of cards, with or without a security
// code: four fours, or 4-6-5.
func cardSizes(sizes []int) bool {
	switch len(sizes) {
	case 3:
		return sizes[0] == 4 && sizes[1] == 6 && sizes[2] == 5
	case 4, 5:
		return sizes[0] == 4 && sizes[1] == 4 && sizes[2] == 4 && sizes[3] == 4
	}
	return false
}

// standsAlone reports whether [i, end) is a complete number and not an account number: no group of
// digits, or of letters and digits, is joined to it.
func (s *scanner) standsAlone(i, end int) bool {
	if s.wordAfter(end) || s.byteAt(end) == '/' && isDigit(s.byteAt(end+1)) || s.torn(i, end) {
		return false
	}
	return !s.joinsBack(i) || !s.codeBehind(i-1)
}

// codeBehind reports whether the word that ends at i contains letters as well as digits.
func (s *scanner) codeBehind(i int) bool {
	from, _ := s.tokenAt(i - 1)
	return hasLetter(s.text[from:i])
}

// runGroups is the number of groups of a long run that are judged together: 16 cards.
const runGroups = 64

// cardRun reads several card numbers in one line, or one next to a number that could be a part of
// another: groups of four digits of which every four are a card number. A row of four-digit numbers
// rarely contains a valid one at the right position.
func (s *scanner) cardRun(i int) int {
	var ends [runGroups]int
	groups := s.fours(i, &ends)
	cards, rest := groups/4, groups%4
	if cards == 0 || s.runGoesOn(ends[groups-1], groups) || s.goodsBefore(i) {
		return 0
	}
	cued := s.cued(i, cueWidth, cardCues)
	shift := 0
	if !s.cardsIn(i, ends[:groups], cued) {
		if rest == 0 || !s.cardsIn(groupStart(i, ends[:], rest), ends[rest:groups], cued) {
			return 0
		}
		shift = rest
	}
	if (rest > 0 || cards > 1) && s.tornBefore(i, ends[groups-1]) {
		return 0
	}
	start := i
	for c := range cards {
		g := shift + 4*c
		from := groupStart(i, ends[:], g)
		end, score := ends[g+3], scoreSuspected
		if c == cards-1 {
			end = ends[groups-1]
		}
		if s.validFour(from, ends[g+3]) && (cued || cards > 1 || rest == 0) {
			score = scoreChecksum
		}
		s.add(CreditCard, start, end, score)
		start = end + 1
	}
	return ends[groups-1]
}

// runGoesOn reports whether a run of groups that ends at end is cut within a number. A group of
// another size after a complete card number is a separate number.
func (s *scanner) runGoesOn(end, groups int) bool {
	if groups == runGroups || !s.joinsOn(end) {
		return false
	}
	return s.text[end] != ' ' || groups%4 > 0 && !s.otherAt(end+1)
}

// groupStart returns the start of group g of a run that begins at i.
func groupStart(i int, ends []int, g int) int {
	if g == 0 {
		return i
	}
	return ends[g-1] + 1
}

// fours records the ends of the groups of four digits that begin at i and returns their number.
func (s *scanner) fours(i int, ends *[runGroups]int) (groups int) {
	for groups < len(ends) {
		end := s.groupEnd(i)
		if end-i != 4 || s.strange(end) {
			break
		}
		ends[groups] = end
		groups++
		if !s.joinsOn(end) {
			break
		}
		i = end + 1
	}
	return groups
}

// cardsIn reports whether the fours of groups that begin at i are card numbers: the first and at
// least half of them. In machine text all must be, or a word for cards must precede.
func (s *scanner) cardsIn(i int, ends []int, cued bool) bool {
	cards, valid := len(ends)/4, 0
	for c := range cards {
		if s.validFour(groupStart(i, ends, 4*c), ends[4*c+3]) {
			valid++
		} else if c == 0 {
			return false
		}
	}
	return valid == cards || 2*valid >= cards && (cued || !s.lines.at(i))
}

// validFour reports whether the four groups of four digits in [from, to) are a valid card number.
func (s *scanner) validFour(from, to int) bool {
	var digits [16]byte
	n := 0
	for k := from; k < to && n < len(digits); k++ {
		if isDigit(s.text[k]) {
			digits[n] = s.text[k]
			n++
		}
	}
	number := string(digits[:n])
	return n == len(digits) && !uniformDigits(number) && luhn(number) && issued(number)
}

// isCard judges the number at [i, end). One number in ten passes Luhn, so numbers that no network
// issues, and short ones in one piece, require a word that names them.
func (s *scanner) isCard(number string, i, end int, grouped bool) bool {
	if s.wordAfter(end) || number[0] == '0' || uniformDigits(number) || !luhn(number) {
		return false
	}
	if s.goodsBefore(i) {
		return false
	}
	return issued(number) && (grouped || len(number) >= 15) || s.cued(i, cueWidth, cardCues)
}

// cardCues name a card number in the languages that the patterns are made for.
//
//nolint:gochecknoglobals // constant table
var cardCues = cues{
	"card", "visa", "mastercard", "amex", "maestro", "diners", "discover", "jcb", "credit", "debit",
	"pan", "cc",
	"karte", "karten", "kreditkarte", "kreditkartennummer", "kartennummer", "carte", "tarjeta",
	"cartão", "carta", "kaart", "kort", "kortet", "karta", "karty", "kartı", "kartım", "карта",
	"карты", "卡", "カード",
}

func uniformDigits(s string) bool { return strings.Count(s, s[:1]) == len(s) }

// luhn checks the check digit (ISO/IEC 7812-1, annex B).
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// issuer is a range of the first digits of card numbers with the permitted lengths.
type issuer struct {
	low, high string // both of the same length
	min, max  int    // number of digits in the whole number
}

// issuers are the ranges that the networks publish for merchants (Visa, Mastercard, American
// Express, Diners Club, Discover, JCB, UnionPay, Maestro, Mir, Troy, RuPay; as of 2025).
//
//nolint:gochecknoglobals // constant table
var issuers = []issuer{
	{"4", "4", 13, 19},
	{"51", "55", 16, 16},
	{"2221", "2720", 16, 16},
	{"34", "34", 15, 15},
	{"37", "37", 15, 15},
	{"300", "305", 14, 19},
	{"3095", "3095", 14, 19},
	{"36", "36", 14, 19},
	{"38", "39", 14, 19},
	{"6011", "6011", 16, 19},
	{"644", "659", 16, 19},
	{"3528", "3589", 16, 19},
	{"2131", "2131", 15, 15},
	{"1800", "1800", 15, 15},
	{"62", "62", 16, 19},
	{"81", "82", 16, 19},
	{"2200", "2204", 16, 19},
	{"9792", "9792", 16, 16},
	{"60", "60", 16, 16},
	{"5018", "5018", 12, 19},
	{"5020", "5020", 12, 19},
	{"5038", "5038", 12, 19},
	{"5612", "5612", 12, 19},
	{"5893", "5893", 12, 19},
	{"6304", "6304", 12, 19},
	{"6390", "6390", 12, 19},
	{"6759", "6763", 12, 19},
	{"56", "58", 12, 19},
	{"67", "67", 12, 19},
}

// issued reports whether a network issues numbers of this beginning and length.
func issued(number string) bool {
	return slices.ContainsFunc(issuers, func(r issuer) bool {
		p := number[:len(r.low)]
		return p >= r.low && p <= r.high && len(number) >= r.min && len(number) <= r.max
	})
}
