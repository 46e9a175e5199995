package pii

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

// found lists spans as TYPE:text.
func found(text string, spans []Span) []string {
	out := make([]string, 0, len(spans))
	for _, s := range spans {
		out = append(out, s.Type+":"+text[s.Start:s.End])
	}
	return out
}

// people returns the names that the patterns find, with commas between them.
func people(text string) string {
	var names []string
	for _, s := range Patterns(text, nil) {
		if s.Type == Person {
			names = append(names, text[s.Start:s.End])
		}
	}
	return strings.Join(names, ",")
}

func TestPatternsFind(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"a mail address", "write to jo.ann+news@mail.example.co.uk.", []string{"EMAIL_ADDRESS:jo.ann+news@mail.example.co.uk"}},
		{"a mail address with a name in another script", "ü@bücher.example, mail:müller@bücher.de", []string{"EMAIL_ADDRESS:ü@bücher.example", "EMAIL_ADDRESS:müller@bücher.de"}},
		{"a mail address behind a script without spaces", "联系我jo@example.org。谢谢", []string{"EMAIL_ADDRESS:jo@example.org"}},
		{"a mail address before a long run without spaces", "请联系taro@example.com我会在收到邮件之后的两个工作日之内尽快回复您的所有问题", []string{"EMAIL_ADDRESS:taro@example.com"}},
		{"a mail address before a script without spaces", "メールはtaro@example.co.jpです。次は李娜li@qq.com的邮箱，ไป a@b.org ครับ", []string{"EMAIL_ADDRESS:taro@example.co.jp", "EMAIL_ADDRESS:li@qq.com", "EMAIL_ADDRESS:a@b.org"}},
		{"values with particles of Korean", "minsu@naver.com입니다.그리고 DE89370400440532013000이고 카드는 4111 1111 1111 1111이며 92.127.194.23에서 전화번호는 010-1234-5678입니다", []string{"EMAIL_ADDRESS:minsu@naver.com", "IBAN_CODE:DE89370400440532013000", "CREDIT_CARD:4111 1111 1111 1111", "IP_ADDRESS:92.127.194.23", "PHONE_NUMBER:010-1234-5678"}},
		{"digits and signs of full width", "電話は０９０－１２３４－５６７８、ｔａｒｏ＠ｅｘａｍｐｌｅ．ｃｏ．ｊｐ、 tel 03-1234-5678", []string{"PHONE_NUMBER:０９０－１２３４－５６７８", "EMAIL_ADDRESS:ｔａｒｏ＠ｅｘａｍｐｌｅ．ｃｏ．ｊｐ", "PHONE_NUMBER:03-1234-5678"}},
		{"digits of Arabic and Persian", "é card ٤١١١ ١١١١ ١١١١ ١١١١, رقم هاتفي ٠١٠٠١٢٣٤٥٦٧ أو +۹۸ ۲۱ ۱۲۳۴ ۵۶۷۸", []string{"CREDIT_CARD:٤١١١ ١١١١ ١١١١ ١١١١", "PHONE_NUMBER:٠١٠٠١٢٣٤٥٦٧", "PHONE_NUMBER:+۹۸ ۲۱ ۱۲۳۴ ۵۶۷۸"}},
		{"telephone numbers behind words of other languages", "휴대폰 01012345678, मोबाइल 9876543210, โทร 0812345678, جوال 0501234567", []string{"PHONE_NUMBER:01012345678", "PHONE_NUMBER:9876543210", "PHONE_NUMBER:0812345678", "PHONE_NUMBER:0501234567"}},
		{"a site before Japanese and Korean", "https://shop.bright.co.jpを見て www.wiki.kr에서", []string{"DOMAIN_NAME:https://shop.bright.co.jp", "DOMAIN_NAME:www.wiki.kr"}},
		{"a domain of two scripts", "jo@abc日本.jp, jo@x.com日本.jp", []string{"EMAIL_ADDRESS:jo@abc日本.jp", "EMAIL_ADDRESS:jo@x.com日本.jp"}},
		{"a mail address in brackets and quotes", `<a_b@example.com> "c@example.net"`, []string{"EMAIL_ADDRESS:a_b@example.com", "EMAIL_ADDRESS:c@example.net"}},
		{"cards of several networks", "4111111111111111 5555 5555 5555 4444 3782-8224-6310-005", []string{"CREDIT_CARD:4111111111111111", "CREDIT_CARD:5555 5555 5555 4444", "CREDIT_CARD:3782-8224-6310-005"}},
		{"a card that is mistyped", "visa 4111111111111112, 4111 1111 1111 1112 or 3782-822463-10006", []string{"CREDIT_CARD:4111111111111112", "CREDIT_CARD:4111 1111 1111 1112", "CREDIT_CARD:3782-822463-10006"}},
		{"an employer", "I work for Lindenport and she is the CEO of Nord Stahl.", []string{"ORGANIZATION:Lindenport", "ORGANIZATION:Nord Stahl"}},
		{"a card of no network where the text says card", "charge card 9999999999999995 today", []string{"CREDIT_CARD:9999999999999995"}},
		{"account numbers in one piece and in groups", "IBAN DE89370400440532013000 or gb82 west 1234 5698 7654 32", []string{"IBAN_CODE:DE89370400440532013000", "IBAN_CODE:gb82 west 1234 5698 7654 32"}},
		{"addresses of machines", "from 92.127.194.23, 2292:3e84::8a2e:370:7334 and 2a00::1", []string{"IP_ADDRESS:92.127.194.23", "IP_ADDRESS:2292:3e84::8a2e:370:7334", "IP_ADDRESS:2a00::1"}},
		{"addresses of sites", "see https://shop.brightfield.com/a?b=(c), www.wiki.de or plain-site.org!", []string{"DOMAIN_NAME:https://shop.brightfield.com/a?b=(c)", "DOMAIN_NAME:www.wiki.de", "DOMAIN_NAME:plain-site.org"}},
		{"a social security number", "my ssn is 123-45-6789, or SSN: 123456789", []string{"US_SSN:123-45-6789", "US_SSN:123456789"}},
		{"a driver licence", "Driver's license D123-4567-8901 and license no 12345678", []string{"US_DRIVER_LICENSE:D123-4567-8901", "US_DRIVER_LICENSE:12345678"}},
		{"telephone numbers", "+44 20 7946 0958, (555) 123-4567, 1-800-555-0199x22, call me at 555-0134", []string{"PHONE_NUMBER:+44 20 7946 0958", "PHONE_NUMBER:(555) 123-4567", "PHONE_NUMBER:1-800-555-0199x22", "PHONE_NUMBER:555-0134"}},
		{"telephone numbers of other countries", "Rufen Sie 030 901820 an, tel. 01 42 68 53 00, 電話番号は03-1234-5678です", []string{"PHONE_NUMBER:030 901820", "PHONE_NUMBER:01 42 68 53 00", "PHONE_NUMBER:03-1234-5678"}},
		{"postal codes", "zip code is 90210, postcode SW1A 1AA; Portland, OR 97201-1234; plz 10115", []string{"ZIP_CODE:90210", "ZIP_CODE:SW1A 1AA", "ZIP_CODE:97201-1234", "ZIP_CODE:10115"}},
		{
			"mail in an address of a site", "GET /u?mail=sofia.lind%40posteo.net&x=1, 5%40 off, a%40b",
			[]string{"EMAIL_ADDRESS:sofia.lind%40posteo.net"},
		},
		{"ages", "aged 43, a 7-year-old, 30 years old, J'ai 78 ans, ich bin 62 Jahre alt, мне 25 лет, 今年20岁", []string{"AGE:43", "AGE:7", "AGE:30", "AGE:78", "AGE:62", "AGE:25", "AGE:20"}},
		{
			"titles", "Mr. Doe met Dr Watson, Prof. gábor and Frau Weiß",
			[]string{"TITLE:Mr.", "PERSON:Doe", "TITLE:Dr", "PERSON:Watson", "TITLE:Prof.", "TITLE:Frau", "PERSON:Weiß"},
		},
		{"dates", "on 2021-03-04T10:20:30Z, 12/31/1999, 1.2.2003, 24 Jul 1993, September 15, 1999, 3 de mayo de 2011, 2024年3月5日", []string{"DATE_TIME:2021-03-04T10:20:30Z", "DATE_TIME:12/31/1999", "DATE_TIME:1.2.2003", "DATE_TIME:24 Jul 1993", "DATE_TIME:September 15, 1999", "DATE_TIME:3 de mayo de 2011", "DATE_TIME:2024年3月5日"}},
		{"a date that belongs to someone", "born in March 1978, dob is May 5", []string{"DATE_TIME:March 1978", "DATE_TIME:May 5"}},
		{"a date with its weekday", "on Saturday, 24 August we met", []string{"DATE_TIME:Saturday, 24 August"}},
		{"groups of people", "as a Muslim citizen, the Puerto Rican delegation, a 20-year-old Hindu", []string{"NRP:Muslim", "NRP:Puerto Rican", "AGE:20", "NRP:Hindu"}},
		{"homes", "I was born in New York City and live in Chile", []string{"GPE:New York City", "GPE:Chile"}},
		{"companies", "He left Miller and Sons Ltd. for Nord-Stahl GmbH", []string{"ORGANIZATION:Miller and Sons Ltd.", "ORGANIZATION:Nord-Stahl GmbH"}},
		{"a name that is announced", "my name is Ann-Marie O'Neil and me llamo Inés", []string{"PERSON:Ann-Marie O'Neil", "PERSON:Inés"}},
		{"street addresses", "ship to 221 Baker Street, or 12 Elm Tree Rd. Apt. 5, Salem, OR 97301", []string{"STREET_ADDRESS:221 Baker Street", "STREET_ADDRESS:12 Elm Tree Rd. Apt. 5, Salem, OR 97301"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Patterns(tt.text, nil)
			if diff := cmp.Diff(tt.want, found(tt.text, got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
			check(t, tt.text, got)
		})
	}
}

