package check

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/stream/claims"
	"signalbox/stream/evidence"
	"signalbox/stream/numeric/quantity"
)

// weekdayLists are the names of the weekdays, from Monday on, in languages that separate words by
// spaces. weekdayRuns are names that may occur anywhere in a text.
//
//nolint:gochecknoglobals // constant tables
var (
	weekdayLists = [7]string{
		`monday mondays montag montags lundi lundis lunes lunedì segunda-feira segundas-feiras
			понедельник понедельника понедельникам`,
		`tuesday tuesdays dienstag dienstags mardi mardis martes martedì terça-feira terças-feiras
			вторник вторника вторникам`,
		`wednesday wednesdays mittwoch mittwochs mercredi mercredis miércoles mercoledì quarta-feira quartas-feiras
			среду средам`,
		`thursday thursdays donnerstag donnerstags jeudi jeudis jueves giovedì quinta-feira quintas-feiras
			четверг четверга четвергам`,
		`friday fridays freitag freitags vendredi vendredis viernes venerdì sexta-feira sextas-feiras
			пятница пятницу пятницы пятницам`,
		`saturday saturdays samstag samstags sonnabend sonnabends samedi samedis sábado sábados sabato
			суббота субботу субботы субботам`,
		`sunday sundays sonntag sonntags dimanche dimanches domingo domingos domenica
			воскресенье воскресенья воскресеньям`,
	}
	weekdayRuns = [7]string{
		"星期一 周一 週一 礼拜一 月曜 월요일 الاثنين الإثنين วันจันทร์", "星期二 周二 週二 礼拜二 火曜 화요일 الثلاثاء วันอังคาร",
		"星期三 周三 週三 礼拜三 水曜 수요일 الأربعاء الاربعاء วันพุธ", "星期四 周四 週四 礼拜四 木曜 목요일 الخميس วันพฤหัส",
		"星期五 周五 週五 礼拜五 金曜 금요일 الجمعة วันศุกร์", "星期六 周六 週六 礼拜六 土曜 토요일 السبت วันเสาร์",
		"星期日 星期天 周日 週日 周天 礼拜天 礼拜日 日曜 일요일 الأحد الاحد วันอาทิตย์",
	}
	weekdayWords, weekdayParts = func() (map[string]uint8, []dayRun) {
		words, runs := map[string]uint8{}, []dayRun{}
		for i := range weekdayLists {
			for w := range strings.FieldsSeq(weekdayLists[i]) {
				words[w] = uint8(i)
			}
			for w := range strings.FieldsSeq(weekdayRuns[i]) {
				runs = append(runs, dayRun{w, uint8(i)})
			}
		}
		return words, runs
	}()
	// dayGroups are expressions for several days or abbreviated ranges. A text with one of them is
	// not analysed further.
	dayGroups = strings.Split("wochenend|wochentags|werktags|täglich|jeden tag|week-end|weekend|weekday|daily|every day|"+
		"tous les jours|toute la semaine|en semaine|chaque jour|fin de semana|entre semana|todos los días|cada día|"+
		"a diario|fine settimana|tutti i giorni|ogni giorno|feriali|todos os dias|cada dia|diariamente|fim de semana|"+
		"ежедневно|будни|будням|выходн|каждый день|周末|週末|每天|每日|毎日|平日|土日|工作日|주말|매일|평일|يوميا|"+
		"نهاية الأسبوع|أيام الأسبوع|ทุกวัน|mo-|mo–|mo.-|lun-|lun–|пн-|пн–|seg-|seg–|mon-|mon–|月～|月〜|月~|月-|月・|月、|"+
		"월~|월-|월,|월·", "|")
	// dayShut are expressions for days on which something is closed; it may be open on the others.
	dayShut = strings.Fields(`geschlossen schließ ruhetag fermé ferme cerrad cierra descans chius chiud fechad fecha закрыт
		выходн 休 关门 閉 关闭 闭 휴무 휴관 쉽니다 쉬 닫 مغلق إجازة عطلة closed`)
	// dayUntil are words between the days of a range.
	dayUntil = strings.Fields("- – — ~ 〜 ～ bis au à al hasta até fino to through until по до 至 到 から 부터 إلى الى حتى ถึง")
)

