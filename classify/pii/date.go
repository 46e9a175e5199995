package pii

import (
	"strings"
	"unicode/utf8"
)

// date reads a date, optionally with a time, whose first digits are [i, first).
func (s *scanner) date(i, first int) int {
	if b := s.byteAt(i - 1); b == '.' || b == '-' || b == '/' || b == '$' || b == '#' {
		return 0
	}
	n := first - i
	if n > 4 {
		return 0
	}
	if end := s.numericDate(i, first); end > 0 {
		return end
	}
	if end := s.hanDate(i, first); end > 0 {
		return end
	}
	return s.namedDate(i, first)
}

// numericDate reads year-month-day (ISO 8601), or day and month in either order followed by a year,
// with the same separator throughout.
func (s *scanner) numericDate(i, first int) int {
	sep := s.byteAt(first)
	if sep != '-' && sep != '/' && sep != '.' || !isDigit(s.byteAt(first+1)) {
		return 0
	}
	second := s.digitsEnd(first + 1)
	if s.byteAt(second) != sep {
		return 0
	}
	end := s.digitsEnd(second + 1)
	a, b, c := s.text[i:first], s.text[first+1:second], s.text[second+1:end]
	var ok bool
	switch {
	case len(a) == 4:
		ok = len(b) <= 2 && len(c) <= 2 && validYear(a) && validDay(c, b)
	case len(c) == 4:
		ok = validYear(c) && (validDay(a, b) || validDay(b, a))
	case len(c) == 2 && len(a) <= 2:
		// 3.4.12 is a section.
		ok = (validDay(a, b) || validDay(b, a)) && (sep != '.' && len(b) == 2 || s.cued(i, cueWidth, dateCues))
	}
	if !ok {
		return 0
	}
	end = s.timeOfDay(end)
	if s.wordAfter(end) || s.byteAt(end) == sep && isDigit(s.byteAt(end+1)) {
		return 0
	}
	return s.add(DateTime, i, end, scoreCue)
}

// timeOfDay returns the end of the time after a date (ISO 8601, section 5.3, or a time after a
// space), or i.
func (s *scanner) timeOfDay(i int) int {
	at := i
	switch s.byteAt(i) {
	case 'T', 't', ' ':
		at++
	case ',':
		if s.byteAt(i+1) != ' ' {
			return i
		}
		at += 2
	default:
		return i
	}
	end := s.clock(at)
	if end == 0 {
		return i
	}
	switch s.byteAt(end) {
	case 'Z', 'z':
		return end + 1
	case '+', '-':
		if zone := s.clock(end + 1); zone > 0 {
			return zone
		}
	}
	return end
}

// clock returns the end of hh:mm, hh:mm:ss or hh:mm:ss.fff at i, or 0.
func (s *scanner) clock(i int) int {
	end := s.digitsEnd(i)
	if end-i < 1 || end-i > 2 || toInt(s.text[i:end]) > 24 || s.byteAt(end) != ':' {
		return 0
	}
	for range 2 {
		if s.byteAt(end) != ':' {
			break
		}
		next := s.digitsEnd(end + 1)
		if next-end != 3 || toInt(s.text[end+1:next]) > 60 {
			return 0
		}
		end = next
	}
	if s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		end = s.digitsEnd(end + 1)
	}
	return end
}

// hanDate reads 2024年3月5日, 2024년 3월 5일 and parts of them with at least a month and a day.
func (s *scanner) hanDate(i, first int) int {
	units := [...]string{"年", "月", "日"}
	switch s.byteAt(first) {
	case 0xE5, 0xE6: // the first bytes of 年, 月 and 日
	case 0xEB, 0xEC: // and of 년, 월 and 일
		units = [...]string{"년", "월", "일"}
	default:
		return 0
	}
	end, parts := first, 0
	u := 0
	for ; u < len(units); u++ {
		if !strings.HasPrefix(s.text[end:], units[u]) {
			if parts == 0 {
				continue
			}
			break
		}
		end += len(units[u])
		parts++
		from := end
		if s.byteAt(end) == ' ' && units[0] == "년" {
			from++
		}
		next := s.digitsEnd(from)
		if u == len(units)-1 || next == from || next-from > 2 {
			break
		}
		end = next
	}
	if parts < 2 || isDigit(s.byteAt(end-1)) || first-i > 4 {
		return 0
	}
	return s.add(DateTime, i, end, scoreCue)
}

