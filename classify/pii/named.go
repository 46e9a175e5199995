package pii

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/script"
)

// herald is a word that announces a name in Cyrillic or in a script without capitals.
type herald struct {
	word string
	how  announces
}

// announces is the position of the name relative to the word, and the form that the name must have.
type announces uint8

const (
	isField      announces = iota // behind the word and a colon, with a family name where the script has them
	isName                        // behind the word and a colon
	follows                       // behind the word
	hints                         // behind the word, with a family name, or a first and a last one
	bare                          // as isField, where no colon stands
	endsIt                        // before the word, with a family name
	patronymic                    // the word itself ends one, behind a first name
	isAddress                     // an address, behind the word and a colon
	isPrefecture                  // the word begins an address
	titles                        // before the word, with a family name: see family
	tells                         // before the word, with which someone tells who it is: see family
)

// heralds are the words, by their first character.
//
//nolint:gochecknoglobals // constant table
var heralds = func() map[rune][]herald {
	m := map[rune][]herald{}
	for _, list := range [...]struct {
		how   announces
		words string // between commas
	}{
		{isName, "姓名,户名,签名,氏名,お名前,ご氏名,名前,이름,성명,성함,الاسم,الاسم الكامل,اسم العميل,اسم المريض,مقدم الطلب,नाम,ชื่อ," +
			"ชื่อ-นามสกุล,ชื่อผู้ป่วย,ชื่อลูกค้า,นามสกุล,שם,שם מלא,שם פרטי,שם משפחה,ФИО,Ф.И.О.,Имя,имя,Фамилия,фамилия," +
			"Отчество,отчество,ФИО заявителя,ФИО пациента,ФИО клиента,Имя клиента,ПІБ"},
		{isField, "名字,收件人,收货人,作者,员工,甲方,乙方,买方,卖方,寄件人,联系人,聯絡人,负责人,負責人,法定代表人,投保人,被保险人,申请人,申請人,应聘者,應聘者,客户,患者,乘客,持卡人," +
			"收款人,付款人," +
			"担当者,担当者名,患者名,契約者,申請者,宛先,代表者,受取人,差出人,著者,作成者,予約者,予約者名,名義人,담당자,작성자,계약자,수신인,발신인,피보험자,신청인,신청자,받는 사람,보내는 사람,예금주," +
			"수령인,고객명," +
			"환자명,대표자,대표이사,보호자,الموظف,الموظفة,المريض,المريضة,العميل,الطالب,रोगी,मरीज़,कर्मचारी," +
			"Сотрудник,Автор,Директор,Пациент,Пациентка,Получатель,Отправитель,Заявитель,Клиент,Контактное лицо,Подпись"},
		{follows, "我叫,本人叫,我姓名,爸爸叫,妈妈叫,父亲叫,母亲叫,儿子叫,女儿叫,朋友叫,同事叫,老公叫,老婆叫,我的名字叫,我的名字是,名字叫做,名叫,私の名前は,제 이름은,내 이름은,성함은,성함이,اسمي," +
			"اسمي الكامل,اسمه," +
			"اسمها,أدعى,اسم ابني,اسم ابنتي,اسم زوجي,اسم زوجتي,اسم أخي,اسم أختي,اسم صديقي,عزيزي,عزيزتي," +
			"שמי,קוראים לי," +
			"मेरा नाम,बेटे का नाम,बेटी का नाम,बहन का नाम,भाई का नाम,पिता का नाम,माता का नाम,पति का नाम,पत्नी का नाम," +
			"मरीज़ का नाम,ग्राहक का नाम,आवेदक का नाम,दोस्त का नाम,छात्र का नाम,रोगी का नाम,प्रिय,श्रीमती,सुश्री,श्री,डॉ.," +
			"ผมชื่อ,ฉันชื่อ,เขาชื่อ,เธอชื่อ,ลูกค้าชื่อ,ผู้ป่วยชื่อ,พนักงานชื่อ,ลูกชายชื่อ,ลูกชายผมชื่อ,ลูกสาวชื่อ," +
			"สามีชื่อ,ภรรยาชื่อ,ถึง คุณ,เรียนคุณ,เรียน คุณ,ติดต่อคุณ,ถึงคุณ,นางสาว," +
			"меня зовут,Меня зовут,его зовут,её зовут,жену зовут,мужа зовут,сына зовут,дочь зовут,моё имя,Моё имя," +
			"мое имя,Моя фамилия,моя фамилия,Мое имя,господин,господину,господина,господином,госпожа,госпоже,госпожу," +
			"госпожой,Уважаемый," +
			"Уважаемая,Дорогой,Дорогая,мене звати,Мене звати"},
		{hints, "我是,他叫,她叫,本人,名前は,氏名は,이름은,저는,나는,السيد,السيدة,الأستاذ,الأستاذة,الدكتور,الدكتورة,بالدكتور,الآنسة," +
			"المهندس,للسيد," +
			"للسيدة,للأستاذ,للأستاذة,للدكتور," +
			"นาย,นาง,пациент,Пациент,пациентка,Пациентка,заявитель,Заявитель"},
		{isAddress, "地址,住址,住所,ご住所,주소,العنوان,पता,ที่อยู่,Адрес,адрес"},
		{endsIt, "先生,女士,小姐,经理,教授,主任,医生,さん,様,さま,氏,殿,と申します,といいます,라고 합니다,씨,님,고객,과장,부장,차장,대리,팀장,교수,환자,회원"},
		{titles, "总,老师,律师,总监,师傅,同学,部长,局长,校长,院长,部長,課長,社長,係長,専務,常務,店長,선생님,사장님,실장님,상무님,전무님,이사님,드림,올림"},
		{tells, "です,でございます,よりご,よりお,までご連絡,입니다"},
		{isPrefecture, prefectures},
		{patronymic, "вич,вича,вичу,вичем,вна,вны,вне,вну,вной"},
	} {
		for word := range strings.SplitSeq(list.words, ",") {
			r, _ := utf8.DecodeRuneInString(word)
			m[r] = append(m[r], herald{word, list.how})
		}
	}
	return m
}()

