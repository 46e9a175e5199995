package claims_test

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/stream/claims"
)

func splitter(tb testing.TB, o claims.Options) *claims.Splitter {
	tb.Helper()
	s, err := claims.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// split feeds the whole text at once.
func split(tb testing.TB, o claims.Options, text string) []claims.Claim {
	tb.Helper()
	s := splitter(tb, o)
	out := append([]claims.Claim(nil), s.Feed(text)...)
	return append(out, s.Flush()...)
}

// texts returns the claims, preceded by their kind if it is not prose.
func texts(list []claims.Claim) []string {
	var out []string
	for _, c := range list {
		s := c.Text
		if c.Kind != claims.Prose {
			s = c.Kind.String() + ":" + s
		}
		if c.Context != "" {
			s += " <" + c.Context + ">"
		}
		out = append(out, s)
	}
	return out
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"punctuation alone is no claim", "He said: \"It is tall.\n\n\"\n\nIt is old. ) …", []string{"He said: \"It is tall.", "It is old."}},
		{"punctuation alone is handed out in code and cells", "```\n}\n```\n| a |\n|---|\n| — |\n", []string{"code:```", "code:}", "code:```", "cell:a", "cell:— <a>"}},
		{"sentences end at a full stop before a space", "It is tall. It is old.", []string{"It is tall.", "It is old."}},
		{"decimals and thousands hold no end", "It cost 3.50 or 1.234,5 in all. Then 1,200.", []string{"It cost 3.50 or 1.234,5 in all.", "Then 1,200."}},
		{"the letter of a scale ends one", "Entre 2 et 8 °C. Après ouverture, à 25 °C. À jeter.", []string{"Entre 2 et 8 °C.", "Après ouverture, à 25 °C.", "À jeter."}},
		{"a number may end a sentence", "It has 42. The rest is 7.5. Done in 1889. Yes.", []string{"It has 42.", "The rest is 7.5.", "Done in 1889.", "Yes."}},
		{"a German day does not end one", "Am 3. Mai 1889 kam er. Am 4. ging er.", []string{"Am 3. Mai 1889 kam er.", "Am 4. ging er."}},
		{"nor a quarter", "Im 3. Quartal 2025 fiel er. 2. Halbjahr: mehr.", []string{"Im 3. Quartal 2025 fiel er.", "2. Halbjahr: mehr."}},
		{"abbreviations go on", "Dr. Smith and Prof. Li, e.g. in Fig. 3, agree. So do we.", []string{"Dr. Smith and Prof. Li, e.g. in Fig. 3, agree.", "So do we."}},
		{
			"letters of an abbreviation go on", "Der Zins ist 3,6 % p. a. und gilt, z. B. ab 5 €, i. d. R. lange. Er ist 2 % p. a. Die Frist ist b. Was nun?",
			[]string{"Der Zins ist 3,6 % p. a. und gilt, z. B. ab 5 €, i. d. R. lange.", "Er ist 2 % p. a.", "Die Frist ist b.", "Was nun?"},
		},
		{
			"German abbreviations go on before a noun", "Es sind 12 Mio. Euro zzgl. MwSt. im Jahr, max. 500 Euro mtl. nach § 5 Abs. 2. Es waren 3 Mrd. Die Bank zahlt inkl. Steuer.",
			[]string{"Es sind 12 Mio. Euro zzgl. MwSt. im Jahr, max. 500 Euro mtl. nach § 5 Abs. 2.", "Es waren 3 Mrd.", "Die Bank zahlt inkl. Steuer."},
		},
		{"initials go on", "J. K. R. Tolkin was born in 1892. He wrote.", []string{"J. K. R. Tolkin was born in 1892.", "He wrote."}},
		{"a dotted acronym ends only before a word that begins sentences", "He left the U.S. Army in the U.S. He rested.", []string{"He left the U.S. Army in the U.S.", "He rested."}},
		{"a company's suffix may end a sentence", "He runs Apple Inc. and more. He left Apple Inc. Then came Jo.", []string{"He runs Apple Inc. and more.", "He left Apple Inc.", "Then came Jo."}},
		{"addresses hold no end", "See https://a.example/x?y=1.2 or mail a.b@c.example now. Bye!", []string{"See https://a.example/x?y=1.2 or mail a.b@c.example now.", "Bye!"}},
		{"an ellipsis goes on before a small letter", "Well... maybe. Wait... What?! No… yes.", []string{"Well... maybe.", "Wait...", "What?!", "No… yes."}},
		{"quotes and brackets belong to the sentence before", `He said "stop." Then (it was late.) He left.[3] **Bold.** End.`, []string{`He said "stop."`, "Then (it was late.)", "He left.[3]", "**Bold.**", "End."}},
		{"a semicolon ends a clause outside brackets", "One is 5 m; two (a; b) is 6 m.", []string{"One is 5 m;", "two (a; b) is 6 m."}},
		{
			"list items and headings are claims without their marks", "# Facts\n\n- The first is 5 m\n- The second. More.\n1. Third\n2) Fourth\n• Fifth\n",
			[]string{"heading:Facts", "item:The first is 5 m", "item:The second.", "item:More.", "item:Third", "item:Fourth", "item:Fifth"},
		},
		{
			"table cells know their row and column", "| Tower | Height |\n|---|:--:|\n| Eiffel | 330 m |\n| Tokyo | 333 m |\nDone.",
			[]string{"cell:Tower", "cell:Height", "cell:Eiffel <Tower>", "cell:330 m <Eiffel, Height>", "cell:Tokyo <Tower>", "cell:333 m <Tokyo, Height>", "Done."},
		},
		{
			"code blocks are lines of code", "Run this:\n```go\nx := 1. // Yes. No.\n\ny()\n```\nIt works. Good.",
			[]string{"Run this:", "code:```go", "code:x := 1. // Yes. No.", "code:y()", "code:```", "It works.", "Good."},
		},
		{"inline code and formulas hold no end", "Call `a. B()` now. Let $x = 1. Y$ be. It costs $5. Then \\(a. B\\) ends.", []string{"Call `a. B()` now.", "Let $x = 1. Y$ be.", "It costs $5.", "Then \\(a. B\\) ends."}},
		{"Chinese and Japanese stops need no space", "塔高330米。它建于1889年。「はい。」次です！ok", []string{"塔高330米。", "它建于1889年。", "「はい。」", "次です！", "ok"}},
		{"Hindi and Arabic marks end sentences", "यह 5 है। वह 6 है॥ ما هذا؟ نعم.", []string{"यह 5 है।", "वह 6 है॥", "ما هذا؟", "نعم."}},
		{"a line break before a small letter goes on", "The tower is\ntall. It\n\nis old", []string{"The tower is\ntall.", "It", "is old"}},
		{
			"lines wrapped by hand go on", "The tower on the Champ de Mars, which was built for the world fair of\n1889 in Paris, is tall.\nShort\nOther",
			[]string{"The tower on the Champ de Mars, which was built for the world fair of\n1889 in Paris, is tall.", "Short", "Other"},
		},
		{"quoted lines lose their mark", "> It is. So\n> be it", []string{"It is.", "So", "be it"}},
		{"nothing gives nothing", " \n\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []claims.Options{{}, {Blocks: true}} {
				if diff := cmp.Diff(tt.want, texts(split(t, o, tt.text))); diff != "" {
					t.Errorf("claims with %+v (-want +got):\n%s", o, diff)
				}
			}
		})
	}
}