// namedDate reads a date with the name of a month and the day [i, first): "24 Jul 1993", "5. März
// 2020", "3 de mayo de 2011", "September 15, 1999". A month with a year but without a day is left
// to the model unless a preceding word assigns the date to a person.
func (s *scanner) namedDate(i, first int) int {
	day := first-i <= 2 && validDay(s.text[i:first], "1")
	if day {
		if end := s.monthAfter(first); end > 0 {
			start, year := s.weekdayBefore(i), s.yearAfter(end)
			if year == end && start == i && !s.cued(i, cueWidth, dateCues) {
				return 0 // "7 out of 40", "3 maj"
			}
			return s.add(DateTime, start, s.timeOfDay(year), scoreCue)
		}
	}
	month := s.monthBefore(i)
	switch {
	case month < 0:
		return 0
	case day:
		return s.dayAfterMonth(month, first)
	case first-i == 4 && validYear(s.text[i:first]) && !s.wordAfter(first) && s.cued(month, cueWidth, dateCues):
		return s.add(DateTime, month, first, scoreCue)
	}
	return 0
}

// dayAfterMonth reads a date whose month begins at month and whose day ends at end.
func (s *scanner) dayAfterMonth(month, end int) int {
	for _, ordinal := range [...]string{"st", "nd", "rd", "th"} {
		if strings.HasPrefix(s.text[end:], ordinal) {
			end += len(ordinal)
			break
		}
	}
	if s.wordAfter(end) || s.byteAt(end) == '.' && isDigit(s.byteAt(end+1)) {
		return 0
	}
	year := s.yearAfter(end)
	if year == end && !s.cued(month, cueWidth, dateCues) {
		return 0 // "May 5 people come?"
	}
	return s.add(DateTime, s.weekdayBefore(month), s.timeOfDay(year), scoreCue)
}

// dateCues say that a date belongs to someone.
//
//nolint:gochecknoglobals // constant table
var dateCues = cues{
	"born", "dob", "date of birth", "birthday", "birthdate", "birth date", "admitted", "discharged", "appointment", "turns", "married", "hired", "deceased", "died on",
	"geboren", "geb", "geburtstag", "geburtsdatum", "née le", "né le", "naissance", "nací", "nacimiento", "nacida", "nacido", "nascido", "nascida", "nascimento",
	"nato il", "nata il", "nascita", "geboortedatum", "född", "födelsedag", "urodzony", "urodzona", "doğum", "родился", "родилась", "рождения", "出生", "生年月日", "生日",
}

// monthAfter returns the end of the name of a month after i, following an ordinal and a particle,
// or 0.
func (s *scanner) monthAfter(i int) int {
	switch s.byteAt(i) {
	case ' ', '-', '/', '.', 's', 'n', 'r', 't', 'e', 0xC2: // the last begins º and ª
	default:
		return 0
	}
	for _, ordinal := range [...]string{"st", "nd", "rd", "th", "er", ".", "º", "ª"} {
		if strings.HasPrefix(s.text[i:], ordinal) {
			i += len(ordinal)
			break
		}
	}
	if b := s.byteAt(i); b != ' ' && b != '-' && b != '/' {
		return 0
	}
	i++
	for _, particle := range [...]string{"de ", "of ", "di "} {
		if strings.HasPrefix(s.text[i:], particle) {
			i += len(particle)
			break
		}
	}
	end := s.wordEnd(i)
	if end-i < 3 || end-i > maxMonth || !isMonth(s.text[i:end]) {
		return 0
	}
	if s.byteAt(end) == '.' && end-i == 3 {
		end++
	}
	return end
}

// monthBefore returns the start of the name of a month directly before i, or -1.
func (s *scanner) monthBefore(i int) int {
	end := i
	if s.byteAt(end-1) == ' ' || s.byteAt(end-1) == '-' {
		end--
	}
	if end == i {
		return -1
	}
	if s.byteAt(end-1) == '.' || s.byteAt(end-1) == ',' {
		end--
	}
	start := s.wordStart(end)
	if end-start < 3 || end-start > maxMonth || !isMonth(s.text[start:end]) {
		return -1
	}
	return start
}

