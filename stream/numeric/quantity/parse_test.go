package quantity_test

import (
	"fmt"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/stream/numeric/quantity"
)

// show returns the values of a text as "what was written=what it is".
func show(text string) []string {
	var out []string
	for _, v := range quantity.Parse(nil, text) {
		s := text[v.Start:v.End] + "="
		switch v.Kind {
		case quantity.Date:
			s += fmt.Sprintf("%d", v.Year)
			if v.YearTo != v.Year {
				s += fmt.Sprintf("..%d", v.YearTo)
			}
			if v.Month > 0 {
				s += fmt.Sprintf("/%d", v.Month)
			}
			if v.Day > 0 {
				s += fmt.Sprintf("/%d", v.Day)
			}
		case quantity.Clock:
			s += fmt.Sprintf("%02d:%02d", int(v.Lo)/60, int(v.Lo)%60)
		case quantity.Ordinal:
			s += fmt.Sprintf("#%g", v.Raw)
		case quantity.Fraction:
			s += fmt.Sprintf("f%.3g", v.Raw)
		case quantity.Count:
			s += fmt.Sprintf("%.6g", v.Lo)
			if v.Range() {
				s += fmt.Sprintf("..%.6g", v.Hi)
			}
			if v.Dim != 0 {
				s += fmt.Sprintf("d%d", v.Dim)
			}
		}
		if v.Hedge != 0 {
			s += fmt.Sprintf("h%d", v.Hedge)
		}
		out = append(out, s)
	}
	return out
}