func TestEndlessSentenceIsCutIntoOverlappingWindows(t *testing.T) {
	t.Parallel()
	got := split(t, claims.Options{MaxWords: 8, Stride: 6}, "a b c d e f g h i j k l m n o p q")
	want := []string{"a b c d e f g h", "g h i j k l m n", "m n o p q"}
	if diff := cmp.Diff(want, texts(got)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if !got[0].Window || got[2].Window {
		t.Errorf("window marks: %v, %v; want true, false", got[0].Window, got[2].Window)
	}
}

func TestTextWithoutSpacesIsCutByBytes(t *testing.T) {
	t.Parallel()
	s := splitter(t, claims.Options{MaxBytes: 256})
	longest := 0
	for range 4000 {
		for _, c := range s.Feed("YWJj") {
			longest = max(longest, len(c.Text))
		}
		if s.Pending() > 512 {
			t.Fatalf("%d bytes pending", s.Pending())
		}
	}
	if longest != 256 {
		t.Errorf("longest claim: %d bytes, want 256", longest)
	}
}

func TestOptionsOutOfRangeAreNamed(t *testing.T) {
	t.Parallel()
	_, err := claims.New(claims.Options{MaxWords: 3, Stride: 100, MaxBytes: 1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"max words 3", "stride 100", "max bytes 1"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q names no %q", err, name)
		}
	}
}

// gap matches what may be between claims: white space, mark-up, punctuation and list numbers.
var gap = regexp.MustCompile(`^(?:[\s\x00-\x1f|>+=◦▪●○\p{P}]|\(?\d{1,3}[.)])*$`)

// checkCover fails if a claim is not the text at its position, or if text belongs to no claim.
func checkCover(t rapid.TB, text string, list []claims.Claim) {
	at, last := 0, 0
	for i, c := range list {
		if c.Bytes.Start < last || c.Bytes.End <= at || c.Bytes.End > len(text) {
			t.Fatalf("claim %d at %v follows one that ends at %d", i, c.Bytes, at)
		}
		last = c.Bytes.Start
		if text[c.Bytes.Start:c.Bytes.End] != c.Text {
			t.Fatalf("claim %d is %q, the text at its place %q", i, c.Text, text[c.Bytes.Start:c.Bytes.End])
		}
		if n := utf8.RuneCountInString(text[:c.Bytes.Start]); n != c.Runes.Start || n+utf8.RuneCountInString(c.Text) != c.Runes.End {
			t.Fatalf("claim %d at runes %v, want start %d", i, c.Runes, n)
		}
		if c.Bytes.Start > at && !blank(text[at:c.Bytes.Start]) {
			t.Fatalf("text %q before claim %d is in no claim", text[at:c.Bytes.Start], i)
		}
		at = c.Bytes.End
	}
	if !blank(text[at:]) {
		t.Fatalf("text %q at the end is in no claim", text[at:])
	}
}

func blank(s string) bool {
	return gap.MatchString(strings.Map(func(r rune) rune {
		if strings.ContainsRune("\u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", r) || r >= 0x2000 && r <= 0x200a {
			return ' '
		}
		return r
	}, s))
}

// checkChunks fails if feeding the text in other pieces changes the claims.
func checkChunks(t rapid.TB, s *claims.Splitter, text string, want []claims.Claim, next func(left int) int) {
	s.Reset()
	var got []claims.Claim
	for rest := text; rest != ""; {
		n := min(max(1, next(len(rest))), len(rest))
		got = append(got, s.Feed(rest[:n])...)
		rest = rest[n:]
	}
	got = append(got, s.Flush()...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("claims depend on the pieces (-whole +pieces):\n%s", diff)
	}
}

// pieces are the parts of random texts.
var pieces = []string{
	"The tower is 330 m tall. ", "Dr. ", "J. ", "U.S. ", "3. ", "3.5", "\n", "\n\n", "- ", "1. ", "| a | b |\n", "|---|---|\n", "```\n", "```go\n", "`x. Y`", "$5. ", "$x. Y$ ",
	"。", "」", "「", "它", "塔高", "! ", "?) ", "... ", "… ", "; ", "(", ")", "[3]", "# ", "> ", "\\(", "\\)", "\\[", "$$", "**", " ", "word ", "Mai ", "é", "\xff", "\xe5", "--- ", "---\n", "~~~\n", "•", " \t", "\r\n",
	"https://a.example/b.c?d=e ", "yes", "No", "etc. ", "\"", "”", "।", "؟ ", "&amp; ", "Inc. ", "p. a. ", "z. ", "Mio. ", "abcdefghij", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ",
}

func TestPiecesNeverChangeTheClaims(t *testing.T) {
	t.Parallel()
	checkPieces(t, pieces, claims.Options{MaxWords: 12, Stride: 8, MaxBytes: 256})
}

// checkPieces checks that texts built from the given parts yield the same claims however they are
// fed.
func checkPieces(t *testing.T, of []string, opts claims.Options) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(of), 0, 60).Draw(t, "text"), "")
		s, err := claims.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]claims.Claim(nil), s.Feed(text)...)
		want = append(want, s.Flush()...)
		checkCover(t, text, want)
		checkChunks(t, s, text, want, func(int) int { return 1 })
		checkChunks(t, s, text, want, func(int) int { return rapid.IntRange(1, 9).Draw(t, "piece") })
	})
}

