package pii

import (
	"strings"
	"testing"
)

func TestNamesInTheFormsOfLetters(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"Danke.\n\nMit freundlichen Grüßen\nThomas Kessler\n", "PERSON:Thomas Kessler"},
		{"Merci.\nCordialement,\nJulien Moreau\ngérant", "PERSON:Julien Moreau"},
		{"bis dann\nLG\nJonas", "PERSON:Jonas"},
		{"bis dann\nLG\nJonas\nTel. folgt", "PERSON:Jonas"},
		{"Sony\nLG\nSamsung\nBosch", ""},
		{"Which is best:\n\nLG\nSamsung", ""},
		{"> Saygılarımla,\n> Elif Demir", "PERSON:Elif Demir"},
		{"Z poważaniem\n\nAnna Nowak-Zielińska", "PERSON:Anna Nowak-Zielińska"},
		{"Atenciosamente,\nAna da Silva", "PERSON:Ana da Silva"},
		{"Best regards,\nBridget O'Neil", "PERSON:Bridget O'Neil"},
		{"Mit freundlichen Grüßen\nIhr Kundenservice", ""},
		{"Best regards,\nThe Support Team", ""},
		{"Best regards,\nsent from my phone", ""},
		{"Cordiali saluti", ""},
		{"Sincerely\nCheers", ""},
		{"Grüezi Herr Zürcher\nBesten Dank", "TITLE:Herr,PERSON:Zürcher"},
		{"Sayın Ahmet Yılmaz,", "TITLE:Sayın,PERSON:Ahmet Yılmaz"},
		{"Frau Müller Bescheid geben", "TITLE:Frau,PERSON:Müller"},
		{"Herr Direktor kommt", "TITLE:Herr"},
		{"생년월일은 1992년 3월 7일이고", "DATE_TIME:1992년 3월 7일"},
		{"우편번호 06236", "ZIP_CODE:06236"},
		{"홍길동 선생님께", "PERSON:홍길동"},
		{"한국어 선생님께", ""},
	} {
		if got := strings.Join(found(tt.text, Patterns(tt.text, nil)), ","); got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestWordsOfGreetingAreNoNames(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess string }{
		{"A presto.\nCordiali saluti\n", "Cordiali saluti"},
		{"Grüezi miteinander", "Grüezi"},
		{"votre dossier est complet. Veuillez nous rappeler", "nous rappeler"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-PERSON", 0.9}})
		if got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil); len(got) > 0 {
			t.Errorf("%q gave %q", tt.text, scored(tt.text, got))
		}
	}
}
