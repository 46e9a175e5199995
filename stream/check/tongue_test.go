package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestAJudgeOfEnglishBesideOtherLanguages checks that the result of an English judge for another
// language never flags a claim, and never supports one in other words.
func TestAJudgeOfEnglishBesideOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, fact, claim string
		judge             check.Inference
		want              check.Verdict
	}{
		{"German beside German, doubted", "Der Akku reicht für zwölf Stunden.", "Der Akku hält 12 Stunden.", contradicts, check.Unchecked},
		{"German beside English, doubted", "Admission costs 14 euros.", "Der Eintritt kostet 14 Euro.", isNeutral, check.Unchecked},
		{"Chinese beside English, doubted", "Admission costs 14 euros.", "门票要14欧元。", isNeutral, check.Unchecked},
		{"English beside Spanish, doubted", "La entrada cuesta 14 euros por persona.", "Admission is 14 euros for each person.", isNeutral, check.Unchecked},
		{"a wrong number", "Admission costs 14 euros.", "Der Eintritt kostet 19 Euro.", entails, check.Unsupported},
		{"believed, in the same words", "Die Prüfung dauert 90 Minuten und ist mündlich.", "Die Prüfung dauert 90 Minuten.", entails, check.Supported},
		{"believed, in other words", "Le locataire paie la réparation du toit.", "Le propriétaire paie le toit en 2024.", entails, check.Unsupported},
		{"believed, another person", "Le locataire paie la réparation du toit.", "Le propriétaire ne paie pas la réparation.", entails, check.Unchecked},
		{"a negation more", "El tren a Jaca sale cada hora.", "El tren a Jaca no sale cada hora.", entails, check.Contradicted},
		{"a strange name", "La directrice du laboratoire est Camille Verdier.", "La directrice du laboratoire est Sophie Langlois.", entails, check.Unsupported},
		{"a noun is no name in German", "The head office of the company is in Lindau.", "Die Firma hat ihren Sitz in Lindau.", isNeutral, check.Unchecked},
		{"a place may be called otherwise", "The head office of the company is in Vienna.", "La société a son siège à Vienne.", isNeutral, check.Unchecked},
		{"a person is not", "The head of the laboratory is Marta Quiroga.", "El laboratorio lo dirige Elena Robledo.", isNeutral, check.Unsupported},
		{"a site", "No-hitter.", "“No-hitter.” Baseball-Reference.com.", entails, check.Supported},
		{"English with a foreign word", "The café in León opens at 8:30.", "The café in León opens at 9:30.", isNeutral, check.Contradicted},
		{"English with foreign names", "The coach of the team is José Muñoz.", "The coach of the team is Iñaki Peña.", isNeutral, check.Unsupported},
	} {
		got := checker(t, check.Options{Judge: always(c.judge), English: true}).Check(t.Context(), facts(t, c.fact), "", []check.Claim{{Text: c.claim}})[0]
		if got.Verdict != c.want {
			t.Errorf("%s: %q of %q: %s (%s), want %s", c.name, c.claim, c.fact, got.Verdict, got.Reason, c.want)
		}
	}
	got := checker(t, check.Options{Judge: always(isNeutral)}).Check(t.Context(), facts(t, "Admission costs 14 euros."), "", []check.Claim{{Text: "L'entrée pour Bob Kent coûte 14 euros."}})[0]
	if got.Verdict != check.Unsupported {
		t.Errorf("a judge of more languages is heard: %s (%s)", got.Verdict, got.Reason)
	}
}