func FuzzSplitter(f *testing.F) {
	for _, p := range pieces {
		f.Add("Start "+p+"Then "+p+p+"end.", uint64(1))
	}
	f.Add(strings.Repeat(" ", 60)+"- x\n```\nx\n```"+strings.Repeat(" ", 60)+"y\n```\nz", uint64(7))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s := splitter(t, claims.Options{MaxWords: 12, Stride: 8, MaxBytes: 256})
		want := append([]claims.Claim(nil), s.Feed(text)...)
		want = append(want, s.Flush()...)
		checkCover(t, text, want)
		rnd := rand.New(rand.NewPCG(seed, 1))
		checkChunks(t, s, text, want, func(int) int { return 1 + rnd.IntN(7) })
		checkChunks(t, s, text, want, func(int) int { return 1 })
	})
}

func TestFeedAllocatesOnlyForClaims(t *testing.T) {
	s := splitter(t, claims.Options{Blocks: true})
	for range 10 {
		s.Feed("The tower is 330 metres tall. ")
	}
	deltas := strings.SplitAfter("The tower in the city of <b>Paris</b> is about three < hundred metres tall and "+
		"very old", " ")
	if n := testing.AllocsPerRun(200, func() {
		s.Reset()
		for _, d := range deltas {
			s.Feed(d)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a text without a boundary, want 0", n)
	}
}

func TestBytesGiveTheSameClaimsAsStrings(t *testing.T) {
	const text = "The tower is 330 m tall. It was built in 1889; it is old.\n\n- one item. Zürich is near."
	asBytes, asString := splitter(t, claims.Options{}), splitter(t, claims.Options{})
	piece := []byte(text)
	got := append(slices.Clone(asBytes.FeedBytes(piece)), asBytes.Flush()...)
	clear(piece) // the splitter must not have kept it
	want := append(slices.Clone(asString.Feed(text)), asString.Flush()...)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-string +bytes):\n%s", diff)
	}
}

