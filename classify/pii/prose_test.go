package pii

import (
	"slices"
	"testing"
)

// sentences are prose with a value that is someone's, and the value with its type.
var sentences = []struct{ text, want string }{
	// Telephone numbers of many countries.
	{"Call me at (415) 555-0132 after six.", "PHONE_NUMBER:(415) 555-0132"},
	{"My number is 415-555-0132, thanks.", "PHONE_NUMBER:415-555-0132"},
	{"You can text 1-800-555-0199 any time.", "PHONE_NUMBER:1-800-555-0199"},
	{
		"Her office is at +1 212 555 0187 ext. 12 on weekdays.",
		"PHONE_NUMBER:+1 212 555 0187 ext. 12",
	},
	{"Ring us on 020 7946 0958 before noon.", "PHONE_NUMBER:020 7946 0958"},
	{"His mobile is 07700 900123 I think.", "PHONE_NUMBER:07700 900123"},
	{"The flat in London has +44 20 7946 0958 as its line.", "PHONE_NUMBER:+44 20 7946 0958"},
	{"Sie erreichen mich unter 030 901820 im Büro.", "PHONE_NUMBER:030 901820"},
	{"Meine Handynummer: 0171 2345678, bitte abends.", "PHONE_NUMBER:0171 2345678"},
	{"Schreib mir auf WhatsApp unter 017612345678 zurück.", "PHONE_NUMBER:017612345678"},
	{"Mon portable est le 06 12 34 56 78 depuis hier.", "PHONE_NUMBER:06 12 34 56 78"},
	{"Appelez le +33 1 42 68 53 00 demain.", "PHONE_NUMBER:+33 1 42 68 53 00"},
	{"Mi teléfono es 612 34 56 78 y vivo cerca.", "PHONE_NUMBER:612 34 56 78"},
	{"Llámame al +34 912 345 678 por la tarde.", "PHONE_NUMBER:+34 912 345 678"},
	{"Il mio cellulare è 347 123 4567 da ieri.", "PHONE_NUMBER:347 123 4567"},
	{"Chiamami allo 06 6982 1234 stasera.", "PHONE_NUMBER:06 6982 1234"},
	{"Meu celular é (11) 91234-5678 agora.", "PHONE_NUMBER:(11) 91234-5678"},
	{"Ligue para +55 21 98765-4321 hoje.", "PHONE_NUMBER:+55 21 98765-4321"},
	{"Mijn telefoonnummer is 06-12345678 sinds gisteren.", "PHONE_NUMBER:06-12345678"},
	{"Mitt telefonnummer är 070-123 45 67 numera.", "PHONE_NUMBER:070-123 45 67"},
	{"Mój telefon to 795 828 595 od dziś.", "PHONE_NUMBER:795 828 595"},
	{"Telefonum 0532 123 45 67, akşam arayın.", "PHONE_NUMBER:0532 123 45 67"},
	{"Мой телефон +7 912 345-67-89, звоните.", "PHONE_NUMBER:+7 912 345-67-89"},
	{"我的电话是13801796053。", "PHONE_NUMBER:13801796053"},
	{"電話番号は03-1234-5678です。", "PHONE_NUMBER:03-1234-5678"},
	{"제 전화는 +82 10-1234-5678 입니다.", "PHONE_NUMBER:+82 10-1234-5678"},
	{"Reach Asha on +91 98765 43210 tomorrow.", "PHONE_NUMBER:+91 98765 43210"},
	{"Our plumber's number is 0409 900 737 as of May.", "PHONE_NUMBER:0409 900 737"},
	{"Fax the form to 503.555.0143 please.", "PHONE_NUMBER:503.555.0143"},
	{"Contact him under +41 44 668 18 00 in Zurich.", "PHONE_NUMBER:+41 44 668 18 00"},
	{"Meld dich bei +43 1 234567 oder per Post.", "PHONE_NUMBER:+43 1 234567"},
	{"The night desk answers +27 21 555 0123 only.", "PHONE_NUMBER:+27 21 555 0123"},
	// Cards, right and mistyped.
	{"Please charge 4111 1111 1111 1111 for the room.", "CREDIT_CARD:4111 1111 1111 1111"},
	{"I paid with 5555-5555-5555-4444 last week.", "CREDIT_CARD:5555-5555-5555-4444"},
	{"My Amex is 3782 822463 10005 and it expires soon.", "CREDIT_CARD:3782 822463 10005"},
	{"The number 6011111111111117 was declined.", "CREDIT_CARD:6011111111111117"},
	{"Use 4111 1111 1111 1112 if the other one fails.", "CREDIT_CARD:4111 1111 1111 1112"},
	{"My visa is 4111111111111113, I believe.", "CREDIT_CARD:4111111111111113"},
	{"Meine Kreditkarte 5500 0000 0000 0005 ist gesperrt.", "CREDIT_CARD:5500 0000 0000 0005"},
	{"Ma carte 4970 1012 3456 7890 ne marche plus.", "CREDIT_CARD:4970 1012 3456 7890"},
	{"Mi tarjeta es 4242424242424242 y no pasa.", "CREDIT_CARD:4242424242424242"},
	{"He read out 2223 0031 2200 3222 on the phone.", "CREDIT_CARD:2223 0031 2200 3222"},
	{"I lost card 3530111333300000 at the station.", "CREDIT_CARD:3530111333300000"},
	{"Diners 30569309025904 is what I use abroad.", "CREDIT_CARD:30569309025904"},
	// Accounts.
	{"Send the rent to DE89370400440532013000 by Friday.", "IBAN_CODE:DE89370400440532013000"},
	{
		"My account is GB82 WEST 1234 5698 7654 32 at the bank.",
		"IBAN_CODE:GB82 WEST 1234 5698 7654 32",
	},
	{
		"Virement vers FR14 2004 1010 0505 0001 3M02 606 merci.",
		"IBAN_CODE:FR14 2004 1010 0505 0001 3M02 606",
	},
	{"Transfiere a ES91 2100 0418 4502 0005 1332 hoy.", "IBAN_CODE:ES91 2100 0418 4502 0005 1332"},
	{"Il conto è IT60X0542811101000000123456 da anni.", "IBAN_CODE:IT60X0542811101000000123456"},
	{"Maak het over naar NL91ABNA0417164300 vandaag.", "IBAN_CODE:NL91ABNA0417164300"},
	{"Mitt konto är SE45 5000 0000 0583 9825 7466 nu.", "IBAN_CODE:SE45 5000 0000 0583 9825 7466"},
	{"Przelew na PL61109010140000071219812874 dotarł.", "IBAN_CODE:PL61109010140000071219812874"},
	{
		"She moved her savings to CH9300762011623852957 in spring.",
		"IBAN_CODE:CH9300762011623852957",
	},
	// Social security and licences.
	{"My social security number is 123-45-6789, keep it safe.", "US_SSN:123-45-6789"},
	{"SSN 078 05 1120 was on the form.", "US_SSN:078 05 1120"},
	{"His ssn: 219099999 is wrong in the file.", "US_SSN:219099999"},
	{"The clerk wrote 536-22-8726 on the back.", "US_SSN:536-22-8726"},
	{"My driver's license is D1234567 from Ohio.", "US_DRIVER_LICENSE:D1234567"},
	{"driver license F255-921-50-094", "US_DRIVER_LICENSE:F255-921-50-094"},
	{"His driving licence number is 12345678 as printed.", "US_DRIVER_LICENSE:12345678"},
	// Mail.
	{"Write to jo.doe@brightfield.com about it.", "EMAIL_ADDRESS:jo.doe@brightfield.com"},
	{"Meine Adresse ist müller@bücher.de seit gestern.", "EMAIL_ADDRESS:müller@bücher.de"},
	{
		"Mail me (anna+news@mail.brightfield.co.uk) the file.",
		"EMAIL_ADDRESS:anna+news@mail.brightfield.co.uk",
	},
	{"我的邮箱是wang@brightfield.cn。", "EMAIL_ADDRESS:wang@brightfield.cn"},
	{"Is o'neil_7@brightfield.org still yours?", "EMAIL_ADDRESS:o'neil_7@brightfield.org"},
	{"Cc admin@localhost.test for the demo.", "EMAIL_ADDRESS:admin@localhost.test"},
	// Dates.
	{"I was born on 12/31/1984 in a small town.", "DATE_TIME:12/31/1984"},
	{"She joined the choir on 3 May 2011 with her aunt.", "DATE_TIME:3 May 2011"},
	{"My birthday is July 4, 1990 and I want cake.", "DATE_TIME:July 4, 1990"},
	{"The appointment is on 2024-03-05 at the clinic.", "DATE_TIME:2024-03-05"},
	{"Ich bin am 5. März 1978 geboren worden.", "DATE_TIME:5. März 1978"},
	{"Sie kam am 24.12.1999 zur Welt.", "DATE_TIME:24.12.1999"},
	{"Nací el 3 de mayo de 1985 en la costa.", "DATE_TIME:3 de mayo de 1985"},
	{"Il est né le 14 juillet 1972 près d'ici.", "DATE_TIME:14 juillet 1972"},
	{"È nata il 2 giugno 1946 a casa.", "DATE_TIME:2 giugno 1946"},
	{"Nasceu em 7 de setembro de 1999 no interior.", "DATE_TIME:7 de setembro de 1999"},
	{"Hon är född 17 maj 1994 i norr.", "DATE_TIME:17 maj 1994"},
	{"Urodziłem się 3 stycznia 1970 roku.", "DATE_TIME:3 stycznia 1970"},
	{"Я родился 12 апреля 1961 года в селе.", "DATE_TIME:12 апреля 1961 года"},
	{"我出生于1990年5月1日。", "DATE_TIME:1990年5月1日"},
	{"We met on Saturday, 24 August 2019 by the lake.", "DATE_TIME:Saturday, 24 August 2019"},
	{"He was admitted on March 3rd, 2020 with a fever.", "DATE_TIME:March 3rd, 2020"},
	{"Her dob is 05/09/95 according to the card.", "DATE_TIME:05/09/95"},
	// Ages.
	{"My son is 7 years old and likes trains.", "AGE:7"},
	{"A 43-year-old man asked for help.", "AGE:43"},
	{"The patient, aged 61, sleeps badly.", "AGE:61"},
	{"Ich bin 62 Jahre alt und fahre Rad.", "AGE:62"},
	{"J'ai 78 ans et je chante encore.", "AGE:78"},
	{"Tengo 34 años y dos gatos.", "AGE:34"},
	{"Tenho 25 anos e moro sozinho.", "AGE:25"},
	{"Ho 19 anni e studio musica.", "AGE:19"},
	{"Mam 41 lat i psa.", "AGE:41"},
	{"Мне 25 лет, я врач.", "AGE:25"},
	{"我今年30岁了。", "AGE:30"},
	// Addresses of machines and sites.
	{"My home connection shows 92.127.194.23 as its address.", "IP_ADDRESS:92.127.194.23"},
	{"Someone from 185.142.197.13 keeps writing to me.", "IP_ADDRESS:185.142.197.13"},
	{
		"The router reports 2292:3e84:980f:14af:78b2:3bab:d3b5:218b today.",
		"IP_ADDRESS:2292:3e84:980f:14af:78b2:3bab:d3b5:218b",
	},
	{"I blog at www.marten-lindqvist.se about birds.", "DOMAIN_NAME:www.marten-lindqvist.se"},
	{
		"My shop is https://lindqvist-cheese.com/ and it is new.",
		"DOMAIN_NAME:https://lindqvist-cheese.com/",
	},
	{"See the photos on fernandez-flores.net tonight.", "DOMAIN_NAME:fernandez-flores.net"},
	// Postal codes and streets.
	{"My zip code is 90210 if that helps.", "ZIP_CODE:90210"},
	{"The postcode is SW1A 1AA on the letter.", "ZIP_CODE:SW1A 1AA"},
	{"Unsere PLZ ist 10115 seit dem Umzug.", "ZIP_CODE:10115"},
	{"Mon code postal est 75011 à Paris.", "ZIP_CODE:75011"},
	{"She lives in Portland, OR 97201 with two dogs.", "ZIP_CODE:97201"},
	{"Ship it to 221 Baker Street by Monday.", "STREET_ADDRESS:221 Baker Street"},
	{
		"I moved to 12 Elm Tree Rd. Apt. 5, Salem, OR 97301 last year.",
		"STREET_ADDRESS:12 Elm Tree Rd. Apt. 5, Salem, OR 97301",
	},
	{"He parks at 1600 Pennsylvania Avenue most days.", "STREET_ADDRESS:1600 Pennsylvania Avenue"},
	// Titles, names, groups, homes, companies.
	{"Please ask Dr. Watson about the dose.", "TITLE:Dr."},
	{"I spoke to Mrs. Lindgren at the desk.", "TITLE:Mrs."},
	{"Frau Weiß hat gestern angerufen.", "TITLE:Frau"},
	{"Hello, my name is Ann-Marie O'Neil and I need help.", "PERSON:Ann-Marie O'Neil"},
	{"Ich heiße Jonas Keller und suche eine Wohnung.", "PERSON:Jonas Keller"},
	{"Me llamo Inés y vivo aquí.", "PERSON:Inés"},
	{"I was born in Kenya and grew up by the sea.", "GPE:Kenya"},
	{"We live in New York City these days.", "GPE:New York City"},
	{"As a Hindu citizen I have a question.", "NRP:Hindu"},
	{"She left Miller and Sons Ltd for good.", "ORGANIZATION:Miller and Sons Ltd"},
	{"He sued Nord-Stahl GmbH over the wages.", "ORGANIZATION:Nord-Stahl GmbH"},
	{"I work for Lindenport and hate the commute.", "ORGANIZATION:Lindenport"},
	{"She works at Brightfield Dairy since spring.", "ORGANIZATION:Brightfield Dairy"},
}

func TestPersonalDataInProseIsFound(t *testing.T) {
	const least = 120
	if len(sentences) < least {
		t.Fatalf("%d sentences, want %d", len(sentences), least)
	}
	for _, tt := range sentences {
		if got := found(tt.text, Patterns(tt.text, nil)); !slices.Contains(got, tt.want) {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}