type dayRun struct {
	name string
	day  uint8
}

// dayAt is a weekday in a text.
type dayAt struct {
	day        uint8
	start, end int
}

// daysIn returns the weekdays that a text names, in order.
func daysIn(text string) (list []dayAt) {
	lower := strings.ToLower(text)
	if len(lower) != len(text) {
		return nil // the offsets would differ
	}
	for at := 0; at < len(lower); {
		end := wordEnd(lower, at)
		if day, ok := weekdayWords[lower[at:end]]; ok {
			list = append(list, dayAt{day, at, end})
		}
		_, size := utf8.DecodeRuneInString(lower[end:])
		at = end + size
	}
	for _, run := range weekdayParts {
		for from := 0; ; {
			i := strings.Index(text[from:], run.name)
			if i < 0 {
				break
			}
			at := from + i
			from = at + len(run.name)
			if dayStands(run.name, text[from:]) {
				list = append(list, dayAt{run.day, at, from})
			}
		}
	}
	slices.SortFunc(list, func(a, b dayAt) int { return cmp.Compare(a.start, b.start) })
	return list
}

// wordEnd returns the end of the word that begins at an offset, or the offset itself if there is
// none.
func wordEnd(text string, at int) int {
	for at < len(text) {
		r, size := utf8.DecodeRuneInString(text[at:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && (r != '-' || !strings.HasPrefix(text[at:], "-feira")) {
			break
		}
		at += size
	}
	return at
}

// dayStands reports whether a run of characters really is a weekday, given the text after it. 每周一次
// means "once a week", and الأحداث "events".
func dayStands(name, behind string) bool {
	first, _ := utf8.DecodeRuneInString(name)
	next, _ := utf8.DecodeRuneInString(behind)
	if first == 'ا' {
		return !unicode.IsLetter(next)
	}
	return !strings.ContainsRune("次个個回趟节節年岁程期本常种種份", next)
}

// weekOf returns the days of a list, including those within ranges, and whether there is a range.
func weekOf(list []dayAt, text string) (days week, ranges bool) {
	for i, d := range list {
		days |= 1 << d.day
		if i == 0 || !joinsDays(text[list[i-1].end:d.start]) {
			continue
		}
		ranges = true
		for k := list[i-1].day; k != d.day; k = (k + 1) % 7 {
			days |= 1 << k
		}
	}
	return days, ranges
}

// joinsDays reports whether the text between two days makes them a range.
func joinsDays(between string) bool {
	const most = 24 // in bytes
	if len(between) > most {
		return false
	}
	between = strings.Trim(between, " 日.的から")
	return between == "" || slices.Contains(dayUntil, strings.TrimSpace(between)) ||
		slices.ContainsFunc(dayUntil, func(w string) bool {
			return strings.HasPrefix(between, w+" ") || strings.HasSuffix(between, " "+w)
		})
}

// dated reports whether a text contains a date with a day, from which the weekday follows.
func dated(text string) bool {
	return slices.ContainsFunc(quantity.Parse(nil, text), func(v quantity.Value) bool {
		return v.Kind == quantity.Date && v.Day != 0
	})
}

func containsAny(text string, list []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(list, func(w string) bool { return strings.Contains(text, w) })
}

// strangeDay returns the span of a weekday, or the first of a range, that a claim in another
// language than English names and the evidence does not, although it names others. If "daily" or
// closing days are involved, nothing is concluded.
func (m *matcher) strangeDay(text string, e *evidence.Evidence) (span claims.Span) {
	asked := daysIn(text)
	if len(asked) == 0 || dated(text) || negations(m.claim) > 0 ||
		containsAny(text, dayShut) || containsAny(text, dayGroups) {
		return span
	}
	claim, ranged := weekOf(asked, text)
	var told week
	ranges := false
	for _, t := range e.Texts() {
		if containsAny(t, dayGroups) || containsAny(t, dayShut) {
			return span
		}
		days, some := weekOf(daysIn(t), t)
		told, ranges = told|days, ranges || some
	}
	if told == 0 || claim&^told == 0 || ranges != ranged || !ranged && claim&told != 0 {
		return span
	}
	return spanOf(text, asked[0].start, asked[0].end)
}