// TestParse writes values as "written=read": dates as year/month/day, ranks with #, shares with f,
// the number of the dimension after d, and the number of the hedge after h.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"the conjunction once", "The refund is paid once the parcel arrives.", nil},
		{"separators", "It costs 1,234.5 or 1.234,5 or 1 234 or 1'234 people", []string{"1,234.5=1234.5", "1.234,5=1234.5", "1 234=1234", "1'234=1234"}},
		{"codes glued to amounts", "IRR200,000, Rs200,000, INR45, IRR200", []string{"200,000=200000", "Rs200,000=200000d27", "INR45=45d27"}},
		{"magnitudes and money", "12k users, 3.2 million people, $5m, $3.2 billion, US$ 4, 5 USD, EUR 7, EUR60, 8 €, £3-4 million", []string{"12k=12000", "3.2 million=3.2e+06", "$5m=5e+06d22", "$3.2 billion=3.2e+09d22", "US$ 4=4d22", "5 USD=5d22", "EUR 7=7d23", "EUR60=60d23", "8 €=8d23", "£3-4 million=3e+06..4e+06d24"}},
		{"percentages", "5 %, 5 percent, 12 per cent, 3 percentage points", []string{"5 %=5d1", "5 percent=5d1", "12 per cent=12d1", "3 percentage points=3d1"}},
		{"ranks", "1st, 2nd, 3rd and the fourth place", []string{"1st=#1", "2nd=#2", "3rd=#3", "fourth=#4"}},
		{"English words", "two hundred and thirty-four thousand five hundred six", []string{"two hundred and thirty-four thousand five hundred six=234506"}},
		{"words with hyphens and articles", "twenty-one cats, a dozen eggs, a hundred days, three million", []string{"twenty-one=21", "a dozen=12", "a hundred days=8.64e+06d6", "three million=3e+06"}},
		{"German, French and Spanish words", "einundzwanzig Katzen, zweihundert Leute, dreitausendfünfhundert Euro, quatre-vingt-dix ans, treinta y cinco días, soixante et onze", []string{"einundzwanzig=21", "zweihundert=200", "dreitausendfünfhundert Euro=3500d23", "quatre-vingt-dix ans=2.84018e+09d6", "treinta y cinco días=3.024e+06d6", "soixante et onze=71"}},
		{"hedges", "about 330 m, nearly 5 km, more than 100 countries, at least 3 GB, up to 16 hours a day, no more than 5 people, over 200 years", []string{"330 m=330d2h1", "5 km=5000d2h2", "100=100h3", "3 GB=3e+09d9h5", "16 hours a day=57600d6h6", "5=5h6", "200 years=6.31152e+09d6h3"}},
		{"days", "12-May-1889, 12/Oct/2000, 12 May 1889, May 12, 1889, 12th of May 1889, 1889-05-12, 05/12/1889, 12.05.1889, 12. Mai 1889, 12 de mayo de 1889, 2024年5月12日", []string{"12-May-1889=1889/5/12", "12/Oct/2000=2000/10/12", "12 May 1889=1889/5/12", "May 12, 1889=1889/5/12", "12th of May 1889=1889/5/12", "1889-05-12=1889/5/12", "05/12/1889=1889/12/5", "12.05.1889=1889/5/12", "12. Mai 1889=1889/5/12", "12 de mayo de 1889=1889/5/12", "2024年5月12日=2024/5/12"}},
		{"years, decades, centuries", "in 1889, the 1990s, the 19th century, nineteenth century, XIXe siècle, siglo XIX, 19. Jahrhundert, Q3 2024, 300 BC", []string{"1889=1889", "1990s=1990..1999", "19th century=1800..1900", "nineteenth century=1800..1900", "XIXe siècle=1800..1900", "siglo XIX=1800..1900", "19. Jahrhundert=1800..1900", "Q3 2024=2024/113", "300 BC=-300"}},
		{"times of day", "14:30, 2:30 pm, 9 am, 14h30, 14 Uhr, 9 a.m. sharp", []string{"14:30=14:30", "2:30 pm=14:30", "9 am=09:00", "14h30=14:30", "14 Uhr=14:00", "9 a.m=09:00"}},
		{
			"one in words of two units", "The ride takes an hour and 20 minutes, eine Stunde und 20 Minuten, una hora y 20 minutos; a day and 3 metres",
			[]string{"an hour and 20 minutes=4800d6", "eine Stunde und 20 Minuten=4800d6", "una hora y 20 minutos=4800d6", "3 metres=3d2"},
		},
		{
			"units in ideographs", "桥长1240米, 1.24公里, 2.3公斤, 2300克, 12小时, 6个月, 14欧元, 250万美元, 3米粉",
			[]string{"1240米=1240d2", "1.24公里=1240d2", "2.3公斤=2.3d5", "2300克=2.3d5", "12小时=43200d6", "6个月=1.57788e+07d6", "14欧元=14d23", "250万美元=2.5e+06d22", "3米=3d2"},
		},
		{"a time in ideographs", "8点30分开门, 第8点, 20時05分", []string{"8点30分=08:30", "8=8", "20時05分=20:05"}},
		{"units", "2 hours and 30 minutes, 5 ft 10 in, 2h 30min, 90 km/h, 5 metres per second, 20 °C, 68 degrees Fahrenheit, 20°C, 5 m², 30 square feet", []string{"2 hours and 30 minutes=9000d6", "5 ft 10 in=1.778d2", "2h 30min=9000d6", "90 km/h=25d1538", "5 metres per second=5d1538", "20 °C=293.15d7", "68 degrees Fahrenheit=293.15d7", "20°C=293.15d7", "5 m²=5d3", "30 square feet=2.78709d3"}},
		{"powers of ten", "1.2 × 10^3 kg, 1.2e-3 m, 3.5×10⁻⁶ m", []string{"1.2 × 10^3 kg=1200d5", "1.2e-3 m=0.0012d2", "3.5×10⁻⁶ m=3.5e-06d2"}},
		{"ranges and years", "between 5 and 10 people, from 5 to 10 km, 3-4 million, 10–15 %, 1914–1918", []string{"5 and 10=5..10", "5=5", "10 km=10000d2", "3-4 million=3e+06..4e+06", "10–15 %=10..15d1", "1914=1914", "1918=1918"}},
		{"list number", "1. First item has 5 apples", []string{"First=#1", "5=5"}},
		{"what is no fact", "see step 2, Figure 3, [3], version 1.2.3, GPT-4, COVID-19, H2O, page 12, `x = 5`, https://a.b/c?d=9, 24/7, B-52, 5G", nil},
		{"fractions and ages", "half the people, two thirds, 1/2, 3 1/2 cups, ½ cup, a quarter of, 50 years old, 14-year-old boy, 10-metre pole", []string{"half=f0.5", "two thirds=f0.667", "1/2=f0.5", "3 1/2=3.5", "½=f0.5", "a quarter=f0.25", "50 years=1.57788e+09d6", "14-year-old=4.41806e+08d6", "10-metre=10d2"}},
		{"signs", "-5 °C, minus 5, −3.2 %, 1,600. 200 mL/day, 81.43% are age 20–64; 13.53%", []string{"-5 °C=268.15d7", "minus 5=-5", "−3.2 %=-3.2d1", "1,600=1600", "200 mL/day=2.31481e-06d1540", "81.43%=81.43d1", "20–64=20..64", "13.53%=13.53d1"}},
		{"numerals in ideographs", "一百五十六万人口, 十二个, 三十五岁, 两千零一十年, 二〇二一年, 万一, 千万不要, 十分好", []string{"一百五十六万=1.56e+06", "十二=12", "三十五=35", "两千零一十年=2010", "二〇二一年=2021"}},
		{"a share of a unit", "half an hour, three quarters of an hour, half a million people, half the people", []string{"half an hour=1800d6", "three quarters of an hour=2700d6", "half a million=500000", "half=f0.5"}},
		{"money in short", "15,5 M€, 3 Md€, 12 k€, 2,5 millones de euros", []string{"15,5 M€=1.55e+07d23", "3 Md€=3e+09d23", "12 k€=12000d23", "2,5 millones de euros=2.5e+06d23"}},
		{"French times of day", "à 8 h 30, dure 2 h 30 min", []string{"8 h 30=08:30", "2 h 30 min=9000d6"}},
		{"percentiles are names", "the 99th percentile is 38 ms", []string{"38 ms=0.038d6"}},
		{"years after a part of the year", "Ende 2022 hatte, début 1998 elle", []string{"2022=2022", "1998=1998"}},
		{"decades without their century", "in den 60er Jahren, les années soixante, los años 70, 60 años", []string{"60er Jahren=1960..1969", "années soixante=1960..1969", "años 70=1970..1979", "60 años=1.89346e+09d6"}},
		{"per cent and a dotted time", "62 pour cent, um 7.42 Uhr, 十二点五", []string{"62 pour cent=62d1", "7.42 Uhr=07:42", "十二点五=12.5"}},
		{"Chinese hedges", "约300人, 近300人, 超过300人, 300多人, 150多万人", []string{"300=300h1", "300=300h2", "300=300h3", "300=300h3", "150多万=1.5e+06h3"}},
		{"Chinese", "12万人, 3亿, 500元", []string{"12万=120000", "3亿=3e+08", "500元=500d26"}},
		{"numbers of digits and ideographs", "3億5000万円, 12亿5千万元, 3万2千人, １万２０００, 1.5万, 5万3, 1兆2000億円, 1.2兆円, 5兆瓦", []string{"3億5000万円=3.5e+08d25", "12亿5千万元=1.25e+09d26", "3万2千=32000", "１万２０００=12000", "1.5万=15000", "5万3=50003", "1兆2000億円=1.2e+12d25", "1.2兆円=1.2e+12d25", "5=5"}},
		{"groups of ideographs", "三億五千万円, 三万两千人, 十二亿五千万, 一万亿", []string{"三億五千万円=3.5e+08d25", "三万两千=32000", "十二亿五千万=1.25e+09", "一万亿=1e+12"}},
		{"years of Japan", "令和7年3月5日, 平成元年, 昭和五十年, 昭和の50年", []string{"令和7年3月5日=2025/3/5", "平成元年=1989", "昭和五十年=1975", "50年=1.57788e+09d6"}},
		{"days in ideographs", "二〇二五年三月八日, 3月5号, 十月", []string{"二〇二五年三月八日=2025/3/8", "3月5号=0/3/5", "十月=0/10"}},
		{"halves of the day", "午後5時30分, 午後3時, 午前9時, 17時半, 下午3点, 晚上九点半, 晚上12点整, 15点召开, 中午12点", []string{"5時30分=17:30", "3時=15:00", "9時=09:00", "17時半=17:30", "3点=15:00", "九点半=21:30", "12点整=12:00", "15点=15:00", "12点=12:00"}},
		{"no hours", "2時間, 3点建议, 第3时, 80点, 24時代, 十分好", []string{"2時間=7200d6", "3=3", "3=3", "80=80", "24=24"}},
		{"lengths of time in ideographs", "2年, 两周, 三个月, 14日以内, 2週間, 6ヶ月, 80年代, 5周年, 一天, 几十年, 第三周", []string{"2年=6.31152e+07d6", "两周=1.2096e+06d6", "三个月=7.8894e+06d6", "14日以内=1.2096e+06d6", "2週間=1.2096e+06d6", "6ヶ月=1.57788e+07d6", "80=80", "5=5"}},
		{"halves of a unit", "半小时, 一个半小时, 2時間半, 半个月, 上半年", []string{"半小时=1800d6", "一个半小时=5400d6", "2時間半=9000d6", "半个月=1.3149e+06d6"}},
		{"shares of Japanese", "3割引, 10パーセント, 90分, 3分の1", []string{"3割=30d1", "10パーセント=10d1", "90分=5400d6", "3=3", "1=1"}},
		{"Portuguese", "R$ 1,25 milhão, 2,5 bilhões de reais, mil e duzentos funcionários, vinte por cento, cento e vinte e cinco dias, cem mil reais, das 9h às 17h30, em 24h, 5 de março de 2025, dois anos", []string{"R$ 1,25 milhão=1.25e+06d32", "2,5 bilhões de reais=2.5e+09d32", "mil e duzentos=1200", "vinte por cento=20d1", "cento e vinte e cinco dias=1.08e+07d6", "cem mil reais=100000d32", "9h=09:00", "17h30=17:30", "24h=86400d6", "5 de março de 2025=2025/3/5", "dois anos=6.31152e+07d6"}},
		{"ideographs that count", "五位讲师, 两人, 一个, 第三个", []string{"五=5", "两=2"}},
		{"Korean", "매출은 3억 5천만 원, 3.5억 원, 1만 2천 명, 12,000명입니다, 20퍼센트, 9900원이며 14일 이내에 2주 안에 24개월, 2년, 3시간", []string{"3억 5천만 원=3.5e+08d31", "3.5억 원=3.5e+08d31", "1만 2천=12000", "12,000=12000", "20퍼센트=20d1", "9900원=9900d31", "14일=1.2096e+06d6", "2주=1.2096e+06d6", "24개월=6.31152e+07d6", "2년=6.31152e+07d6", "3시간=10800d6"}},
		{"an article of German before hours", "Er gewann das 24h-Rennen, das 8h-Ticket", []string{"24h=86400d6", "8h=28800d6"}},
		{"words of Korean that begin like units", "3원칙, 2주택, 3프로젝트", []string{"3=3", "2=2", "3=3"}},
		{"days and hours of Korean", "2025년 3월 5일 오후 3시에, 오전 9시 30분부터 17시 반까지, 15시, 80년대, 5일에, 2025.03.05에", []string{"2025년 3월 5일=2025/3/5", "3시=15:00", "9시 30분=09:30", "17시 반=17:30", "15시=15:00", "80=80", "5=5", "2025.03.05=2025/3/5"}},
		{"Spanish hundreds", "mil doscientos euros, mil y pico", []string{"mil doscientos euros=1200d23", "mil=1000"}},
		{"Russian", "1,25 млрд рублей, 1250 млн рублей, 5 марта 2025 года, 2 недели, 24 часа", []string{"1,25 млрд рублей=1.25e+09d33", "1250 млн рублей=1.25e+09d33", "5 марта 2025=2025/3/5", "2 недели=1.2096e+06d6", "24 часа=86400d6"}},
		{"Arabic", "٣٫٥ مليون دولار, ٥ مارس ٢٠٢٥, 5 آذار 2025, الساعة 5 مساءً, ١٤ يومًا, ٢ كيلوغرام, 20 بالمئة", []string{"٣٫٥ مليون دولار=3.5e+06d22", "٥ مارس ٢٠٢٥=2025/3/5", "5 آذار 2025=2025/3/5", "5 مساءً=17:00", "١٤ يومًا=1.2096e+06d6", "٢ كيلوغرام=2d5", "20 بالمئة=20d1"}},
		{"Hindi", "12.5 लाख रुपये, 12,50,000 रुपये, 5 मार्च 2025, 20 प्रतिशत", []string{"12.5 लाख रुपये=1.25e+06d27", "12,50,000 रुपये=1.25e+06d27", "5 मार्च 2025=2025/3/5", "20 प्रतिशत=20d1"}},
		{"shares of a price that are left", "打八折, 8折, 85折, 8.5折, 三折叠", []string{"八折=80d1", "8折=80d1", "85折=85d1", "8.5折=85d1"}},
		{"metres and centimetres", "身高1米75, 1米8的人, 1米75厘米, 100米20秒, 1米2圈", []string{"1米75=1.75d2", "1米8=1.8d2", "1米75厘米=1.75d2", "100米=100d2", "20秒=20d6", "1米=1d2", "2=2"}},
		{"years of Taiwan", "民國113年5月6日", []string{"民國113年5月6日=2024/5/6"}},
		{"years of Thailand", "ใน พ.ศ. 2567 มี, ปี 2567, 5 มีนาคม พ.ศ. 2567, 5 มีนาคม 2567, ราคา 2500 บาท", []string{"2567=2024", "2567=2024", "5 มีนาคม พ.ศ. 2567=2024/3/5", "5 มีนาคม 2567=2024/3/5", "2500=2500"}},
		{"German hours in words", "um halb acht Uhr abends, halb 8, um acht Uhr, sieben Uhr morgens, 8 Uhr abends, 12 Uhr nachts, nur halb zehn Euro", []string{"halb acht Uhr abends=19:30", "halb 8=07:30", "acht Uhr=08:00", "sieben Uhr morgens=07:00", "8 Uhr abends=20:00", "12 Uhr nachts=00:00", "zehn Euro=10d23"}},
		{"hours by the part of the day", "à 8 heures du soir, 8 heures, a las 8 de la tarde, às 8 da noite, alle 8 di sera, в 8 часов вечера, в 9 утра, 3 дня, три дня, с десяти утра, a las seis de la tarde", []string{"8 heures du soir=20:00", "8 heures=28800d6", "8 de la tarde=20:00", "8 da noite=20:00", "8 di sera=20:00", "8 часов вечера=20:00", "9 утра=09:00", "3 дня=259200d6", "три дня=259200d6", "десяти утра=10:00", "seis de la tarde=18:00"}},
		{"months in short", "15 ene 2026, 12 Ene:, 15 ago, 3 avr. 2024, 31 dic 2026, 5 янв 2024, 10 days ago 5 came, AVR 12", []string{"15 ene 2026=2026/1/15", "12 Ene=0/1/12", "15 ago=0/8/15", "3 avr. 2024=2024/4/3", "31 dic 2026=2026/12/31", "5 янв 2024=2024/1/5", "10 days=864000d6", "5=5", "12=12"}},
		{
			"days without a year in a field",
			`{"due_date": "06-01"} Lamp: date: 24-12, Datum: 06/01, score: 06-01, date: 06-32`,
			[]string{"06-01=0/6/1", "24-12=0/12/24", "06/01=0/6/1", "06=6", "01=1", "06-32=6..32"},
		},
		{
			"ranges in a field",
			"Dates: 10-12 May 2025, Termin: 10-12 Mai, due: 10-12 days, date: 10-12 \"",
			[]string{
				"10=2025/5/10", "12 May 2025=2025/5/12", "10=0/5/10", "12 Mai=0/5/12",
				"10-12 days=864000..1.0368e+06d6", "10-12=0/10/12",
			},
		},
		{"days without a year", "am 20.06. und bis 5.6., am 20.06 Euro, até 15/06, (30/05), on 06/20, 3/4, a score: 08/10", []string{"20.06.=0/6/20", "5.6.=0/6/5", "20.06 Euro=20.06d23", "15/06=0/6/15", "30/05=0/5/30", "06/20=0/6/20", "3/4=f0.75", "08/10=f0.8"}},
		{"Portuguese hours", "das 8 às 14 horas, às 20 horas, em 14 horas", []string{"8=08:00", "14 horas=14:00", "20 horas=20:00", "14 horas=50400d6"}},
		{"days before", "2日前, 180日後, 10月3日前", []string{"2日前=172800d6", "180日後=1.5552e+07d6", "10月3日=0/10/3"}},
		{"Italian", "due settimane, sei mesi, tra 14 giorni, 48 ore, quindici minuti, venti per cento, 5 gennaio 2024; is due now, Otto, once", []string{"due settimane=1.2096e+06d6", "sei mesi=1.57788e+07d6", "14 giorni=1.2096e+06d6", "48 ore=172800d6", "quindici minuti=900d6", "venti per cento=20d1", "5 gennaio 2024=2024/1/5"}},
		{"Russian words", "800р, 500 р., в течение двух недель, двадцать пять дней, сто двадцать рублей, один-два дня", []string{"800р=800d33", "500 р=500d33", "двух недель=1.2096e+06d6", "двадцать пять дней=2.16e+06d6", "сто двадцать рублей=120d33", "один-два дня=86400..172800d6"}},
		{"Arabic words", "سنتان, أسبوعين, سبعة أيام, خمسة وعشرون يوما, خمسة عشر يوما, اثنا عشر شهرا", []string{"سنتان=6.31152e+07d6", "أسبوعين=1.2096e+06d6", "سبعة أيام=604800d6", "خمسة وعشرون يوما=2.16e+06d6", "خمسة عشر يوما=1.296e+06d6", "عشر شهرا=3.15576e+07d6"}},
		{"years beside counts", "The 2,000 employees in 2020 300 people. 1889 visitors came. 555-123-4567 call", []string{"2,000=2000", "2020=2020", "300=300", "1889=1889", "555-123-4567=5.55123e+09d49"}},
		{
			"numbers to call", "+49 30 1234567, 030 / 123 45 67, (415) 555-0132, tel. 91 456 78 90; +1 234 567 people, 01-02-2025 10:00, 12 34 56 78",
			[]string{"+49 30 1234567=3.01235e+08d49", "030 / 123 45 67=3.01235e+08d49", "(415) 555-0132=4.15555e+09d49", "91 456 78 90=9.14568e+08d49", "1 234 567=1.23457e+06", "01-02-2025=2025/2/1", "10:00=10:00", "12=12", "34=34", "56=56", "78=78"},
		},
		{
			"parts of the year", "im 3. Quartal 2025, Q2/2025, first half of 2024, tercer trimestre de 2025; in the second half",
			[]string{"3. Quartal 2025=2025/113", "Q2/2025=2025/112", "first half of 2024=2024/121", "tercer trimestre de 2025=2025/113", "second=#2", "half=f0.5"},
		},
		{"thousands of euros", "845 Tsd. EUR, 1,5 Mio. Euro, 12 T€, 412 TEUR", []string{"845 Tsd. EUR=845000d23", "1,5 Mio. Euro=1.5e+06d23", "12 T€=12000d23", "412 TEUR=412000d23"}},
		{"reference list", "PX=3=0.019208 . 63, 31–44. 99, no. 3 (2015): 469–477 ", []string{"3=3", "0.019208=0.019208", "63=63", "31–44=31..44", "99=99", "2015=2015", "469–477=469..477"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, show(tt.text)); diff != "" {
				t.Errorf("values of %q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

// checkValues fails if values are out of order, overlap, or have impossible contents.
func checkValues(t *testing.T, text string) {
	t.Helper()
	end := 0
	for _, v := range quantity.Parse(nil, text) {
		if v.Start < end || v.End <= v.Start || v.End > len(text) {
			t.Fatalf("value at [%d, %d) after %d in %d bytes", v.Start, v.End, end, len(text))
		}
		end = v.End
		if !utf8.ValidString(text[v.Start:v.End]) && utf8.ValidString(text) {
			t.Fatalf("value %q is cut inside a character", text[v.Start:v.End])
		}
		if v.Kind != quantity.Date && (v.Hi < v.Lo || math.IsNaN(v.Lo)) {
			t.Fatalf("value %q: range %g..%g", text[v.Start:v.End], v.Lo, v.Hi)
		}
		if v.Kind == quantity.Date && (v.YearTo < v.Year || v.Day > 31) {
			t.Fatalf("date %q: years %d..%d, day %d", text[v.Start:v.End], v.Year, v.YearTo, v.Day)
		}
	}
}

func TestIdeographsThatCountAreWeak(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"两人结婚了": true, "12人": false, "三天": false} {
		if v := quantity.Parse(nil, text); len(v) != 1 || v[0].Weak != want {
			t.Errorf("%q: %+v", text, v)
		}
	}
}

func TestAmountsAreForALengthOfTimeInScriptsWithoutSpaces(t *testing.T) {
	t.Parallel()
	const month, year = quantity.Year / 12, quantity.Year
	for text, want := range map[string]float64{
		"每月99元": month, "月99元": month, "99元/月": month, "99元每月": month, "月费：99元": month, "1个月99元": month,
		"年1188元": year, "一年1188元": year, "月額9,800円": month, "¥980/月": month, "월 9,900원": month, "연 99,000원": year,
		"9,900원/월": month, "3月99元": 0, "去年100元": 0, "两年1999元": 0, "3월 9,900원": 0, "半年99元": 0,
		"99 рублей в месяц": month, "9 euro al mese": month, "R$ 9 ao mês": month,
	} {
		list := quantity.Parse(nil, text)
		if v := list[len(list)-1]; v.Period != want {
			t.Errorf("%q is for %g", text, v.Period)
		}
	}
}

// TestDiscountsInTenthsMeetThoseInPercent checks that the remaining share of a price matches the
// share subtracted from it.
func TestDiscountsInTenthsMeetThoseInPercent(t *testing.T) {
	t.Parallel()
	for _, e := range []string{"20% off", "8折", "80%", "八折"} {
		claim, evidence := quantity.Parse(nil, "打八折"), quantity.Parse(nil, e)
		if quantity.Compare(&claim[0], &evidence[0]) == quantity.Differs ||
			quantity.Compare(&evidence[0], &claim[0]) == quantity.Differs {
			t.Errorf("八折 is not %s", e)
		}
	}
	claim, evidence := quantity.Parse(nil, "打七折"), quantity.Parse(nil, "20% off")
	if quantity.Compare(&claim[0], &evidence[0]) != quantity.Differs {
		t.Error("七折 is 20 % off")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"It costs $1,234.50 or 1.234,5 € (about 5 %)", "two hundred and thirty-four", "5 ft 10 in to 6 ft", "1.2e-3 × 10^6", "£3-4 m - 5", "3 1/2 ½ of 1/0",
		"einhundertundzwanzig", "quatre-vingt-dix-neuf", "-5--6", "$ $5 $", "1,,2..3", "१२३", "5\xff6", "10⁻", "令和", "平成元", "3億5000万5億", "5兆兆", "午後3時5", "一个半", "3억 5천만 9", "3시 99분", "만만", "#5 [3", "a 5a 5e 5e- 5E+",
	} {
		f.Add(s)
	}
	f.Fuzz(checkValues)
}

func FuzzDate(f *testing.F) {
	for _, s := range []string{
		"12 May 1889", "May 12, 1889", "12. Mai 1889", "1889-05-12", "05/12/1889", "2024年5月12日", "the 1990s", "1990's", "19th century BC", "XIXe siècle", "siglo XIX",
		"Q3 2024", "2018–19", "14:30 pm", "9 a.m.", "1er mai", "May", "may 5", "300 BC", "21st century", "twenty-first century", "12 de mayo de 1889",
	} {
		f.Add(s, "in ")
	}
	f.Fuzz(func(t *testing.T, date, before string) {
		checkValues(t, before+date)
		checkValues(t, date+" "+date)
	})
}

func TestParseDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("the race detector empties pools at random")
	}
	dst := make([]quantity.Value, 0, 16)
	if n := testing.AllocsPerRun(200, func() {
		dst = quantity.Parse(dst[:0], "The tower was completed on 12 May 1889, is about 330 metres tall and cost $1.5 million.")
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