func BenchmarkFeed(b *testing.B) {
	s := splitter(b, claims.Options{})
	deltas := strings.SplitAfter("The tower in the city of Paris is about 330 metres tall, and it was built by J. Eiffel in 1889. It is old. ", " ")
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range deltas {
			s.Feed(d)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(deltas)), "ns/delta")
}

func TestTheLastClaimOfATextIsUnfinishedWithoutAStop(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"The tower is tall":                 true,
		"It is old. The tower is tall":      true,
		"The tower is tall.":                false,
		"The tower is tall. ":               false,
		"Is it tall?":                       false,
		"He said: \"The tower is tall.\"":   false,
		"**The tower is tall.**":            false,
		"The tower is\n":                    true,
		"The tower is tall.[3, 4]":          false,
		"The tower is tall [3]":             true,
		"塔很高。":                              false,
		"塔很":                                true,
		"It was opened in 1889.":            false,
		"It costs 3.":                       true,
		"It was designed by Dr.":            true,
		"It is in the U.S.":                 true,
		"Towers, bridges, etc.":             false,
		"- The tower is tall":               true,
		"- The tower is tall\n":             false,
		"| Tower | 330 m":                   true,
		"It stands for long; it is old;":    false,
		"It goes on and on...":              false,
		"A number ends like this: 1,000.50": true,
	} {
		s, err := claims.New(claims.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list := slices.Concat(slices.Clone(s.Feed(text)), s.Flush())
		for i, c := range list {
			if c.Unfinished != (want && i == len(list)-1) {
				t.Errorf("%q: claim %q is unfinished: %v", text, c.Text, c.Unfinished)
			}
		}
	}
}