// firstHerald is the least first byte of a herald.
const firstHerald = 0xD0

// announced adds the names that words of other scripts announce.
func (s *scanner) announced(ctx context.Context) error {
	for i, look := 0, 0; i < len(s.text); {
		if i >= look {
			if err := ctx.Err(); err != nil {
				return err
			}
			look = i + bytesPerLook
		}
		if s.text[i] < firstHerald {
			i++
			for i+8 <= len(s.text) && ascii8(s.text[i:i+8]) {
				i += 8
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(s.text[i:])
		longest := herald{}
		for _, h := range heralds[r] {
			if len(h.word) > len(longest.word) && strings.HasPrefix(s.text[i:], h.word) {
				longest = h
			}
		}
		if longest.word != "" {
			s.herald(i, longest)
		}
		i += size
	}
	s.signature()
	return nil
}

// ascii8 reports whether eight bytes are of ASCII.
func ascii8(b string) bool {
	return b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7] < utf8.RuneSelf
}

// herald looks for the name that the word at i announces.
func (s *scanner) herald(i int, h herald) {
	if s.behindName(i, h) {
		return
	}
	if s.letterBefore(i, h.how) {
		return
	}
	at := i + len(h.word)
	if next, _ := utf8.DecodeRuneInString(s.text[at:]); spaced(next) && !script.IsHangul(next) || unicode.IsMark(next) {
		return // the word goes on
	}
	if h.how == isAddress {
		s.addressBehind(at)
		return
	}
	if h.how == isField || h.how == isName {
		if colon := s.colonEnd(at); colon > 0 {
			at = colon
		} else {
			h.how = bare
		}
	}
	rest := strings.TrimLeft(s.text[at:min(len(s.text), at+maxFieldValue+cueWidth)], " :：—–-\"'“「『«　")
	at += strings.Index(s.text[at:], rest)
	name := nameIn(rest, h.how)
	if name == "" && h.word == "이름은" && s.opensSentence(i) { // its own, so that its last syllable says nothing
		if name = hangulName(rest, follows); name != "" && !hasPrefix(rest[len(name):], copulas...) {
			return
		}
	}
	s.addName(at, name)
}

func (s *scanner) addName(at int, name string) {
	if name != "" {
		s.out = append(s.out, Span{Type: Person, Start: at, End: at + len(name), Score: scoreCue, Pattern: true})
	}
}

// patronym adds a Russian name whose patronymic ends in [i, end), with up to two words before it.
func (s *scanner) patronym(i, end int) {
	from, words := end, 0
	for k := end; words < maxName; k = from - 1 {
		start := k
		for start > 0 {
			r, size := utf8.DecodeLastRuneInString(s.text[:start])
			if !unicode.Is(unicode.Cyrillic, r) {
				break
			}
			start -= size
		}
		if r, _ := utf8.DecodeRuneInString(s.text[start:]); start >= min(k, i) || !unicode.IsUpper(r) {
			break
		}
		words++
		if from, i = start, end; s.byteAt(start-1) != ' ' {
			break
		}
	}
	if words > 1 {
		s.addName(from, s.text[from:end])
	}
}

// addressBehind adds the address behind a key that ends at i: the field is of another script, has a
// number and no sign of an address of machines.
func (s *scanner) addressBehind(i int) {
	at := s.colonEnd(i)
	if at == 0 {
		return
	}
	rest := strings.TrimLeft(s.text[at:min(len(s.text), at+2*maxFieldValue)], " \"　")
	at += strings.Index(s.text[at:], rest)
	value := rest
	if k := strings.IndexAny(rest, "\n\t,，、。;；　\"<|"); k >= 0 {
		value = rest[:k]
	} else if len(rest) == 2*maxFieldValue {
		return
	}
	if value = strings.TrimRight(value, " "); firstLetter(value) > unicode.MaxLatin1 &&
		strings.ContainsAny(value, "0123456789") && !strings.ContainsAny(value, ":/@=_") {
		s.out = append(s.out, Span{
			Type: StreetAddress, Start: at, End: at + len(value), Score: scoreCue, Pattern: true,
		})
	}
}

// firstLetter returns the first letter of value, or 0.
func firstLetter(value string) rune {
	k := strings.IndexFunc(value, unicode.IsLetter)
	if k < 0 {
		return 0
	}
	r, _ := utf8.DecodeRuneInString(value[k:])
	return r
}

// letterBefore reports whether the word at i is only the rest of a longer one. Keys may have words
// before them in scripts that set no spaces, and in Korean; Arabic writes "and" and "with" before.
func (s *scanner) letterBefore(i int, how announces) bool {
	r, _ := utf8.DecodeLastRuneInString(s.text[:i])
	switch {
	case i == 0 || !unicode.IsLetter(r) && !unicode.IsMark(r):
		return false
	case unicode.Is(unicode.Thai, r), script.IsHangul(r):
		return how == hints
	case script.IsUnspaced(r):
		return false
	}
	return !strings.ContainsRune("وبל", r)
}

// colonEnd returns where the value of a key begins that ends at i, or 0 where no colon is.
func (s *scanner) colonEnd(i int) int {
	rest := strings.TrimLeft(s.text[i:min(len(s.text), i+8)], " \"'*　")
	for _, colon := range [...]string{":", "："} {
		if strings.HasPrefix(rest, colon) {
			return i + strings.Index(s.text[i:], colon) + len(colon)
		}
	}
	return 0
}

// nameIn returns the name that text begins with, or "".
func nameIn(text string, how announces) string {
	r, _ := utf8.DecodeRuneInString(text)
	switch {
	case unicode.Is(unicode.Han, r), unicode.Is(unicode.Hiragana, r), unicode.Is(unicode.Katakana, r):
		return hanName(text, how)
	case script.IsHangul(r):
		return hangulName(text, how)
	case unicode.Is(unicode.Thai, r) && how != bare:
		return thaiName(text, how)
	case unicode.Is(unicode.Cyrillic, r):
		return cyrillicName(text, how)
	case unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Devanagari):
		return spacedName(text, how)
	}
	return ""
}