func TestPatternsLeaveOrdinaryTextAlone(t *testing.T) {
	for name, text := range map[string]string{
		"numbers":                    "505,000 km, 86 %, 3.5 to 5, 1961, 10:30, 1/2, 4-3-3 and $1,234.56",
		"addresses inside networks":  "127.0.0.1, 0.0.0.0, 10.1.2.3, 172.16.0.9, 192.168.10.7, 100.64.0.1, fe80::1, fd00::7, ::1 and 2001:db8::7 or 203.0.113.9",
		"sites of documents":         "see https://shop.example.com/a, www.example.org, http://localhost:80/x and https://t.co/Ab1",
		"time stamps of lines":       "2021-03-04T10:20:30Z it began\n[2021-03-04 10:20:30] it ended\nDate: Mon Mar 11 16:32:01 2024 +0100",
		"numbers of goods":           "order 415-555-0199, ISBN 978-3-16-148410-0, invoice 0300-901-820, ticket number 020-7946-0958",
		"versions and sections":      "version 1.2.3.4, go1.26, section 2.4.1, chapter 3.4.12",
		"a number that fails Luhn":   "4111111111111112, order 4111 1111 1111 1112, 4111 1111 1111 1112 3456",
		"Luhn without a network":     "id 9999999999999995",
		"the id of a span":           "traceparent 4bf92f3577b34da6a3ce929d0e0e4736-be72868dff979baa-01, span=be72868dff979baa",
		"an account that is short":   "IBAN DE8937040044053201300, XX89370400440532013001",
		"areas that are not issued":  "my ssn is 000-12-3456, 666-12-3456, 912-34-5678, 123-00-4567 or 123-45-0000",
		"another number of the form": "order 123-45-6789",
		"file names and methods":     "main.py, README.md, run.sh, os.name, self.id, list.map(x), e.g. this, end.The",
		"paths in code":              "std::vector<int> a::b; x::c(); Foo::Bar",
		"decorators and handles":     "@override and @user, a @ b, 5 @ 3",
		"cue words by themselves":    "what is a zip code? my phone is broken, the license expired, my age, dear sir",
		"places and peoples":         "The capital of France is Paris; French food and Roman history",
		"months":                     "May 5 people come? In March we march; 7 out of 40",
		"knobs":                      "the dial turns 90 degrees; she turned 3 pages; ages 5 to 10",
		"a private use of title":     "I miss you. The sir is missing; Don't",
		"ranges":                     "2019-2020, 10-12, pages 123-456, 1-2-3-4-5",
		"an ISBN":                    "ISBN 978-3-16-148410-0",
		"a hash":                     "d41d8cd98f00b204e9800998ecf8427e and 9f86d081-884c-7d65-9a2f-eaa0c55ad015",
		"a street without a number":  "Wall Street and Baker Street",
		"an exact time":              "07:30 and 22:15:07",
	} {
		if got := Patterns(text, nil); len(got) > 0 {
			t.Errorf("%s: %q gave %q", name, text, found(text, got))
		}
	}
}

