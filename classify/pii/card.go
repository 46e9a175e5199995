package pii

import "strings"

// Card numbers have 12 to 19 digits (ISO/IEC 7812-1).
const (
	minCard = 12
	maxCard = 19
)

// pan is a card number as it is written: the digits, and how far they go at the end of each group.
type pan struct {
	digits [maxCard]byte
	ends   [maxCardGroups]struct{ n, end int }
	groups int
}

// maxCardGroups is how many groups a card number has at most: 19 digits in fours.
const maxCardGroups = 5

// number returns the digits up to the end of a group.
func (p *pan) number(group int) string { return string(p.digits[:p.ends[group].n]) }

// card reads a payment card number: one run of digits, or groups that begin with one of four.
// Issuer prefix and length fit each other, and the check digit is right; or it is at least laid
// out, or called, as one.
func (s *scanner) card(i, first int) int {
	if b := s.byteAt(i - 1); first-i < 4 || first-i > maxCard || b == '.' || b == '+' || b == '-' ||
		b == '/' {
		return 0
	}
	var p pan
	s.readPAN(i, first, &p)
	for g := p.groups - 1; g >= 0 && p.ends[g].n >= minCard; g-- {
		if end := p.ends[g].end; s.isCard(p.number(g), i, end, g > 0) {
			return s.add(CreditCard, i, end, scoreChecksum)
		}
	}
	if s.suspectedCard(i, &p) {
		return s.add(CreditCard, i, p.ends[p.groups-1].end, scoreSuspected)
	}
	return 0
}

// readPAN reads the groups that begin at i, the first of which ends at first.
func (s *scanner) readPAN(i, first int, p *pan) {
	n := 0
	for k := i; p.groups < len(p.ends); {
		end := s.digitsEnd(k)
		if n+end-k > len(p.digits) || p.groups == 1 && first-i != 4 {
			return
		}
		n += copy(p.digits[n:], s.text[k:end])
		p.ends[p.groups].n, p.ends[p.groups].end = n, end
		p.groups++
		sep := s.byteAt(end)
		if sep != ' ' && sep != '-' || sep != s.byteAt(first) || !isDigit(s.byteAt(end+1)) {
			return
		}
		k = end + 1
	}
}

// suspectedCard reports whether what fails the check is meant as a card number all the same,
// mistyped or made up: 4-4-4-4 or 4-6-5 digits with the first digit of a network, in prose or near
// a word for cards, or 13 to 19 digits directly behind such a word.
func (s *scanner) suspectedCard(i int, p *pan) bool {
	if p.groups == 0 {
		return false
	}
	number, end := p.number(p.groups-1), p.ends[p.groups-1].end
	if len(number) < minCard+1 || !s.standsAlone(i, end) || uniformDigits(number) ||
		s.cuedBy(i, beforeCode) {
		return false
	}
	if s.cuedBy(i, beforeCard) {
		return true
	}
	return p.laidOut() && (!s.lines.at(i) || s.cued(i, cueWidth, cardCues))
}

// laidOut reports the groups that cards are embossed in, and the first digit of a network.
func (p *pan) laidOut() bool {
	first := p.digits[0]
	switch p.groups {
	case 3:
		return p.ends[0].n == 4 && p.ends[1].n == 10 && p.ends[2].n == 15 && first == '3'
	case 4:
		return p.ends[0].n == 4 && p.ends[1].n == 8 && p.ends[2].n == 12 && p.ends[3].n == 16 &&
			first >= '2' && first <= '6'
	}
	return false
}

// standsAlone reports whether [i, end) is all of a number: no group of digits or letters with
// digits stands beside it, as in an account number.
func (s *scanner) standsAlone(i, end int) bool {
	if s.wordAfter(end) {
		return false
	}
	if b := s.byteAt(end); (b == ' ' || b == '-' || b == '.' || b == '/') &&
		isDigit(s.byteAt(end+1)) {
		return false
	}
	b := s.byteAt(i - 1)
	return b != ' ' && b != '-' || !isDigit(s.byteAt(i-2))
}

// isCard judges the number at [i, end). One number in ten passes Luhn, so what no network issues,
// and what is short and in one piece, needs a word that names it.
func (s *scanner) isCard(number string, i, end int, grouped bool) bool {
	if s.wordAfter(end) || s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		return false
	}
	if number[0] == '0' || uniformDigits(number) || !luhn(number) {
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

// issuer is a range of the first digits of card numbers and the lengths in it.
type issuer struct {
	low, high string // of one length
	min, max  int    // digits of the whole number
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
	for _, r := range issuers {
		if p := number[:len(r.low)]; p >= r.low && p <= r.high && len(number) >= r.min &&
			len(number) <= r.max {
			return true
		}
	}
	return false
}