// runOf returns the front of text that is of letters for which in holds.
func runOf(text string, in func(r rune) bool) string {
	if k := strings.IndexFunc(text, func(r rune) bool { return !in(r) }); k >= 0 {
		return text[:k]
	}
	return text
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) || r == '々' || r == '·' }

// notNames are values that are no names, and the last characters of words for what people are.
//
//nolint:gochecknoglobals // constant table
var notNames = struct{ han, roles, hangulRoles string }{
	"必填 未知 不详 匿名 保密 选填 未定 秘密 任意 必須 変更 不明 什么 变量 文件",
	"员師师生者家人工長长主民友客迷手業业学學语語力法会所院輩様", "사인자생원가부장관님객",
}

// hanName reads a name of Chinese or Japanese.
func hanName(text string, how announces) string {
	run := runOf(text, isHan)
	next, _ := utf8.DecodeRuneInString(text[len(run):])
	n := utf8.RuneCountInString(run)
	family := hanFamily(run)
	_, alone := hanFamilies[run]
	switch {
	case run == "" && how == isName: // 林さくら has its family name in Han, さくら all in kana
		return short(runOf(text, script.IsIdeograph), 2, 6)
	case n < 2, how == follows && startsNoName(text), isNotName(run):
		return ""
	case (how == isField || how == bare) && family == 0 && !alone, how == bare && n > 4:
		return ""
	case how == isField || how == isName:
		if unicode.Is(unicode.Hiragana, next) && how == isName {
			run = runOf(text, script.IsIdeograph)
		}
		return withGiven(text, run)
	case how == hints || how == bare:
		last, _ := utf8.DecodeLastRuneInString(run)
		if family == 0 && !alone || n > 5 || strings.ContainsRune(notNames.roles, last) ||
			unicode.IsLetter(next) && !unicode.Is(unicode.Hiragana, next) {
			return ""
		}
		return run
	case n <= 4 || unicode.Is(unicode.Hiragana, next) && n <= 6:
		return run
	case family > 0:
		end := min(len(run), family+2*len("明"))
		if given := run[family:end]; strings.ContainsAny(given[len("明"):], "今来是在的和住，电手身性年男女我") {
			end -= len("明")
		}
		return run[:end]
	}
	return ""
}

