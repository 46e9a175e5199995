package check_test

import (
	"testing"

	"signalbox/stream/check"
)

// TestDaysOfTheWeekOfOtherLanguages checks that a wrong weekday is flagged in any language, unless
// it may follow from a range or from closing days.
func TestDaysOfTheWeekOfOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{"会议在星期三举行，由王芳主持。", "会议在星期四举行。", check.Unsupported},
		{"会议在星期三举行，由王芳主持。", "会议在周三举行。", check.Unchecked},
		{"会議は水曜日に開かれます。", "会議は木曜日です。", check.Unsupported},
		{"회의는 수요일에 열립니다.", "회의는 목요일입니다.", check.Unsupported},
		{"يُعقد الاجتماع يوم الأربعاء.", "الاجتماع يوم الخميس.", check.Unsupported},
		{"Das Treffen ist am Mittwoch.", "Das Treffen findet am Donnerstag statt.", check.Unsupported},
		{"Le marché a lieu le mardi et le vendredi.", "Le marché se tient le samedi.", check.Unsupported},
		{"Le marché a lieu le mardi et le vendredi.", "Le marché se tient le vendredi.", check.Unchecked},
		{"A feira acontece às quartas-feiras e sábados.", "A feira acontece na segunda-feira.", check.Unsupported},
		{"Приём ведётся по вторникам.", "Приём в пятницу.", check.Unsupported},
		{"The meeting is on Wednesday.", "La réunion est jeudi.", check.Unsupported},
		{"The meeting is on Wednesday.", "La réunion est mercredi.", check.Unchecked},
		{"Geöffnet ist von Montag bis Freitag.", "Am Mittwoch ist geöffnet.", check.Unchecked},
		{"Geöffnet ist von Montag bis Freitag.", "Am Sonntag ist nicht geöffnet.", check.Unchecked},
		{"Geöffnet ist von Montag bis Freitag.", "Geöffnet ist von Montag bis Mittwoch.", check.Unchecked},
		{"Geöffnet ist von Montag bis Freitag.", "Geöffnet ist von Dienstag bis Samstag.", check.Unsupported},
		{"ساعات العمل من الأحد إلى الخميس.", "ساعات العمل من السبت إلى الأربعاء.", check.Unsupported},
		{"Das Museum ist montags geschlossen.", "Das Museum ist dienstags für alle da.", check.Unchecked},
		{"Das Museum ist montags und am Wochenende da.", "Das Museum ist samstags da.", check.Unchecked},
		{"每周二下午开会。", "每周一次会议。", check.Unchecked},
		{
			"Der Termin ist am Montag, die Feier am 3. Dezember 2026.",
			"Die Feier ist am Donnerstag, dem 3. Dezember 2026.", check.Unchecked,
		},
	} {
		wantVerdict(t, isNeutral, c.fact, c.claim, c.want)
	}
}

// TestPersonsOfScriptsWithoutCapitals checks that names in scripts without capitals are found by
// titles and by what their bearers do.
func TestPersonsOfScriptsWithoutCapitals(t *testing.T) {
	t.Parallel()
	const japanese, korean = "司会は田中さんで、受付は佐藤様です。お客様は早めにお越しください。", "회의는 김민수 씨가 진행하고 문의는 박영희 팀장이 받습니다."
	const chinese, arabic = "会议由王芳老师主持，联系人：李建国。客户经理负责接待。", "يدير السيد أحمد علي الاجتماع."
	for _, c := range []struct {
		fact, claim string
		want        check.Verdict
	}{
		{japanese, "司会は鈴木さんです。", check.Unsupported},
		{japanese, "受付の佐藤さんにお声がけください。", check.Unchecked},
		{japanese, "お客様は集まってください。", check.Unchecked},
		{japanese, "皆さんは早めに集合します。", check.Unchecked},
		{korean, "진행은 박지훈 씨가 맡습니다.", check.Unsupported},
		{korean, "진행자는 김민수 님입니다.", check.Unchecked},
		{korean, "담당 팀장에게 문의하세요.", check.Unchecked},
		{chinese, "李明主持会议。", check.Unsupported},
		{chinese, "请联系陈伟。", check.Unsupported},
		{chinese, "会议由张敏老师主持。", check.Unsupported},
		{chinese, "请联系李建国。", check.Unchecked},
		{chinese, "王老师主持会议。", check.Unchecked},
		{chinese, "高级经理也可以参加。", check.Unchecked},
		{chinese, "请联系周边商家。", check.Unchecked},
		{"会议在星期三举行。", "李明主持会议。", check.Unchecked}, // it names nobody
		{arabic, "يدير السيد محمود حسن الاجتماع.", check.Unsupported},
		{arabic, "السيد أحمد يدير الاجتماع.", check.Unchecked},
	} {
		wantVerdict(t, isNeutral, c.fact, c.claim, c.want)
	}
}