func TestPatternsAppendBehindWhatIsThere(t *testing.T) {
	first := []Span{{Type: "X", Start: 3, End: 4}}
	got := Patterns("a@example.com", first)
	want := []Span{first[0], {Type: EmailAddress, End: 13, Score: 1, Pattern: true}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPatternsOfTextWithoutAnyCostNoAllocation(t *testing.T) {
	if n := testing.AllocsPerRun(20, func() { Patterns(prose, nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// hostile texts make a careless scanner look at the same bytes again and again.
func hostile(size int) map[string]string {
	fill := func(s string) string { return strings.Repeat(s, size/len(s)) }
	return map[string]string{
		"digits":        fill("1"),
		"digit groups":  fill("1 "),
		"dots":          fill("a."),
		"hosts":         fill("aaaaaaa.bbbbbbb."),
		"at signs":      fill("@"),
		"mail locals":   fill("a") + "@",
		"colons":        fill("a:"),
		"groups of hex": fill("abcd:"),
		"capitals":      fill("Ab "),
		"a long word":   fill("Ab"),
		"parentheses":   fill("(1"),
		"schemes":       fill("http://"),
		"companies":     fill("Abc ") + fill("Ltd "),
		"han":           fill("漢字"),
		"house numbers": fill("1 A B C D "),
		"words before":  fill("number is 12 is "),
	}
}

func TestEveryTextTakesLinearTime(t *testing.T) {
	const size = 1 << 18
	for name, text := range hostile(size) {
		took := testkit.CPUTime(t, func() {
			Patterns(text, nil)
			nominated(text, nil)
		})
		// It takes milliseconds. A scan that looks back over all the text takes many minutes.
		if took > 20*time.Second {
			t.Errorf("%s: %d bytes took %s", name, len(text), took)
		}
	}
}

// check fails when spans are not what every caller relies on.
func check(tb testing.TB, text string, spans []Span) {
	tb.Helper()
	types := Types()
	end := 0
	for _, s := range spans {
		switch {
		case s.Start < end || s.End <= s.Start || s.End > len(text):
			tb.Fatalf("%q: spans %+v are out of order or empty", text, spans)
		case s.Start < len(text) && !utf8.RuneStart(text[s.Start]) || s.End < len(text) && !utf8.RuneStart(text[s.End]):
			tb.Fatalf("%q: %+v cuts a code point", text, s)
		case !(s.Score > 0 && s.Score <= 1) || !slices.Contains(types, s.Type):
			tb.Fatalf("%q: %+v", text, s)
		}
		end = s.End
	}
}

func FuzzPatterns(f *testing.F) {
	for _, s := range []string{
		prose, "a@b.co", "ü@ü.de", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "2001:db8::1", "http://a@b.de:80/x)", "+1 (555) 123-4567 ext. 9",
		"zip 12345-6789", "(1)(2)(3)", "Dr. X Ltd. of New York", "12 A Street Apt. #", "2024年3月5日12", "мне 25 лет", "\xff@\xfe.com", "1\xa02\xe5", "J'ai 7 ans", "::", "1.2.3.4.5", "x@[",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		valid := strings.ToValidUTF8(text, "\uFFFD")
		check(t, valid, Patterns(valid, nil))
		Patterns(text, nil) // bytes that are no text must not hurt
		checkRanges(t, valid, nominated(valid, nil))
		nominated(text, nil)
	})
}