// isNotName reports whether a run of Chinese is a value that is none, or asks for one.
func isNotName(run string) bool {
	return strings.Contains(run, "什么") || strings.Contains(notNames.han, run)
}

// startsNoName reports whether a word of Chinese that begins no name stands where one is announced:
// 我叫他明天来.
func startsNoName(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("他她它你您我咱这那谁啥怎不是了人", r)
}

// withGiven adds the given name behind a space to a family name of Japanese.
func withGiven(text, run string) string {
	if _, ok := hanFamilies[run]; ok {
		rest := strings.TrimLeft(text[len(run):], " 　")
		if given := runOf(rest, script.IsIdeograph); given != "" && utf8.RuneCountInString(given) <= 3 {
			return text[:len(text)-len(rest)+len(given)]
		}
	}
	return short(run, 2, 6)
}

// short returns run if it has from least to most characters.
func short(run string, least, most int) string {
	if n := utf8.RuneCountInString(run); n < least || n > most {
		return ""
	}
	return run
}

// copulas are what Korean writes behind a name in a sentence that says whose it is, and particles what
// it writes in others; the longest first.
//
//nolint:gochecknoglobals // constant tables
var (
	copulas   = strings.Fields("이라고 입니다 이에요 이예요 이고요 예요 에요 이고 이며 이야 이라 라고 야")
	particles = strings.Fields("씨 님 은 는 이 가 을 를 의 께")
)

// hangulName reads a name of Korean: a family name and one of two syllables, or of one to three
// behind a word that leaves no doubt.
func hangulName(text string, how announces) string {
	run := runOf(text, script.IsHangul)
	name := run
	endings := copulas
	if how != hints {
		endings = slices.Concat(copulas, particles)
	}
	for _, c := range endings {
		if rest, ok := strings.CutSuffix(run, c); ok && koreanName(rest) {
			name = rest
			break
		}
	}
	n := utf8.RuneCountInString(name)
	if !koreanName(name) || n != 3 && (how != follows || name == run) {
		return ""
	}
	last, _ := utf8.DecodeLastRuneInString(name)
	role := strings.ContainsRune(notNames.hangulRoles, last)
	if how == hints && (name == run || role) || how == bare && role {
		return ""
	}
	return name
}

