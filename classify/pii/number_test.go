package pii

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// codes are numbers of goods, texts and machines with the word that names them.
var codes = []string{
	"ISBN 978-3-16-148410-0", "ISBN-13: 978-0-306-40615-7", "ISBN-10: 0-306-40615-2",
	"ISBN 0306406152", "the ISBN of the book is 0-8044-2957-1", "ISBN (10) 0 306 40615 2",
	"0-306-40615-2 (ISBN)", "ISBN10 0-306-40615-2", "my copy, 0-306-40615-2, is lost",
	"ISSN 2049-3630", "ISSN: 0317-8471", "EAN 4006381333931", "EAN-13 4 006381 333931",
	"GTIN-14: 1 061414 100073 4", "GTIN 00012345600012", "UPC 0 36000 29145 2",
	"DOI 10.1000/182", "doi:10.1016/0304-3975(85)90144-5", "https://doi.org/10.1109/5.771073",
	"IMEI 49-015420-323751-8", "IMEI: 490154203237518", "imei number is 35-209900-176148-1",
	"ORCID 0000-0002-1825-0097", "ORCID iD: 0000-0003-1415-9269", "arXiv:2103.12345",
	"arXiv 2103.12345v2", "see arXiv:hep-th/9901001", "order 415-555-0199",
	"order number: 415-555-0199", "Order #415-555-0199",
	"your order confirmation number is 0300-901-820",
	"order no. 415-555-0199", "ticket 020-7946-0958", "ticket ID 020 7946 0958",
	"invoice 0300-901-820", "Invoice no: 0300 901 820", "invoice number 415 555 0199",
	"415-555-0199 is your order number", "020-7946-0958 is the ticket number",
	"tracking number 0400 123 4567", "barcode 0 36000 29145 2", "SKU 415-555-0199",
}

func TestNumbersOfGoodsAreNoPhones(t *testing.T) {
	d := decoder(t)
	for _, text := range codes {
		patterns := Patterns(text, nil)
		for _, s := range patterns {
			if s.Type != DomainName {
				t.Errorf("%q gave %q", text, found(text, patterns))
			}
		}
		for _, guess := range guesses(text) {
			toks := tokens(t, text, []piece{{guess, "B-PHONE_NUMBER", 0.95}})
			for _, s := range d.Fuse(text, patterns, toks, nil) {
				if s.Type == PhoneNumber {
					t.Errorf("%q, guess %q gave %q", text, guess, text[s.Start:s.End])
				}
			}
		}
	}
}

// guesses are the longest number of a text and its two halves.
func guesses(text string) []string {
	best := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("0123456789-. ", r)
	}) {
		if word = strings.Trim(word, "-. "); len(word) > len(best) {
			best = word
		}
	}
	out := []string{best}
	if k := strings.IndexAny(best, " -."); k > 0 {
		k += 1 + strings.IndexAny(best[k+1:]+" ", " -.")
		out = append(out, best[:k], strings.TrimLeft(best[k:], "-. "))
	}
	if last := out[len(out)-1]; last == "" {
		out = out[:len(out)-1]
	}
	return out
}

func TestPhonesBesideWordsOfGoodsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"my order number is 5, call 415-555-0199":        "415-555-0199",
		"About the order: call me at 415-555-0199.":      "415-555-0199",
		"I lost my ticket. Phone 020 7946 0958, please.": "020 7946 0958",
		"ISBN 978-3-16-148410-0, phone 415-555-0199":     "415-555-0199",
		"call me at 415-555-0132 24/7":                   "415-555-0132",
		"415-555-0132 415-555-0133":                      "415-555-0132 415-555-0133",
		"415 555 0132 415 555 0133":                      "415 555 0132 415 555 0133",
		"12 (415) 555-0132":                              "(415) 555-0132",
		"tel(415) 555-0132":                              "(415) 555-0132",
		"she wrote 029 489 6871 on it":                   "029 489 6871",
	} {
		all := strings.Join(found(text, Patterns(text, nil)), " ")
		if got := strings.ReplaceAll(all, "PHONE_NUMBER:", ""); got != want {
			t.Errorf("%q gave %q, want %q", text, got, want)
		}
	}
}

