package pii

import (
	"slices"
	"testing"
)

// nationals are sentences with one number each, as people write them.
var nationals = []struct{ text, want string }{
	{"Meu CPF é 529.982.247-25, preciso de uma nota.", "529.982.247-25"},
	{`{"cpf":"52998224725","nome":"Paulo"}`, "52998224725"},
	{"Emita para o CNPJ 11.222.333/0001-81.", "11.222.333/0001-81"},
	{"O novo CNPJ é 12.ABC.345/01DE-35.", "12.ABC.345/01DE-35"},
	{"Mi CUIT es 20-05536168-2 en Argentina.", "20-05536168-2"},
	{"El RUT de mi madre es 12.345.678-5.", "12.345.678-5"},
	{"CURP: BOXW310820HNERXN09", "BOXW310820HNERXN09"},
	{"My social insurance number is 046 454 286.", "046 454 286"},
	{"Mi DNI es 12345678Z, ¿es válido?", "12345678Z"},
	{"mi dni es 12345678z", "12345678z"},
	{"NIE X1234567L", "X1234567L"},
	{"Scrivi a nome di RSSMRA85T10A562S, grazie.", "RSSMRA85T10A562S"},
	{"codice fiscale: rssmra85t10a562s", "rssmra85t10a562s"},
	{"Mon numéro de sécu : 2 55 08 14 168 025 38.", "2 55 08 14 168 025 38"},
	{"Le NIR du salarié est 255081416802538.", "255081416802538"},
	{"Meine Steuer-ID ist 86 095 742 719.", "86 095 742 719"},
	{"Sozialversicherungsnummer 15070649C103", "15070649C103"},
	{"AHV-Nummer: 756.9217.0769.85", "756.9217.0769.85"},
	{"pesel=44051401458", "44051401458"},
	{"Faktura na NIP 526-10-40-828? Nie, na NIP 526-104-08-28.", "526-104-08-28"},
	{"T.C. kimlik numaram 10000000146.", "10000000146"},
	{"Başvuran: 10000000146 T.C. vatandaşı", "10000000146"},
	{"Mijn BSN is 111222333.", "111222333"},
	{"Rijksregisternummer 85.07.30-033.28", "85.07.30-033.28"},
	{"My national insurance number is QQ 12 34 56 C.", "QQ 12 34 56 C"},
	{"Mitt personnummer är 811218-9876.", "811218-9876"},
	{"HETU on 131052-308T.", "131052-308T"},
	{"Мой ИНН 500100732259, проверьте.", "500100732259"},
	{"СНИЛС: 112-233-445 95", "112-233-445 95"},
	{"паспорт 45 07 123456 выдан в Москве", "45 07 123456"},
	{"我的身份证号是11010519491231002X，帮我看看。", "11010519491231002X"},
	{"身份证１１０１０５１９４９１２３１００２Ｘ。", "１１０１０５１９４９１２３１００２Ｘ"},
	{"주민등록번호는 710311-1895121입니다.", "710311-1895121"},
	{"외국인등록번호: 911022-8465075", "911022-8465075"},
	{"マイナンバーは1234 5678 9018です。", "1234 5678 9018"},
	{"मेरा आधार नंबर 2341 2341 2346 है।", "2341 2341 2346"},
	{"My PAN is ABCPE1234F.", "ABCPE1234F"},
	{"เลขประจำตัวประชาชน: 1-1017-00230-70-8", "1-1017-00230-70-8"},
	{"NRIC S1234567D", "S1234567D"},
	{"HKID A123456(3) was shown.", "A123456(3)"},
	{"رقم الهوية الإماراتية: 784-1984-1234567-4", "784-1984-1234567-4"},
	{"הת.ז שלי היא 123456782", "123456782"},
	{"My passport number is K1234567.", "K1234567"},
}

func TestNumbersOfCitizensAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range nationals {
		got := Patterns(test.text, nil)
		if !slices.ContainsFunc(got, func(s Span) bool {
			return s.Type == NationalID && test.text[s.Start:s.End] == test.want
		}) {
			t.Errorf("%s: %q not found: %v", test.text, test.want, got)
		}
	}
}

func TestOtherNumbersAreNobodysIdentity(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"O pedido 12345678901 já foi enviado?",
		"A versão 529.982.247 foi lançada ontem.",
		"La pieza es la 12345678A.", // A is the wrong letter
		"订单号 202403051234567890 什么时候发货？",
		"주문번호 20240305-1234567 배송 언제 되나요?",
		"मेरा ऑर्डर नंबर 234123412346 है, कब आएगा?",
		"Numer paczki 44051401458 gdzie jest?",
		"Takip numarası 10000000146 nerede?",
		"1710121374123 DEBUG kafka.server offset=44051401458 lag=0",
		"sha 12345678Z0 size=86095742719",
		`"id": "12345678-1234-1234-1234-123456789018"`,
		"run 12345678-5 finished", "ISBN 978-3-16-148410-0", "part BC1234P",
		"x := [...]int{1234567890123, 9876543210987}",
	} {
		for _, s := range Patterns(text, nil) {
			if s.Type == NationalID {
				t.Errorf("%s: %q was taken for a number of a citizen", text, text[s.Start:s.End])
			}
		}
	}
}

// A number that is named and fails its check is mistyped or made up, and is suspected.
func TestNamedNumbersThatFailTheirCheckAreSuspected(t *testing.T) {
	t.Parallel()
	got := Patterns("Meu CPF é 123.456.789-00.", nil)
	if len(got) != 1 || got[0].Type != NationalID || got[0].Score != scoreSuspected {
		t.Errorf("found %v", got)
	}
	if got := Patterns("Meu CPF: veja o pedido 12345678900.", nil); len(got) != 0 {
		t.Errorf("found %v", got)
	}
}

// TestAGermanTaxNumberRepeatsOneDigit checks the rule about the first ten digits; all of these have
// the right check digit.
func TestAGermanTaxNumberRepeatsOneDigit(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]bool{"86095742719": true, "11223344553": false} {
		if !hybrid(number) {
			t.Errorf("%s: the check digit is wrong", number)
		}
		if got := german(number); got != want {
			t.Errorf("%s is a tax number: %v, want %v", number, got, want)
		}
	}
}
