package pii

import "testing"

func TestEverydayWordsOfOtherLanguagesAreNoNames(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct {
		text, guess, kind string
		prob              float32
		want              bool
	}{
		{"Dieser Befehl ist eine Abkürzung von mir.", "Befehl", "PERSON", 0.95, false},
		{"Wir freuen uns dazu, alle zu sehen, die das wollen.", "dazu", "PERSON", 0.7, false},
		{"Knacke Schlüssel von abgefangenen Daten mit einer Liste:", "abgefangenen", "ORGANIZATION", 0.75, false},
		{"Bu komut çok eski bir takma addır.", "komut", "PERSON", 0.7, false},
		{"Eğer bu liste yeniden oluşturulmazsa, her şey aynı kalır.", "Eğer", "PERSON", 0.74, false},
		{"Şu anda bu liste bir oyun için kullanılmıyor.", "Şu anda", "PERSON", 0.65, false},
		{"Zawijaj linie tak, aby nie były dłuższe niż ekran.", "linie", "PERSON", 0.7, false},
		{"Usa una porta che non è ancora aperta.", "Usa", "GPE", 0.99, false},
		{"Toon de status van de taken in het huidige venster.", "huidige", "GPE", 0.85, false},
		{"Abre com uma janela para cada aba que está aberta:", "janela", "PERSON", 0.94, false},
		{"Sabit sermaye harcamasını aşağıdakilerden hangisi etkiler?", "sermaye", "PERSON", 0.975, false},
		{"Buna göre, aşağıdakilerden hangisi doğrudur?", "Buna göre", "PERSON", 0.95, false},
		{"Burada iş planının amacı için hangisi söylenir?", "Burada", "PERSON", 0.95, false},
		{"Kimyasal tepkimedeki madde için hangisi söylenir ve neden?", "Kimyasal", "PERSON", 0.9, false},
		{"Bu değer dört katıdır ve dir. Buna göre hangisi doğru?", "Buna", "PERSON", 0.9, false},
		{"Rossi non è più qui, perché ha detto che non vuole.", "Rossi", "PERSON", 0.9, true},
		{"quale ghiandola è esocrina?", "ghiandola", "PERSON", 0.95, false},
		{"si parla dell’azoto nel ciclo", "dell", "ORGANIZATION", 0.95, false},
		{"işletmelerin özellikleri nelerdir", "özellikleri", "PERSON", 0.9, false},
		{"o yapıların ürünlerinden biri", "ürünlerinden", "PERSON", 0.9, false},
		{"ieri giulia mi ha scritto", "giulia", "PERSON", 0.79, true},
		{"yarın bahadır gelecek", "bahadır", "PERSON", 0.79, true},
		{"Lebenslauf\nName: Vogelsang", "Lebenslauf", "PERSON", 0.95, false},
		{"ciao ragazzi, qualcuno ha la chiave?", "ciao ragazzi", "PERSON", 0.95, false},

		{"Hans hat das nicht für uns und dich.", "Hans", "PERSON", 0.99, true},
		{"Kim söyledi, bunun için çok geç ve ben değil.", "Kim", "PERSON", 0.95, true},
		{"Gestern kam der Brief von Befort, den ich nicht kenne.", "Befort", "PERSON", 0.95, true},
		{"Maria ist nicht da und kommt auch nicht mehr.", "Maria", "PERSON", 0.95, true},
		{"Gelen mektup çok eski ve Ayşe için.", "Ayşe", "PERSON", 0.95, true},
		{"kannst du maria sagen, dass ich nicht komme und das so ist", "maria", "PERSON", 0.95, true},
		{"Ich heiße maria und bin nicht von hier.", "maria", "PERSON", 0.95, true},
		{"Ik ben maria en dat is niet van mij.", "maria", "PERSON", 0.95, true},
		{"O doente foi visto por o dr. Steve e não por mim.", "Steve", "PERSON", 0.75, true},
		{"Tell him that maria is not here and will not come.", "maria", "PERSON", 0.95, true},
		{"Maria wrote to them.", "Maria", "PERSON", 0.6, true},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-" + tt.kind, tt.prob}})
		if got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil); (len(got) > 0) != tt.want {
			t.Errorf("%q, guess %q gave %q", tt.text, tt.guess, scored(tt.text, got))
		}
	}
}