// measures are numbers in groups that say how much, which and where.
var measures = []string{
	"range 100-200-3000", "range 200-300-4000", "a range of 200-300-4000", "between 100-200-3000",
	"100-200-3000", "123-456-7890", "555-123-4567", "1-100-200-3000",
	"f(555) 123 4567", "foo_(555) 123-4567", "x[0](555) 123 4567", "f(415-555-0132)",
	"sum(200) 300 4000", "the ratio 200-300-4000", "ratio 1:200:3000", "the size is 200 300 4000",
	"200 300 4000 mm", "version 415.555.0132", "version 200.300.4000", "pages 200-300-4000",
	"coordinates 52.5200 13.4049", "lat 052.520006", "at 37.7749295 122.4194155", "037.774929",
	"2019-2020-2021", "2019 2020 2021", "1024-65535", "10000-20000", "3.1415926 2.7182818",
	"the scale 200 300 4000", "resolution 415 555 0132", "scores 200-300-4000", "-122.4194155",
	"a score of 200-300-4000", "12 415 555 0132", "+100 200 3000", "415 555 0132 pixels",
	"1 2 3 4 5 6 7 8 9 10", "01 02 03 04 05",
}

func TestMeasuresAreNoPhones(t *testing.T) {
	for _, text := range measures {
		if got := Patterns(text, nil); len(got) > 0 {
			t.Errorf("%q gave %q", text, found(text, got))
		}
	}
}

func TestTheModelDoesNotMakeMeasuresPhones(t *testing.T) {
	d := decoder(t)
	for _, text := range measures {
		switch text {
		case "12 415 555 0132", "+100 200 3000", "555-123-4567": // a model may be sure of them
			continue
		}
		guess := guesses(text)[0]
		toks := tokens(t, text, []piece{{guess, "B-PHONE_NUMBER", 0.95}})
		if got := d.Fuse(text, nil, toks, nil); len(got) > 0 {
			t.Errorf("%q, guess %q gave %q", text, guess, found(text, got))
		}
	}
}

func TestAnAccountWithAWrongSumIsSuspected(t *testing.T) {
	for text, want := range map[string][]string{
		"IBAN DE89370400440532013001":                  {"IBAN_CODE:DE89370400440532013001?"},
		"Send it to DE89 3704 0044 0532 0130 01 today": {"IBAN_CODE:DE89 3704 0044 0532 0130 01?"},
		"GB83 WEST 1234 5698 7654 32":                  {"IBAN_CODE:GB83 WEST 1234 5698 7654 32?"},
		"ES91 2100 0418 4502 0005 1333 hoy": {
			"IBAN_CODE:ES91 2100 0418 4502 0005 1333?",
		},
		"FR15 2004 1010 0505 0001 3M02 606": {
			"IBAN_CODE:FR15 2004 1010 0505 0001 3M02 606?",
		},
		`{"iban": "NL92ABNA0417164300"}`:     {"IBAN_CODE:NL92ABNA0417164300?"},
		"NO94 8601 1117 947":                 {"IBAN_CODE:NO94 8601 1117 947?"},
		"DE89 3704 0044 0532 0130 00":        {"IBAN_CODE:DE89 3704 0044 0532 0130 00"},
		"XX89370400440532013001":             {},
		"DE8937040044053201300":              {},
		"DE893704004405320130011":            {},
		"DE89 370 400440532013001":           {},
		"DE89 3704 0044 0532 0130 01 22":     {},
		"ES91 2100 0418 4502 0005 1333 4444": {},
		"de89370400440532013001":             {},
		"id=DE89370400440532013001 ok=true":  {},
		"order DE89370400440532013001":       {},
		"DE89ABCDEFGHIJKLMNOPQR":             {},
	} {
		got := Patterns(text, nil)
		if diff := cmp.Diff(want, scored(text, got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestASuspectedAccountOutranksTheModel(t *testing.T) {
	const text = "Send it to DE89 3704 0044 0532 0130 01 today"
	toks := tokens(t, text, []piece{{"DE89 3704 0044 0532 0130 01", "B-US_DRIVER_LICENSE", 0.99}})
	got := decoder(t).Fuse(text, Patterns(text, nil), toks, nil)
	want := []string{"IBAN_CODE:DE89 3704 0044 0532 0130 01?"}
	if diff := cmp.Diff(want, scored(text, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
