package pii

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

// scored lists spans as TYPE:text, with the score of what is only suspected.
func scored(text string, spans []Span) []string {
	out := found(text, spans)
	for i, s := range spans {
		if s.Score == scoreSuspected {
			out[i] += "?"
		}
	}
	return out
}

func TestACardNumberIsFoundAsAWhole(t *testing.T) {
	for text, want := range map[string][]string{
		"4242 4242 4242 4241":                    {"CREDIT_CARD:4242 4242 4242 4241?"},
		"my card is 4242 4242 4242 4241, thanks": {"CREDIT_CARD:4242 4242 4242 4241?"},
		"card 4242-4242-4242-4241 declined":      {"CREDIT_CARD:4242-4242-4242-4241?"},
		"visa 4242.4242.4242.4241":               {"CREDIT_CARD:4242.4242.4242.4241?"},
		"4111 1111 1111 1112":                    {"CREDIT_CARD:4111 1111 1111 1112?"},
		"1234 5678 9012 3456":                    {"CREDIT_CARD:1234 5678 9012 3456?"},
		"amex 3782 822463 10006":                 {"CREDIT_CARD:3782 822463 10006?"},
		"3782-822463-10006":                      {"CREDIT_CARD:3782-822463-10006?"},
		"card 4242 4242 4242 425":                {"CREDIT_CARD:4242 4242 4242 425?"},
		"4111 1111 1111 1112 12/27":              {"CREDIT_CARD:4111 1111 1111 1112?"},
		"card 4242 4242 4242 4242 12/27 123":     {"CREDIT_CARD:4242 4242 4242 4242"},
		"pay 4242 4242 4242 4242 123":            {"CREDIT_CARD:4242 4242 4242 4242 123"},
		"pay 3782 822463 10005 1234":             {"CREDIT_CARD:3782 822463 10005 1234"},
		"pay 4242424242424242-123":               {"CREDIT_CARD:4242424242424242-123"},
		"pay 4242.4242.4242.4242":                {"CREDIT_CARD:4242.4242.4242.4242"},
		"pay 4242 4242-4242 4242":                {"CREDIT_CARD:4242 4242-4242 4242"},
		"row 3 4242 4242 4242 4242":              {"CREDIT_CARD:4242 4242 4242 4242"},
		"4242 4242 4242 4242 2027-01-31": {
			"CREDIT_CARD:4242 4242 4242 4242", "DATE_TIME:2027-01-31",
		},
		"card 4242 4242 4242 4242 1234": {"CREDIT_CARD:4242 4242 4242 4242 1234"},
		"card 1234 4242 4242 4242 4242": {"CREDIT_CARD:1234 4242 4242 4242 4242"},
		"4242 4242 4242 4242 1234": {
			"CREDIT_CARD:4242 4242 4242 4242 1234?",
		},
		"4242 4242 4242 4242 5555 5555 5555 4444": {
			"CREDIT_CARD:4242 4242 4242 4242", "CREDIT_CARD:5555 5555 5555 4444",
		},
		"4242 4242 4242 4242 4111 1111 1111 1112": {
			"CREDIT_CARD:4242 4242 4242 4242", "CREDIT_CARD:4111 1111 1111 1112?",
		},
		"4242-4242-4242-4242 5555-5555-5555-4444": {
			"CREDIT_CARD:4242-4242-4242-4242", "CREDIT_CARD:5555-5555-5555-4444",
		},
		"4242 4242 4242 4242 555 234 4567": {
			"CREDIT_CARD:4242 4242 4242 4242", "PHONE_NUMBER:555 234 4567",
		},
		"card 4242 4242 4242":                             {"CREDIT_CARD:4242 4242 4242"},
		"4111 1111 1111 1112 3456":                        {},
		"3456 4111 1111 1111 1112":                        {},
		"order 4111 1111 1111 1112":                       {},
		"in 2019 2020 2021 2022 we met":                   {},
		"1000 2000 3000 4000":                             {},
		"1111 1111 1111 1111":                             {},
		"7f45 4c46 0201 0100 4242 4242 4242 4241":         {},
		"1021 3345 4242 4242 4242 9913 1002 4431 2231":    {},
		"ORCID 0000-0002-1825-0097":                       {},
		"0000-0002-1825-0097":                             {},
		"NX89 3704 0044 0532 0131":                        {},
		"call 4242 4242-4242 4241":                        {"CREDIT_CARD:4242 4242-4242 4241?"},
		"total 4242 4242 4242":                            {},
		"4242-4242-4242-4241-4242-4242":                   {},
		"IMEI 490154203237518 is the phone":               {},
		"card 4242 4242 4242 4241 and 4242 4242 4242 425": {"CREDIT_CARD:4242 4242 4242 4241?"},
	} {
		if diff := cmp.Diff(want, scored(text, Patterns(text, nil))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestTheModelDoesNotMakeACardAPhone(t *testing.T) {
	d := decoder(t)
	for text, want := range map[string][]string{
		"4111 1111 1111 1112":            {"CREDIT_CARD:4111 1111 1111 1112?"},
		"1234-5678-9012-3456":            {"CREDIT_CARD:1234-5678-9012-3456?"},
		"3782 822463 10006":              {"CREDIT_CARD:3782 822463 10006?"},
		"order 4111 1111 1111 1112":      {},
		"2019 2020 2021 2022":            {},
		"0000-0002-1825-0097":            {},
		"call me on 4111 1111 1111 1112": {"CREDIT_CARD:4111 1111 1111 1112?"},
	} {
		at := strings.IndexAny(text, "0123456789")
		for _, guess := range []string{text[at:], text[at : at+9]} {
			toks := tokens(t, text, []piece{{guess, "B-PHONE_NUMBER", 0.99}})
			got := d.Fuse(text, Patterns(text, nil), toks, nil)
			if diff := cmp.Diff(want, scored(text, got)); diff != "" {
				t.Errorf("%q, guess %q (-want +got):\n%s", text, guess, diff)
			}
		}
	}
}

func TestAGuessAtAPartOfANumberIsTheWhole(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess, kind, want string }{
		{"reach me on 612 345 678 then", "612 345", PhoneNumber, "PHONE_NUMBER:612 345 678"},
		{"reach me on 612 345 678 then", "345 678", PhoneNumber, "PHONE_NUMBER:612 345 678"},
		{"in Salem 97301-1234 now", "97301", ZipCode, "ZIP_CODE:97301-1234"},
		{"he gave 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "4 5 6 7 8 9 10", PhoneNumber, ""},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, 0.99}})
		got := strings.Join(found(tt.text, d.Fuse(tt.text, nil, toks, nil)), " ")
		if got != tt.want {
			t.Errorf("%q, guess %q gave %q, want %q", tt.text, tt.guess, got, tt.want)
		}
	}
}

// numeric are the types whose values are numbers of a fixed form.
var numeric = map[string]bool{
	Age: true, CreditCard: true, IBAN: true, PhoneNumber: true, DriverLicense: true, SSN: true,
	ZipCode: true,
}

// joined reports whether one of the signs that join groups of digits is at i.
func joined(text string, i int) bool {
	return i >= 0 && i < len(text) && strings.IndexByte("-. ", text[i]) >= 0
}

var spaceBetween = regexp.MustCompile(`[0-9] [0-9]`)

// tornAway tells why a span is only a part of a number, or returns "". It knows nothing of the
// scanner: a span ends where no group of digits is joined to it by a space, dash or dot, or where
// that group is plainly another thing.
func tornAway(text string, spans []Span, k int) string {
	s := spans[k]
	digitAt := func(i int) bool { return i >= 0 && i < len(text) && isDigit(text[i]) }
	if digitAt(s.Start) && digitAt(s.Start-1) || digitAt(s.End-1) && digitAt(s.End) {
		return "cuts a group of digits"
	}
	value := text[s.Start:s.End]
	groups := strings.FieldsFunc(value, func(r rune) bool { return r < '0' || r > '9' })
	byItself := strings.Trim(value, "0123456789") == "" && len(value) >= 5 ||
		len(groups) > 1 && !spaceBetween.MatchString(value)
	spanAt := func(i int) bool {
		return k+1 < len(spans) && spans[k+1].Start == i || k > 0 && spans[k-1].End == i
	}
	extended := s.Type == PhoneNumber && hasLetter(value) // an extension ends it
	if !extended && digitAt(s.End-1) && joined(text, s.End) && digitAt(s.End+1) {
		next, behind, _ := strings.Cut(text[s.End+1:], " ")
		next = strings.TrimRight(next, ".,;:!?)\"'\n")
		pure := strings.Trim(next, "0123456789") == ""
		count := len(next) <= 2 && behind != "" && !isDigit(behind[0])
		codeOf := s.Type == CreditCard && s.Score == 1 && len(next) != 4
		if text[s.End] != ' ' || pure && !byItself && !count && !codeOf && !spanAt(s.End+1) {
			return "goes on as " + text[s.End:]
		}
	}
	if digitAt(s.Start) && joined(text, s.Start-1) && digitAt(s.Start-2) {
		words := strings.Fields(text[:s.Start-1])
		last := strings.TrimLeft(words[len(words)-1], "(\"'")
		pure := strings.Trim(last, "0123456789") == ""
		rowOf := s.Type == CreditCard && s.Score == 1 && len(last) != 4
		if text[s.Start-1] != ' ' || pure && !byItself && !rowOf && !spanAt(s.Start-1) {
			return "begins behind " + text[:s.Start]
		}
	}
	return ""
}

// layouts makes up a number in groups with words around it.
func layouts(rng *rand.Rand) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	var b strings.Builder
	b.WriteString(pick("", "", "card ", "visa: ", "call ", "my phone is ", "ssn ", "zip ", "aged ",
		"license ", "order ", "IBAN ", "the sum of ", "at 10:30 ", "on 12/27 ", "phone +", "no (",
		"I am ", "DE89 ", "range ", "DE12 ", "driver license D"))
	groups := 1 + rng.IntN(7)
	joint := pick(" ", "-", ".")
	sizes := pick("4", "4", "34", "324", "12345", "1246", "3", "5")
	issued := rng.IntN(3) == 0
	for g := range groups {
		if g > 0 {
			if rng.IntN(8) == 0 {
				joint = pick(" ", "-", ".")
			}
			b.WriteString(joint)
		}
		for n := int(sizes[rng.IntN(len(sizes))] - '0'); n > 0; n-- {
			if issued {
				b.WriteString(pick("4", "2"))
				continue
			}
			fmt.Fprint(&b, rng.IntN(10))
		}
	}
	b.WriteString(pick("", "", ".", ", thanks", " years old", " 2 times", " 12/27", "-", " or 5",
		")", " 555", " x5", "/5", ":30", " ext. 4", " Salem", "%", " 415-555-0132", "\n42", " 12"))
	return b.String()
}

func TestNoNumberIsPartOfALongerOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	wrong, texts := 0, 100_000
	if testkit.Race {
		texts /= 4
	}
	for range texts {
		text := layouts(rng)
		spans := Patterns(text, nil)
		check(t, text, spans)
		for k, s := range spans {
			if !numeric[s.Type] {
				continue
			}
			if why := tornAway(text, spans, k); why != "" {
				if wrong++; wrong < 20 {
					t.Errorf("%q: %q %s", text, found(text, spans[k:k+1]), why)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d spans are parts of numbers", wrong)
	}
}

func FuzzWholeNumbers(f *testing.F) {
	for _, s := range []string{
		"4242 4242 4242 4241", "call 12 415 555 0132", "zip 90210-1234-5678", "ssn 12 078 05 1120",
		"25 000 years old", "D123.456 license", "4242-4242 4242-4242",
		"DE89 3704 0044 0532 0130 01",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		spans := Patterns(text, nil)
		for k, s := range spans {
			if why := tornAway(text, spans, k); numeric[s.Type] && why != "" {
				t.Errorf("%q: %q %s", text, found(text, spans[k:k+1]), why)
			}
		}
	})
}
