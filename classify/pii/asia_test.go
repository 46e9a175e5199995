package pii

import (
	"slices"
	"strings"
	"testing"
)

func TestMailsOfJapaneseChineseAndKorean(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // between commas
	}{
		// Accounts, which no check digit proves.
		{"振込先は青空銀行です。口座番号は2345678、名義は後日お知らせします。", "IBAN_CODE:2345678"},
		{"普通預金 2345678", "IBAN_CODE:2345678"},
		{"银行账号：6217 0012 3456 7890 123", "CREDIT_CARD:6217 0012 3456 7890 123"},
		{"系统将于账户20240101版本上线", ""},
		{"账户20249901", "IBAN_CODE:20249901"},
		{"账户：20240101", "IBAN_CODE:20240101"},
		{"账号是1234567890", "IBAN_CODE:1234567890"},
		{"联系工商银行 13812345678", ""}, // a telephone, which is left to the model
		{"계좌번호는 110-234-567891이고 곧 입금됩니다", "IBAN_CODE:110-234-567891"},
		{"하나은행 1002-345-678902", "IBAN_CODE:1002-345-678902"},
		{"My bank account number is 12345678.", "IBAN_CODE:12345678"},
		{"Kontonummer: 1234567", "IBAN_CODE:1234567"},
		{"The account 12345678 was closed.", ""},
		{"当行の口座番号は7桁です", ""},
		// Cards with the hyphens and spaces of Japanese.
		{"カード番号は4242ー4242ー4242ー4242です", "CREDIT_CARD:4242ー4242ー4242ー4242"},
		{"カード番号は4242−4242−4242−4242です", "CREDIT_CARD:4242−4242−4242−4242"},
		{"カード番号：４２４２　４２４２　４２４２　４２４２", "CREDIT_CARD:４２４２　４２４２　４２４２　４２４２"},
		{"電話は03‐5678‐1234です", "PHONE_NUMBER:03‐5678‐1234"},
		{"バージョンー2ー3", ""},
		// Addresses.
		{"荷物は東京都渋谷区道玄坂1-2-3にお送りください", "STREET_ADDRESS:東京都渋谷区道玄坂1-2-3"},
		{"大阪府大阪市北区梅田３丁目２番５号", "STREET_ADDRESS:大阪府大阪市北区梅田３丁目２番５号"},
		{"東京都には3つの空港がある", ""},
		{"请寄到苏州市工业园区星湖街328号3栋502室", "STREET_ADDRESS:苏州市工业园区星湖街328号3栋502室"},
		{"请看第12号文件", ""},
		{"서울시 강남구 역삼동 737번지로 보내 주세요", "STREET_ADDRESS:서울시 강남구 역삼동 737번지"},
		{"경로 3 을 보세요", ""},
		// Who writes, and to whom.
		{"営業部の小林です。", "PERSON:小林"},
		{"以前お会いした松本健一です。", "PERSON:松本健一"},
		{"人事部の岡田よりご案内します", "PERSON:岡田"},
		{"集合場所は上野です。", ""},
		{"次は福島県です。", ""},
		{"来週の金曜です。", ""},
		{"故障の原因です。", ""},
		{"中村部長\nお疲れ様です", "PERSON:中村"},
		{"人事部長に聞く", ""},
		{"刘总，您好！", "PERSON:刘"},
		{"他总是迟到，任总共三次", ""},
		{"请孙老师看一下", "PERSON:孙"},
		{"高中老师很忙", ""},
		{"她叫何秀英，今年六十八岁", "PERSON:何秀英"},
		{"영업팀 박지영입니다.", "PERSON:박지영"},
		{"총무팀 주소록입니다.", ""},
		{"이것은 문제점입니다.", ""},
		{"이름은 강동원입니다.", "PERSON:강동원"},
		{"이름은 한글로 입력하세요.", ""},
		{"검토 부탁드립니다.\n박지영 드림", "PERSON:박지영"},
		{"한국인 드림 콘서트", ""},
		{"ご確認ください。\n\n佐藤健一\n電話 03-5678-1234", "PERSON:佐藤健一,PHONE_NUMBER:03-5678-1234"},
		{"附件是报表，请您过目。\n赵敏\n", "PERSON:赵敏"},
		{"费用约两万元。\n此致\n敬礼\n胡建国", "PERSON:胡建国"},
		{"请看下面的表。\n金融部", ""},
		{"请看下面的表。\n高级会员数", ""},
		{"佐藤様、お世話になっております。ABC Corp. の件です。", "PERSON:佐藤,ORGANIZATION:ABC Corp."},
	} {
		got := strings.Join(found(tt.text, Patterns(tt.text, nil)), ",")
		if got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestAKeyMakesNoNameOfThePartOfASentence(t *testing.T) {
	d := decoder(t)
	d.LatinAlone()
	for _, tt := range []struct{ text, guess, want string }{
		{"Customer: お世話になっております。", "お世話", ""},
		{"Sender: 世話になる", "世話", ""},
		{"Customer: 山田様", "山田", "PERSON:山田"},
		{"Customer: 田中です", "田中", "PERSON:田中"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-PERSON", 0.9}})
		got := strings.Join(found(tt.text, d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil)), ",")
		if got != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNumbersWithWideJointsAreFoundInTheirPlace(t *testing.T) {
	const text = "電話は03‐5678‐1234、控えは06−6345−7890です"
	got := found(text, Patterns(text, nil))
	if want := []string{"PHONE_NUMBER:03‐5678‐1234", "PHONE_NUMBER:06−6345−7890"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