// TestOnlyWhatIsRepeatedIsSupportedInOtherLanguages checks that a claim in an unknown language is
// supported only if it repeats a clause of the evidence, because a word of its own may mean the
// opposite.
func TestOnlyWhatIsRepeatedIsSupportedInOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"Die Firma kaufte 40 Lastwagen.", "Die Firma verkaufte 40 Lastwagen.", check.Contradicted},
		{"Le musée ouvre à 9 h.", "Le musée ferme à 9 h.", check.Contradicted},
		{"Le magasin est ouvert le dimanche.", "Le magasin n'est pas ouvert le dimanche.", check.Contradicted},
		{"Le magasin ouvre le dimanche.", "Le magasin n’ouvre pas le dimanche.", check.Contradicted},
		{"L'eau du lac est potable.", "L'eau du lac n'est pas potable.", check.Contradicted},
		{"L'acqua del lago è potabile.", "Dell'acqua del lago non è potabile.", check.Contradicted},
		{"La empresa compró 40 camiones.", "La empresa vendió 40 camiones.", check.Contradicted},
		{"Музей открывается в 9:00.", "Музей закрывается в 9:00.", check.Unchecked},
		{"美術館は9時に開館します。", "美術館は9時に閉館します。", check.Unchecked},
		{"회원은 500원 할인을 받을 수 있습니다.", "회원은 500원 할인을 받을 수 없습니다.", check.Unchecked},
		{
			"Das Abo verlängert sich automatisch um 12 Monate, sofern es nicht gekündigt wird.",
			"Das Abo verlängert sich nicht automatisch um 12 Monate.", check.Unchecked,
		},
		{
			"Das Abo verlängert sich automatisch um 12 Monate, sofern es nicht gekündigt wird.",
			"Das Abo verlängert sich automatisch um 12 Monate.", check.Unchecked,
		},
		{"如果不取消，订阅会自动续费12个月。", "订阅不会自动续费12个月。", check.Unchecked},
		{"如果不取消，订阅会自动续费12个月。", "订阅会自动续费12个月。", check.Unchecked},
		{"La garantie, sauf exceptions, ne couvre pas la batterie.", "La garantie couvre la batterie.", check.Contradicted},
		{"Les adultes paient 12 euros et les enfants 6 euros.", "Les enfants paient 12 euros.", check.Unchecked},
		{"Les adultes paient 12 euros et les enfants 6 euros.", "Les adultes paient 12 euros.", check.Supported},
		{
			"Der Eintritt ist für Kinder frei, Erwachsene zahlen 12 Euro.", "Der Eintritt ist für Erwachsene frei.",
			check.Unchecked,
		},
		{
			"가입 후 15일 동안 특허법을 체험할 수 있습니다. 상표법을 다룹니다.",
			"가입 후 15일 동안 상표법을 체험할 수 있습니다.", check.Unchecked,
		},
		{"Gli adulti pagano 12 euro e i bambini 6 euro.", "I bambini pagano 12 euro.", check.Unchecked},
		{"Os adultos pagam 12 euros e as crianças 6 euros.", "As crianças pagam 12 euros.", check.Unchecked},
		{"17 de enero: reunión de la Academia", "La reunión de la Academia es el 17 de enero.", check.Supported},
	} {
		wantVerdict(t, entails, c.fact, c.claim, c.want)
	}
}

// TestNounsOfGermanBesideData checks that a German noun is not a name, with English evidence and
// with data, which has no language.
func TestNounsOfGermanBesideData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{`{"items":3}`, "Ihre Bestellung umfasst 3 Artikel.", check.Unchecked},
		{`{"items":3}`, "Ihre Bestellung umfasst 4 Artikel.", check.Unsupported},
		{`{"eta":"2026-12-04"}`, "Die Bestellung kommt am 4. Dezember 2026 an.", check.Unchecked},
		{"The order arrives on 4 December 2026.", "Unsere Sendung kommt am 4. Dezember 2026 an.", check.Unchecked},
		{"Die Wohnung liegt in Kiel.", "Die Wohnung liegt in Hamburg.", check.Unsupported},
		{"Erstattungen erfolgen innerhalb von 5 Tagen.", "Danke für Ihre Nachricht.", check.Unchecked},
		{"Die Rückgabe ist innerhalb von 14 Tagen möglich.", "Sie können die Ware zwei Wochen lang zurückgeben.", check.Unchecked},
		{"Die Rückgabe ist innerhalb von 14 Tagen möglich.", "Die Rückgabe dauert 14 Tage, die Ware zahlt niemand.", check.Unchecked},
		{"Die Leiterin ist Anna Berg.", "Ihre Leiterin ist Maria Lang.", check.Unsupported},
		{"Sie können uns den Betrag auch überweisen.", "Zahlung per Überweisung möglich.", check.Unchecked},
		{"Sie können bei Herrn Berg bezahlen.", "Zahlung bei Maria Lang möglich.", check.Unsupported},
		// a record supports few additional words of the claim, and no name
		{`{"delivery_date":"2026-12-04"}`, "Your parcel will be delivered on 4 December 2026.", check.Unchecked},
		{`{"delivery_date":"2026-12-04"}`, "Your parcel will be delivered on 5 December 2026.", check.Unsupported},
		{`{"delivery_date":"2026-12-04"}`, "Bob Kent will be seen on 4 December 2026.", check.Unsupported},
		{`{"delivery_date":"2026-12-04"}`, "The museum in the old town opens on 4 December 2026.", check.Unsupported},
	} {
		wantVerdict(t, isNeutral, c.fact, c.claim, c.want)
	}
}