// thaiStops end a name where no space does.
//
//nolint:gochecknoglobals // constant table
var thaiStops = strings.Fields("อายุ ครับ ค่ะ โทร ที่ เป็น อยู่ และ ชอบ เลข ช่วย สมัคร ย้าย ต้อง อะไร เบอร์ ไฟล์")

// thaiName reads a name of Thai: what stands to the next space, and one more word that is no word of
// the sentence.
func thaiName(text string, how announces) string {
	in := func(r rune) bool { return unicode.Is(unicode.Thai, r) }
	first := beforeStop(runOf(text, in))
	if n := utf8.RuneCountInString(first); n < 2 || n > 14 {
		return ""
	}
	name := first
	if rest := text[len(first):]; len(rest) > 1 && rest[0] == ' ' {
		if last := beforeStop(runOf(rest[1:], in)); last != "" && utf8.RuneCountInString(last) <= 14 {
			name = text[:len(first)+1+len(last)]
		}
	}
	if how == hints && name == first { // นายกรัฐมนตรี, นางฟ้า
		return ""
	}
	return name
}

func beforeStop(run string) string {
	for _, stop := range thaiStops {
		if k := strings.Index(run, stop); k >= 0 {
			run = run[:k]
		}
	}
	return run
}

// cyrillicName reads up to three words with capitals; behind a hint, two at least.
func cyrillicName(text string, how announces) string {
	end, words := 0, 0
	for words < maxName {
		word := runOf(text[end:], func(r rune) bool {
			return unicode.Is(unicode.Cyrillic, r) || r == '-' || r == '.'
		})
		if r, _ := utf8.DecodeRuneInString(word); !unicode.IsUpper(r) {
			break
		}
		words++
		end += len(word)
		if end >= len(text) || text[end] != ' ' || strings.HasSuffix(word, ".") && len(word) > len("А.") {
			break
		}
		end++
	}
	name := strings.TrimRight(text[:end], " .-")
	if words == 1 && (how == hints || how == isField) || how == bare || utf8.RuneCountInString(name) < 2 {
		return ""
	}
	return name
}

// afterName are words of Arabic, Hebrew and Hindi that stand behind a name, and are none of it.
//
//nolint:gochecknoglobals // constant table
var afterName = wordSet("من في على إلى الى هل أن عن مع هو هي التي الذي المحترم المحترمة أنا كيف ما ماذا لا كان " +
	"قال قالت يقول يعيش تعيش يعمل " +
	"أعمل مطلوب اختياري غير مجهول الرئيس المدير الوزير مدير و ورقم وأريد ואני אני גר מ של לא " +
	"है हैं हूँ क्या को का के की से ने में पर और मैं कौन कैसे जी नाम लेकर ग्राहक मित्र महोदय सर उम्र बताइए सुझाइए होना")

// namesLikeVerbs are names of Arabic that begin as verbs do.
const namesLikeVerbs = "يوسف ياسر ياسين يحيى يونس يعقوب تامر تركي تميم توفيق"

// spacedName reads the words of a name of Arabic, Hebrew or Hindi, up to one of the sentence.
func spacedName(text string, how announces) string {
	end, words := 0, 0
	for words <= maxName {
		word := strings.TrimRight(runOf(text[end:], inSpacedName), ".")
		_, stop := afterName[word]
		switch {
		case strings.HasPrefix(word, "و"): // and
			stop = stop || utf8.RuneCountInString(word) > 3
		case strings.HasPrefix(word, "ال") && words == 0: // the
			stop = stop || how == follows
		case words == 0 && how == hints && (strings.HasPrefix(word, "ي") || strings.HasPrefix(word, "ت")): // a verb
			stop = stop || !strings.Contains(namesLikeVerbs, word)
		}
		if stop || word == "" || words == 2 && how != isName && !ofAncestor(text[:end], word) {
			break
		}
		words++
		end += len(word)
		if end >= len(text) || text[end] != ' ' {
			break
		}
		end++
	}
	first, _ := utf8.DecodeRuneInString(text)
	if words < 2 && how == isField && unicode.Is(unicode.Arabic, first) || how == bare {
		return ""
	}
	return strings.TrimRight(text[:end], " ")
}