// yearAfter returns the end of a year after the day or month that ends at i, or i.
func (s *scanner) yearAfter(i int) int {
	at := i
	for _, join := range [...]string{", ", " de ", " del ", "-", "/", " "} {
		if strings.HasPrefix(s.text[at:], join) {
			at += len(join)
			break
		}
	}
	end := s.digitsEnd(at)
	if at == i || end-at != 4 || !validYear(s.text[at:end]) || s.wordAfter(end) {
		return i
	}
	for _, suffix := range [...]string{" г.", " года", " r."} {
		if strings.HasPrefix(s.text[end:], suffix) {
			return end + len(suffix)
		}
	}
	return end
}

// weekdayBefore returns the start of the weekday before i, or i.
func (s *scanner) weekdayBefore(i int) int {
	end := i
	for end > 0 && (s.text[end-1] == ' ' || s.text[end-1] == ',') {
		end--
	}
	if start := s.wordStart(end); end < i && end-start >= 3 && end-start < 2*maxMonth {
		if _, ok := weekdays[fold(s.text[start:end])]; ok {
			return start
		}
	}
	return i
}

// maxMonth is the length of the longest name of a month, in bytes.
const maxMonth = len("października")

func isMonth(word string) bool {
	if b := word[0] | 0x20; word[0] < utf8.RuneSelf && strings.IndexByte("abcdefghijklmnopsutwyz", b) < 0 {
		return false
	}
	_, ok := months[fold(word)]
	return ok
}

// fold returns a word in lower case. It costs nothing for short ASCII words already in lower case.
func fold(word string) string { return strings.ToLower(word) }

func toInt(digits string) int {
	n := 0
	for i := range len(digits) {
		n = n*10 + int(digits[i]-'0')
	}
	return n
}

func validYear(s string) bool { n := toInt(s); return n >= 1900 && n < 2100 }

func validDay(day, month string) bool {
	d, m := toInt(day), toInt(month)
	return d >= 1 && d <= 31 && m >= 1 && m <= 12 && len(day) <= 2 && len(month) <= 2
}

// The names and usual short forms of months, in the case that dates take, and of weekdays, in the
// languages that the patterns are made for (Unicode CLDR 44, calendar names). Forms that are words
// of another kind before a number ("mar" aside, which is March in five of them) are left out.
//
//nolint:gochecknoglobals // constant tables
var (
	months = wordSet("january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec " +
		"januar februar märz mai juni juli oktober dezember jänner feber okt dez mär " +
		"janvier février mars avril juin juillet août septembre octobre novembre décembre janv févr avr juil déc " +
		"enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre ene abr ago dic " +
		"janeiro fevereiro março maio junho julho setembro outubro novembro dezembro fev mai set out dez " +
		"gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre gen mag giu lug ott " +
		"januari februari maart mei augustus mrt " +
		"augusti maj " +
		"stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia " +
		"ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık " +
		"января февраля марта апреля мая июня июля августа сентября октября ноября декабря янв фев апр авг сен окт ноя дек")
	weekdays = wordSet("monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun " +
		"montag dienstag mittwoch donnerstag freitag samstag sonntag lundi mardi mercredi jeudi vendredi samedi dimanche " +
		"lunes martes miércoles jueves viernes sábado domingo segunda terça quarta quinta sexta lunedì martedì mercoledì giovedì venerdì sabato domenica " +
		"maandag dinsdag woensdag donderdag vrijdag zaterdag zondag måndag tisdag onsdag torsdag fredag lördag söndag " +
		"poniedziałek wtorek środa czwartek piątek sobota niedziela pazartesi salı çarşamba perşembe cuma cumartesi pazar " +
		"понедельник вторник среда четверг пятница суббота воскресенье")
)

func wordSet(list string) map[string]struct{} {
	m := make(map[string]struct{})
	for w := range strings.FieldsSeq(list) {
		m[w] = struct{}{}
	}
	return m
}
