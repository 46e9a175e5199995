package pii

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

// bio returns the labels of the model: O, then B- and I- of each type.
func bio() []string {
	labels := []string{"O"}
	for _, t := range Types() {
		labels = append(labels, "B-"+t, "I-"+t)
	}
	return labels
}

func decoder(tb testing.TB) *Decoder {
	tb.Helper()
	d, err := NewDecoder(bio())
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// guessed returns what is found in a text of which the model gives one piece a label, with commas
// between the findings.
func guessed(tb testing.TB, d *Decoder, text, guess, label string) string {
	tb.Helper()
	toks := tokens(tb, text, []piece{{guess, label, 0.95}})
	return strings.Join(found(text, d.Fuse(text, nil, toks, nil)), ",")
}

// piece is a token of the text of a test: its bytes, and a label with its probability; the rest is
// O's.
type piece struct {
	text  string
	label string
	prob  float32
}

// tokens finds the pieces in text, one behind the other.
func tokens(tb testing.TB, text string, pieces []piece) []Token {
	tb.Helper()
	at := 0
	var out []Token
	for _, p := range pieces {
		k := strings.Index(text[at:], p.text)
		if k < 0 {
			tb.Fatalf("no %q in %q", p.text, text[at:])
		}
		probs := make([]float32, len(bio()))
		probs[0] = 1
		for i, label := range bio() {
			if label == p.label && i > 0 {
				probs[i], probs[0] = p.prob, 1-p.prob
			}
		}
		out = append(out, Token{at + k, at + k + len(p.text), probs})
		at += k + len(p.text)
	}
	return out
}

func TestFuse(t *testing.T) {
	tests := []struct {
		name, text string
		pieces     []piece
		want       []string
	}{
		{"a name of two words", "met Jo Doe now", []piece{{"met", "O", 1}, {"Jo", "B-PERSON", 0.9}, {"Doe", "I-PERSON", 0.9}, {"now", "O", 1}}, []string{"PERSON:Jo Doe"}},
		{"an I- that nothing begins", "met Doe", []piece{{"met", "O", 1}, {"Doe", "I-PERSON", 0.9}}, []string{"PERSON:Doe"}},
		{"the majority of the pieces of a word", "Johannsen here", []piece{{"Jo", "B-PERSON", 0.9}, {"hann", "I-PERSON", 0.9}, {"sen", "O", 0}, {"here", "O", 1}}, []string{"PERSON:Johannsen"}},
		{"a minority of the pieces of a word", "Johannsen here", []piece{{"Jo", "B-PERSON", 0.9}, {"hann", "O", 0}, {"sen", "O", 0}, {"here", "O", 1}}, []string{}},
		{"a short word inside a name", "Ana de la Cruz", []piece{{"Ana", "B-PERSON", 0.9}, {"de", "I-PERSON", 0.9}, {"la", "O", 0}, {"Cruz", "I-PERSON", 0.9}}, []string{"PERSON:Ana de la Cruz"}},
		{"a verb between two names", "Ana called Ben", []piece{{"Ana", "B-PERSON", 0.9}, {"called", "O", 0}, {"Ben", "B-PERSON", 0.9}}, []string{"PERSON:Ana", "PERSON:Ben"}},
		{"two names with and", "Ana and Ben", []piece{{"Ana", "B-PERSON", 0.9}, {"and", "O", 0}, {"Ben", "B-PERSON", 0.9}}, []string{"PERSON:Ana", "PERSON:Ben"}},
		{"a guess at a part of a telephone number", "電話は03-1234-5678です", []piece{{"電", "O", 0}, {"話は03", "B-STREET_ADDRESS", 0.9}, {"-1234-5678です", "O", 1}}, []string{"STREET_ADDRESS:話は03-1234-5678"}},
		{
			"a guess at a part of a name that is announced", "Пациентка Орлова Нина Павловна",
			[]piece{
				{"Пациентка", "B-PERSON", 0.9},
				{"Орлова", "I-PERSON", 0.9},
				{"Нина", "I-PERSON", 0.9},
				{"Павловна", "O", 1},
			},
			[]string{"PERSON:Пациентка Орлова Нина Павловна"},
		},
		{
			"a particle behind a telephone number", "연락처는 02-345-6789입니다",
			[]piece{{"02", "B-PHONE_NUMBER", 0.95}, {"-345-6789입", "I-PHONE_NUMBER", 0.95}},
			[]string{"PHONE_NUMBER:02-345-6789"},
		},
		{"an address that ends in a number", "Rua CPF 529.982.247-26, 7", []piece{{"Rua", "B-STREET_ADDRESS", 0.9}, {"CPF", "I-STREET_ADDRESS", 0.9}, {"529", "I-STREET_ADDRESS", 0.9}, {".982.247-26,", "O", 1}}, []string{"STREET_ADDRESS:Rua CPF 529.982.247-26"}},
		{"names on two lines", "Ana\nBen", []piece{{"Ana", "B-PERSON", 0.9}, {"Ben", "I-PERSON", 0.9}}, []string{"PERSON:Ana", "PERSON:Ben"}},
		{"a type that changes", "Ana Paris", []piece{{"Ana", "B-PERSON", 0.9}, {"Paris", "I-GPE", 0.9}}, []string{"PERSON:Ana", "GPE:Paris"}},
		{"punctuation, genitive and article", "the “Acme” of Ana's", []piece{{"the", "B-ORGANIZATION", 0.9}, {"“Acme”", "I-ORGANIZATION", 0.9}, {"of", "O", 0}, {"Ana's", "B-PERSON", 0.9}}, []string{"ORGANIZATION:Acme", "PERSON:Ana"}},
		{"a probability that is too low", "met Ana", []piece{{"met", "O", 1}, {"Ana", "B-PERSON", 0.45}}, []string{}},
		{"a gazetteer entry with little probability", "in Kenya", []piece{{"in", "O", 1}, {"Kenya", "B-GPE", 0.3}}, []string{"GPE:Kenya"}},
		{"no gazetteer entry with little probability", "in Xenya", []piece{{"in", "O", 1}, {"Xenya", "B-GPE", 0.3}}, []string{}},
		{"a checksum beats the model", "pay 4111111111111111 now", []piece{{"pay", "O", 1}, {"4111111111111111", "B-PHONE_NUMBER", 0.99}, {"now", "O", 1}}, []string{"CREDIT_CARD:4111111111111111"}},
		{"what is left beside a checksum stays", "Jo Doe jo@example.com", []piece{{"Jo", "B-PERSON", 0.9}, {"Doe", "I-PERSON", 0.9}, {"jo@example.com", "I-PERSON", 0.9}}, []string{"PERSON:Jo Doe", "EMAIL_ADDRESS:jo@example.com"}},
		{"the model beats a word of context", "12 Elm Road is 221 Elm Road", []piece{{"12", "O", 0}, {"221", "B-ORGANIZATION", 0.9}, {"Elm", "I-ORGANIZATION", 0.9}, {"Road", "I-ORGANIZATION", 0.9}}, []string{"STREET_ADDRESS:12 Elm Road", "ORGANIZATION:221 Elm Road"}},
		{"the longer of two readings of one thing", "at 12 Elm Road, Springfield", []piece{{"12", "B-STREET_ADDRESS", 0.9}, {"Elm", "I-STREET_ADDRESS", 0.9}, {"Road", "I-STREET_ADDRESS", 0.9}, {",", "I-STREET_ADDRESS", 0.9}, {"Springfield", "I-STREET_ADDRESS", 0.9}}, []string{"STREET_ADDRESS:12 Elm Road, Springfield"}},
		{"characters of a script without spaces", "我叫王丹。", []piece{{"我", "O", 0}, {"叫", "O", 0}, {"王", "B-PERSON", 0.9}, {"丹", "I-PERSON", 0.9}, {"。", "I-PERSON", 0.9}}, []string{"PERSON:王丹"}},
	}
	d := decoder(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := d.Fuse(tt.text, Patterns(tt.text, nil), tokens(t, tt.text, tt.pieces), nil)
			if diff := cmp.Diff(tt.want, found(tt.text, got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			check(t, tt.text, got)
		})
	}
}

// A word that everybody uses is nobody's name alone; a name is one in any case.
func TestCommonWordsAreNoNames(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct {
		text  string
		guess piece
		want  []string
	}{
		{"I forgot the password", piece{"the", "B-PERSON", 0.74}, []string{}},
		{"auch wenn und aber", piece{"und", "B-ORGANIZATION", 0.99}, []string{}},
		{"How old is the universe?", piece{"universe", "B-GPE", 0.8}, []string{}},
		{"an experienced HR manager", piece{"HR", "B-ORGANIZATION", 0.9}, []string{}},
		{"о погоде завтра", piece{"завтра", "B-PERSON", 0.57}, []string{}},
		{"the word jesieni", piece{"jesieni", "B-PERSON", 0.55}, []string{}},
		{"ask kim to call", piece{"kim", "B-PERSON", 0.61}, []string{"PERSON:kim"}},
		{"my friend maria", piece{"maria", "B-PERSON", 0.99}, []string{"PERSON:maria"}},
		{"we met judge there", piece{"judge", "B-PERSON", 0.97}, []string{"PERSON:judge"}},
		{"we met Judge there", piece{"Judge", "B-PERSON", 0.7}, []string{"PERSON:Judge"}},
		{"i live in berlin", piece{"berlin", "B-GPE", 0.99}, []string{"GPE:berlin"}},
		{`{"city": "stad"}`, piece{"stad", "B-GPE", 0.7}, []string{"GPE:stad"}},
	} {
		got := d.Fuse(tt.text, Patterns(tt.text, nil), tokens(t, tt.text, []piece{tt.guess}), nil)
		if diff := cmp.Diff(tt.want, found(tt.text, got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestFuseInCodeAndLogs(t *testing.T) {
	tests := []struct {
		name, text string
		guess      piece
		want       []string
	}{
		{"a duration", `level=info msg="done" duration_ms=8661`, piece{"8661", "B-PHONE_NUMBER", 0.99}, []string{}},
		{"a number in one piece", "the total was 5550134987 in all", piece{"5550134987", "B-PHONE_NUMBER", 0.99}, []string{}},
		{"a number in one piece behind a word for telephones", "her phone: 5550134987", piece{"5550134987", "B-PHONE_NUMBER", 0.99}, []string{"PHONE_NUMBER:5550134987"}},
		{"a number that the next words explain", "612 345 678 is my number", piece{"612 345 678", "B-PHONE_NUMBER", 0.99}, []string{"PHONE_NUMBER:612 345 678"}},
		{"a decimal", "loss 0.02179257 after", piece{"0.02179257", "B-PHONE_NUMBER", 0.99}, []string{}},
		{"an order", "about order 612 345 678 again", piece{"612 345 678", "B-PHONE_NUMBER", 0.99}, []string{}},
		{"a hash", "see 7ed34c6144 there", piece{"7ed34c6144", "B-PHONE_NUMBER", 0.99}, []string{}},
		{"a class", "class John(Base):", piece{"John", "B-PERSON", 0.99}, []string{}},
		{"a name in camelCase", "we call MathTaskHandler twice", piece{"MathTaskHandler", "B-PERSON", 0.99}, []string{}},
		{"a name with a capital inside", "we met Fiona McCormick twice", piece{"Fiona McCormick", "B-PERSON", 0.99}, []string{"PERSON:Fiona McCormick"}},
		{"a company in camelCase", "we left YouTube behind", piece{"YouTube", "B-ORGANIZATION", 0.99}, []string{"ORGANIZATION:YouTube"}},
		{"a path", "look at /home/marten/src today", piece{"marten", "B-PERSON", 0.99}, []string{}},
		{"a constant", "set MAX_BERLIN first", piece{"BERLIN", "B-GPE", 0.99}, []string{}},
		{"a decorator", "    @pytest.mark.asyncio", piece{"@pytest.mark.asyncio", "B-PERSON", 0.99}, []string{}},
		{"a value of a key", "host=berlin retries=3", piece{"berlin", "B-GPE", 0.99}, []string{}},
		{"a value of a key that says whose it is", `{"id": 3, "city": "Berlin"}`, piece{"Berlin", "B-GPE", 0.99}, []string{"GPE:Berlin"}},
		{"a full name in a line of code", "// fixes(#12) found by Niels Holm; see a_b.go", piece{"Niels Holm", "B-PERSON", 0.99}, []string{"PERSON:Niels Holm"}},
		{"a clock of a log", "2026-04-07 17:17:15 UTC we saw it", piece{"17:17:15", "B-DATE_TIME", 0.99}, []string{}},
		{"a clock in prose", "come at 17:15 then", piece{"17:15", "B-DATE_TIME", 0.99}, []string{"DATE_TIME:17:15"}},
		{"a word as a street", "read the md of it", piece{"md", "B-STREET_ADDRESS", 0.99}, []string{}},
		{"a sign", "so - what now", piece{"-", "B-PERSON", 0.99}, []string{}},
		{"a handle", "thanks @ Marten_Lind for it", piece{"Marten_Lind", "B-PERSON", 0.99}, []string{"PERSON:Marten_Lind"}},
		{"initials of a company", "lavora per lombardi s.r.l. ora", piece{"lombardi s.r.l.", "B-ORGANIZATION", 0.99}, []string{"ORGANIZATION:lombardi s.r.l."}},
	}
	d := decoder(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := d.Fuse(tt.text, nil, tokens(t, tt.text, []piece{tt.guess}), nil)
			if diff := cmp.Diff(tt.want, found(tt.text, got)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestFuseScores(t *testing.T) {
	d := decoder(t)
	const text = "Jo Doe in Kenya"
	got := d.Fuse(text, nil, tokens(t, text, []piece{{"Jo", "B-PERSON", 0.75}, {"Doe", "I-PERSON", 0.625}, {"Kenya", "B-GPE", 0.5}}), nil)
	want := []Span{{Type: Person, Start: 0, End: 6, Score: 0.6875}, {Type: Place, Start: 10, End: 15, Score: 0.75}} // the gazetteer halves the doubt
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFuseIgnoresTokensThatAreNone(t *testing.T) {
	d := decoder(t)
	const text = "Jo Doe"
	ok := tokens(t, text, []piece{{"Jo", "B-PERSON", 0.9}, {"Doe", "I-PERSON", 0.9}})
	bad := []Token{{0, 0, ok[0].Probs}, ok[0], ok[0], {-1, 3, ok[0].Probs}, {4, 99, ok[0].Probs}, {3, 5, ok[0].Probs[:3]}, ok[1]}
	if diff := cmp.Diff(d.Fuse(text, nil, ok, nil), d.Fuse(text, nil, bad, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := d.Fuse(text, nil, nil, nil); got != nil {
		t.Errorf("nothing gave %v", got)
	}
}

// addresses is a text of n addresses of mail with a name before each, and tokens that call each
// name a person.
func addresses(tb testing.TB, n int) (string, []Token) {
	tb.Helper()
	const one = "Jo jo@brightfield.com "
	d := decoder(tb)
	probs := make([]float32, len(d.of))
	probs[0], probs[slices.Index(bio(), "B-PERSON")] = 0.1, 0.9
	var toks []Token
	for i := range n {
		toks = append(toks, Token{i * len(one), i*len(one) + 2, probs})
	}
	return strings.Repeat(one, n), toks
}

func TestYieldComparesNeighboursOnly(t *testing.T) {
	compared := func(n int) int {
		text, toks := addresses(t, n)
		patterns := Patterns(text, nil)
		r := reader{d: decoder(t), text: text, out: patterns, lines: judge{text: text}}
		count, err := 0, r.read(t.Context(), toks)
		if err == nil {
			count, err = r.yield(t.Context(), len(patterns))
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(r.out) != 2*n {
			t.Fatalf("%d addresses gave %d spans, want %d", n, len(r.out), 2*n)
		}
		return count
	}
	const n = 2000
	once, twice := compared(n), compared(2*n)
	if once > 2*2*n || twice > 2*once+n/100 {
		t.Errorf("%d and %d pairs compared for %d and %d addresses", once, twice, n, 2*n)
	}
}

func TestNobodyWaitsForFusionInVain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text, toks := addresses(t, 2*itemsPerLook)
	if got, err := decoder(t).FuseContext(ctx, text, Patterns(text, nil), toks, nil); !errors.Is(err, context.Canceled) || got != nil {
		t.Errorf("%d spans and error %v, want none and a cancellation", len(got), err)
	}
}

func TestYieldCutsASpanThatManyPatternsTouch(t *testing.T) {
	const text = "Jo Doe jo@brightfield.com ann@brightfield.com Ann"
	got := decoder(t).Fuse(text, Patterns(text, nil), tokens(t, text, []piece{
		{"Jo", "B-PERSON", 0.9}, {"Doe", "I-PERSON", 0.9}, {"jo@brightfield.com", "I-PERSON", 0.9}, {"ann@brightfield.com", "I-PERSON", 0.9}, {"Ann", "I-PERSON", 0.9},
	}), nil)
	want := []string{"PERSON:Jo Doe", "EMAIL_ADDRESS:jo@brightfield.com", "EMAIL_ADDRESS:ann@brightfield.com", "PERSON:Ann"}
	if diff := cmp.Diff(want, found(text, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFuseTakesLinearTime(t *testing.T) {
	text, toks := addresses(t, 40_000)
	d := decoder(t)
	took := testkit.CPUTime(t, func() { d.Fuse(text, Patterns(text, nil), toks, nil) })
	// It takes a quarter of a second; comparing each with each took many.
	if took > 5*time.Second {
		t.Errorf("%d bytes took %s", len(text), took)
	}
}

func TestNewDecoder(t *testing.T) {
	tests := []struct {
		name   string
		labels []string
		want   string // part of the error; empty for none
	}{
		{"labels of the bundle", bio(), ""},
		{"labels without B-", []string{"O", "I-PERSON"}, ""},
		{"bare names", []string{"O", "PERSON"}, ""},
		{"no O", []string{"B-PERSON"}, "no O"},
		{"only O", []string{"O"}, "0 types"},
		{"a label twice", []string{"O", "B-X", "B-X"}, "twice"},
		{"a label without a type", []string{"O", "B-"}, "no type"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := NewDecoder(tt.labels)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func FuzzFuse(f *testing.F) {
	f.Add("Jo Doe at jo@example.com", []byte{2, 21, 200, 3, 22, 180, 9, 1, 90})
	f.Add("Dr. Müller, 12 Elm Street", []byte{1, 27, 255, 1, 0, 255, 8, 21, 100, 3, 26, 200, 4, 26, 10})
	f.Add("王丹住在北京", []byte{3, 21, 255, 3, 22, 255})
	d := decoder(f)
	labels := len(bio())
	f.Fuzz(func(t *testing.T, text string, model []byte) {
		text = strings.ToValidUTF8(text, "?")
		var toks []Token
		at := 0
		for ; len(model) >= 3 && at < len(text); model = model[3:] { // length, label, probability
			start := at
			for n := int(model[0]%12) + 1; n > 0 && at < len(text); n-- {
				_, size := utf8.DecodeRuneInString(text[at:])
				at += size
			}
			probs := make([]float32, labels)
			probs[0] = 1 - float32(model[2])/255
			probs[int(model[1])%labels] += float32(model[2]) / 255
			toks = append(toks, Token{start, at, probs})
		}
		check(t, text, d.Fuse(text, Patterns(text, nil), toks, nil))
	})
}

func TestAGuessInsideAPatternDoesNotReplaceIt(t *testing.T) {
	for name, text := range map[string]string{
		"a phone number":   "phone: 415 555 0199",
		"a driver licence": "driver license D1234567",
	} {
		t.Run(name, func(t *testing.T) {
			patterns := Patterns(text, nil)
			if len(patterns) != 1 {
				t.Fatalf("patterns %v, want one", patterns)
			}
			whole := patterns[0]
			guess := Span{Type: DateTime, Start: whole.Start, End: whole.Start + 3, Score: 0.99}
			for _, spans := range [][]Span{{whole, guess}, {guess, whole}} {
				got, err := resolve(t.Context(), spans)
				if err != nil || len(got) != 1 || got[0] != whole {
					t.Errorf("left %v, want %v, error %v", got, whole, err)
				}
			}
		})
	}
}