// inSpacedName reports a letter, a mark or a dot of a name in these scripts.
func inSpacedName(r rune) bool {
	return r == '.' || unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Devanagari) &&
		unicode.In(r, unicode.L, unicode.M)
}

// ofAncestor reports whether a third word belongs to a name of Arabic: behind the word for a son, or
// with the article.
func ofAncestor(before, word string) bool {
	before = strings.TrimRight(before, " ")
	return strings.HasSuffix(before, " بن") || strings.HasSuffix(before, "عبد") ||
		strings.HasPrefix(word, "ال") || word == "بن"
}

// nameBefore returns where the name begins that the word at i ends, or i.
func (s *scanner) nameBefore(i int, word string) int {
	end := i
	if r, _ := utf8.DecodeRuneInString(word); script.IsHangul(r) {
		return s.hangulBefore(i, word)
	}
	if r, _ := utf8.DecodeLastRuneInString(s.text[:end]); r == ' ' || r == '　' {
		_, size := utf8.DecodeLastRuneInString(s.text[:end])
		end -= size
	}
	from, n := end, 0
	best := i
	for n < 5 && from > 0 {
		r, size := utf8.DecodeLastRuneInString(s.text[:from])
		if !isHan(r) {
			break
		}
		from -= size
		n++
		name := s.text[from:end]
		_, alone := hanFamilies[name]
		if (alone || hanFamily(name) > 0 && n <= 4) && name != "王" || name == "王" && word != "様" {
			best = from
		}
	}
	if word == "と申します" && n > 1 && best == i {
		best = from
	}
	last, _ := utf8.DecodeLastRuneInString(s.text[:end])
	if word == "さん" && n == 2 && strings.HasSuffix(s.text[:from], "の") && !strings.ContainsRune(notNames.roles, last) {
		best = from
	}
	if family := s.familyBefore(from); n > 0 && family < from {
		best = family
	}
	return best
}

// familyBefore returns where a Japanese family name begins that a space parts from the given name at
// i, or i.
func (s *scanner) familyBefore(i int) int {
	end := len(strings.TrimRight(s.text[:i], " 　"))
	if end == i {
		return i
	}
	for n := 1; n <= 3; n++ {
		from := end - n*len("王")
		if from < 0 || !utf8.RuneStart(s.text[from]) {
			break
		}
		if r, _ := utf8.DecodeLastRuneInString(s.text[:from]); isHan(r) {
			continue
		}
		if _, ok := hanFamilies[s.text[from:end]]; ok {
			return from
		}
	}
	return i
}

// hangulBefore is nameBefore for Korean: three syllables that begin a word.
func (s *scanner) hangulBefore(i int, word string) int {
	end := len(strings.TrimRight(s.text[:i], " "))
	if strings.HasPrefix(word, "라고") {
		if cut, ok := strings.CutSuffix(s.text[:end], "이"); ok && koreanName(cut[max(0, len(cut)-9):]) {
			end = len(cut)
		}
	}
	from := end - 3*len("김")
	if from < 0 || !utf8.RuneStart(s.text[from]) || !koreanName(s.text[from:end]) {
		return i
	}
	if r, _ := utf8.DecodeLastRuneInString(s.text[:from]); from > 0 && script.IsHangul(r) {
		return i
	}
	last, _ := utf8.DecodeLastRuneInString(s.text[:end])
	next, _ := utf8.DecodeRuneInString(s.text[i+len(word):])
	if len(word) == len("고객") && !strings.HasPrefix(word, "라") && (end == i ||
		strings.ContainsRune("한된는은할던인의로서운", last) ||
		script.IsHangul(next) && !strings.ContainsRune("은는이가을를의에와과도께님", next)) {
		return i
	}
	if word == "님" && end == i && strings.ContainsRune(notNames.hangulRoles, last) ||
		word == "씨" && script.IsHangul(next) && !strings.ContainsRune("는가를의에와도께", next) {
		return i
	}
	return from
}
