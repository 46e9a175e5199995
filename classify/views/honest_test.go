package views_test

import (
	"testing"

	"signalbox/classify/views"
)

func TestHonestTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"nothing":                     "",
		"a byte":                      "x",
		"English":                     "The meeting starts at nine and ends at noon; lunch is served in the canteen. I said: don't worry, it's a well-known place!",
		"names and rare words":        "Erwin Schrödinger, Werner Heisenberg and Paul Dirac corresponded with Oppenheimer about eigenvalues, spinors and antiparticles.",
		"German":                      "Die Überprüfung der Straßenbahnhaltestelle dauerte länger als vorgesehen, weil mehrere Weichen ausgetauscht werden mussten.",
		"French":                      "L'œuvre qu'il a peinte l'été dernier, où l'on aperçoit déjà la côte, coûte très cher aujourd'hui.",
		"Turkish":                     "Isparta'nın gülleri ılık bir ilkbahar sabahında ışıl parlıyordu; çocuklar bahçede koşuyordu.",
		"Vietnamese":                  "Cuộc họp trước kéo dài hai giờ và mọi người đều đồng ý với kế hoạch mới của công ty.",
		"Polish":                      "Zażółć gęślą jaźń, powiedziała sąsiadka, podlewając pomidory w ogródku za domem.",
		"Russian":                     "Мама мыла раму, а рот у неё был полон. Тот сор он нёс от дома до оврага; ему это по нраву.",
		"Russian with English in it":  "Наш API возвращает JSON, а IT-отдел пишет тесты на Go. Сервер nginx работает на порту 8080.",
		"Ukrainian":                   "Сусідка вирощує помідори, а її брат працює в університеті й пише книжку про історію міста.",
		"Bulgarian":                   "Предишната среща продължи два часа. Моля, обобщи този доклад за утре.",
		"Greek":                       "Η προηγούμενη συνάντηση κράτησε δύο ώρες. Το κόμμα νίκησε και η Άννα είναι ικανοποιημένη.",
		"Armenian":                    "Նախորդ ժողովը տևեց երկու ժամ, իսկ հետո բոլորը գնացին տուն։",
		"Hebrew":                      "הפגישה הקודמת נמשכה שעתיים, ואחריה כולם הלכו הביתה.",
		"Arabic with marks":           "اَلْكِتَابُ عَلَى الطَّاوِلَةِ، وَالْقَلَمُ بِجَانِبِهِ.",
		"Persian with joiners":        "می\u200cخواهم این کتاب\u200cها را بخوانم و به خانه بروم.",
		"Hindi with joiners":          "पिछली बैठक दो घंटे चली; क्\u200dया आप रिपोर्ट का सार बता सकते हैं?",
		"Chinese":                     "上一次会议开了两个小时，请总结这份报告。游戏规则很简单！",
		"Chinese with spaces":         "今 日 天 气 很 好 我 们 去 公 园 散 步",
		"Japanese":                    "前回の会議は二時間かかりました。「報告書」を要約してください。",
		"Korean":                      "지난 회의는 두 시간 걸렸습니다. 이 보고서를 요약해 주세요.",
		"Korean with spaces":          "나 는 오 늘 집 에 간 다 그 리 고 잔 다",
		"Thai":                        "การประชุมครั้งก่อนใช้เวลาสองชั่วโมง ช่วยสรุปรายงานนี้",
		"maths with Greek letters":    "Let α + β = γ and ΔG = ΔH − TΔS; then ∑ xᵢ ≤ ∫ f(x) dx for ε > 0, λ ≠ μ, σ² = 4 and ρgh = p.",
		"units":                       "The lens has 5 μm pixels, R = 10 kΩ, the angle is 30° and it weighs 2 kg ± 3 %.",
		"emoji":                       "Great job 👍🏽! 👨‍👩‍👧 ❤️ 🏳️‍🌈 🇩🇪 🏴󠁧󠁢󠁥󠁮󠁧󠁿 1️⃣ ©️",
		"typography":                  "“Yes” — she said… ‘no’ • 50 % – 60 % ½ ™ ® № 5 → next",
		"code":                        "func main() { x := []int{1, 2, 3}; for i := range x { fmt.Printf(\"%d\\n\", x[i]) } } // sha256, utf8, h264, x86_64",
		"Python":                      "def f(a, b, c, d, e):\n    return {'k1': a[0], 'k2': b[1:3], 'k3': c ** 2, 'x1y2': d @ e}\n",
		"shell":                       "for f in *.txt; do grep -c $old $table \"$HOME/$f\" | sort -n | head -5; done && echo $? > /dev/null",
		"a regular expression":        `^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$ and \x00-\x1f`,
		"C":                           "int a1b2c3 = 0xDEADBEEF; uint8_t b[4] = {0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08};",
		"identifiers":                 "getUserByEmailAddress, parse_http_response_header, XMLHttpRequestFactory, item5, step1, level5, room1, test3, win32, in5, v10",
		"a UUID":                      "id 123e4567-e89b-12d3-a456-426614174000, next 9f1c2e7a-5b3d-4c8e-a1f0-2d3e4f5a6b7c",
		"hashes":                      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 d41d8cd98f00b204e9800998ecf8427e",
		"a commit":                    "fixed in 2d06cc1a9be4f7730f1a54a0cba2f0bd1e0d54e3 (see 26ffa1)",
		"a base64 picture":            "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
		"URLs":                        "https://example.org/a/b-c_d/index.html?q=1&r=two#top and http://localhost:8080/v1/chat/completions",
		"a URL with escapes":          "https://example.org/my%20file%20name.pdf?redirect=https%3A%2F%2Fexample.com%2Fa",
		"e-mail addresses":            "write to jane.doe@example.org or sales@shop.example",
		"product codes":               "Order B17-442X, SKU 5T3-90L, part A1B2C3D4, model RTX4090, size XL3, lot 2023-11-05/7",
		"numbers":                     "3.14159 1,000,000 12:30 2024-01-31 +49 30 123456 1-800-555-0199 192.168.0.1 5e-3 42nd 3rd 1st 10x",
		"a table of numbers":          "12 15 18 21 24 27 30\n101 102 103 99 98 97 110\n10 20 30 40 50 60 70 80",
		"options":                     "A) yes B) no C) maybe D) never\nA B C D E F\na. b. c. d. e.",
		"abbreviations":               "U.S.A., e.g. the N.A.T.O. states, i.e. a.k.a. p.m. Ph.D. J.R.R. Tolkien",
		"rulers and dots":             "----- ... --- *** === ... -- - . . . . . ____ / / / |",
		"a Markdown table":            "| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |\n- x\n- y\n- z",
		"HTML":                        "<p class=\"x\">Tom &amp; Jerry &lt;3 &nbsp; &copy; 2024 &#39;quoted&#39;</p>",
		"JSON":                        `{"a":1,"b":[true,false,null],"c":"line\nbreak\ttab","d":{"e":"\u00e9"}}`,
		"LaTeX":                       `\frac{a}{b} + \xi_1 \cdot \sum_{i=0}^{n} x_i^2 \leq \infty \quad \forall x \in X`,
		"a Windows path":              `C:\Users\x86\unit\Desktop\report%20final.docx`,
		"chemistry":                   "2 H2O2 -> 2 H2O + O2; CH3COOH, SO4, NO3, NH3, C6H12O6, CO2",
		"music and chess":             "A C# E | D F# A | 1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6",
		"a DNA sequence":              "ACGTACGTTAGCTAGCTAGGATCCGATCGATCGTACGATCGATTACAGGCTA",
		"a sequence of amino acids":   "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVV",
		"palindromes and small words": "was it a car or a cat I saw; no lemon, no melon; never odd or even; live evil; top spot; dog god; war raw",
		"Latin":                       "Gallia est omnis divisa in partes tres, quarum unam incolunt Belgae, aliam Aquitani.",
		"Indonesian":                  "Rapat sebelumnya berlangsung dua jam; tolong ringkas laporan ini untuk tetangga saya.",
		"Finnish":                     "Edellinen kokous kesti kaksi tuntia, ja sen jälkeen kaikki lähtivät kotiin syömään.",
		"a log line":                  "2024-05-01T12:00:01.123Z ERROR [worker-3] id=0x7ffee4b2 took 35ms (retry 2/5) path=/api/v1/items",
		"a key":                       "sk-proj-9aF3kLm2QxZ7vB1nC5tR8yU0wE4iO6pS and AKIAIOSFODNN7EXAMPLE",
	}
	for name, text := range cases {
		if twin, changed := views.Twin(text); changed || twin != text {
			t.Errorf("%s: Twin(%.120q) = %.300q, %v", name, text, twin, changed)
		}
	}
}
