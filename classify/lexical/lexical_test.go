package lexical

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

func user(text string) *signal.Text {
	return &signal.Text{LastUser: text, Segments: []signal.Segment{{Role: "user", Text: text}}}
}

func build(tb testing.TB, sets ...Options) *Matcher {
	tb.Helper()
	m, err := New(sets)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestPhrases(t *testing.T) {
	tests := map[string]struct {
		set  Options
		text string
		want bool
	}{
		"a phrase matches":                                {Options{Any: []string{"Project Titan"}}, "the Project Titan budget", true},
		"case does not matter":                            {Options{Any: []string{"Project Titan"}}, "PROJECT TITAN", true},
		"case matters when asked":                         {Options{Any: []string{"Titan"}, CaseSensitive: true}, "titan TITAN", false},
		"case-sensitive phrases match as written":         {Options{Any: []string{"Titan"}, CaseSensitive: true}, "our Titan", true},
		"a word does not match inside a word":             {Options{Any: []string{"titan"}}, "titanium subtitan titan_x", false},
		"a hyphen is a boundary":                          {Options{Any: []string{"titan"}}, "a titan-based one", true},
		"a hyphen is no space":                            {Options{Any: []string{"secret sauce"}}, "the secret-sauce", false},
		"a hyphen is an edit away":                        {Options{Any: []string{"secret sauce"}, Fuzzy: 1}, "the secret-sauce", true},
		"punctuation is a boundary":                       {Options{Any: []string{"titan"}}, "(titan), or so", true},
		"a phrase may end in punctuation":                 {Options{Any: []string{"C++"}}, "is c++11 newer?", true},
		"white space of any length joins words":           {Options{Any: []string{"project  titan"}}, "project\n\t titan", true},
		"a phrase does not match across its words":        {Options{Any: []string{"project titan"}}, "project of titan", false},
		"composed and decomposed accents are equal":       {Options{Any: []string{"café"}}, "the cafe\u0301 is open", true},
		"a combining mark continues the word":             {Options{Any: []string{"cafe"}}, "x cafe\u0323 y", false},
		"final sigma is a sigma":                          {Options{Any: []string{"ΟΔΟΣ"}}, "οδος 5", true},
		"Cyrillic case folds":                             {Options{Any: []string{"привет"}}, "ПРИВЕТ!", true},
		"Han has no boundaries":                           {Options{Any: []string{"机密"}}, "这是机密文件", true},
		"Thai has no boundaries":                          {Options{Any: []string{"ลับ"}}, "เอกสารลับมาก", true},
		"particles of Korean may follow":                  {Options{Any: []string{"프로젝트 한강"}}, "프로젝트 한강의 일정은?", true},
		"several particles may follow":                    {Options{Any: []string{"환불"}}, "저는 환불에서만은 안 됩니다", true},
		"a Korean word does not match inside a word":      {Options{Any: []string{"비"}}, "비밀 정비 비행기", false},
		"a Korean phrase begins at a word":                {Options{Any: []string{"한강"}}, "남한강의 물", false},
		"Hangul beside Latin is a boundary":               {Options{Any: []string{"titan", "10", "환불"}}, "Titan의 예산", true},
		"Latin beside Hangul is a boundary":               {Options{Any: []string{"환불"}}, "VIP환불", true},
		"edits beside particles":                          {Options{Any: []string{"프로젝트 한강"}, Fuzzy: 1}, "프로잭트 한강에서는", true},
		"Han beside Latin is a boundary":                  {Options{Any: []string{"titan"}}, "关于titan的", true},
		"the longer of two phrases does not hide another": {Options{Any: []string{"titan x", "titan"}}, "titan xy", true},
		"bytes that are no UTF-8 do no harm":              {Options{Any: []string{"titan"}}, "\xff titan \xc3", true},
		"an empty text has no match":                      {Options{Any: []string{"titan"}}, "", false},
		"one edit may be a replacement":                   {Options{Any: []string{"project titan"}, Fuzzy: 1}, "Projact Titan", true},
		"one edit may be an insertion":                    {Options{Any: []string{"titan"}, Fuzzy: 1}, "the tiitan", true},
		"one edit may be a deletion":                      {Options{Any: []string{"titan"}, Fuzzy: 1}, "the tian.", true},
		"one edit may join two words":                     {Options{Any: []string{"project titan"}, Fuzzy: 1}, "projecttitan", true},
		"two edits are more than one":                     {Options{Any: []string{"titan"}, Fuzzy: 1}, "tixxan", false},
		"two edits are allowed when asked":                {Options{Any: []string{"project titan"}, Fuzzy: 2}, "prject titn", true},
		"no edit is fine too":                             {Options{Any: []string{"titan"}, Fuzzy: 1}, "titan", true},
		"edits do not eat word boundaries":                {Options{Any: []string{"titan"}, Fuzzy: 1}, "titanium", false},
		"an edit at the start":                            {Options{Any: []string{"titan"}, Fuzzy: 1}, "xtitan", true},
		"edits work beyond ASCII":                         {Options{Any: []string{"größer"}, Fuzzy: 1}, "GRÖßAR", true},
		"fuzzy phrases may be case-sensitive":             {Options{Any: []string{"TITAN"}, Fuzzy: 1, CaseSensitive: true}, "titan", false},
		"a pattern matches":                               {Options{Regex: `TT-\d{4}`}, "see tt-1234", true},
		"a case-sensitive pattern":                        {Options{Regex: `TT-\d{4}`, CaseSensitive: true}, "see tt-1234", false},
		"a pattern stands beside phrases":                 {Options{Any: []string{"titan"}, Regex: `\bsaturn\b`}, "saturn", true},
		"a pattern with alternatives is one pattern":      {Options{Regex: `^a|b$`}, "xb", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.set.Name = "set"
			got := match(build(t, tc.set), user(tc.text))
			if (len(got) == 1) != tc.want {
				t.Errorf("%+v in %q: %v, want a match: %v", tc.set, tc.text, got, tc.want)
			}
		})
	}
}

func TestMatchReturnsTheSetsInTheirOrder(t *testing.T) {
	m := build(t,
		Options{Name: "z", Any: []string{"apple"}},
		Options{Name: "none", Any: []string{"pear"}},
		Options{Name: "b", Regex: "app"},
		Options{Name: "a", Any: []string{"apple", "APPLE tart"}, CaseSensitive: true},
		Options{Name: "f", Any: []string{"aple"}, Fuzzy: 1},
	)
	if d := cmp.Diff([]string{"z", "b", "a", "f"}, match(m, user("an apple tart"))); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	if got := match(m, user("nothing")); got != nil {
		t.Errorf("names %v, want none", got)
	}
}

func TestEveryRoleIsRead(t *testing.T) {
	m := build(t, Options{Name: "titan", Any: []string{"titan"}})
	for _, role := range []string{"system", "developer", "user", "assistant", "tool", "function"} {
		text := &signal.Text{Segments: []signal.Segment{{Role: "user", Text: "hello"}, {Role: role, Text: "titan"}}}
		if got := match(m, text); len(got) != 1 {
			t.Errorf("role %s: %v, want one match", role, got)
		}
	}
}

func TestPhrasesDoNotSpanSegments(t *testing.T) {
	m := build(t, Options{Name: "titan", Any: []string{"project titan"}})
	text := &signal.Text{Segments: []signal.Segment{{Role: "user", Text: "project"}, {Role: "user", Text: "titan"}}}
	if got := match(m, text); got != nil {
		t.Errorf("%v, want no match", got)
	}
}

func TestValidateReportsEveryProblem(t *testing.T) {
	tests := map[string]struct {
		set  Options
		want []string
	}{
		"an empty set":       {Options{}, []string{"name: missing", "any: missing"}},
		"an empty phrase":    {Options{Name: "x", Any: []string{"a", " \n"}}, []string{"any[1]: empty"}},
		"too many edits":     {Options{Name: "x", Any: []string{"long enough phrase"}, Fuzzy: 3}, []string{"fuzzy: 3"}},
		"a negative edit":    {Options{Name: "x", Any: []string{"a"}, Fuzzy: -1}, []string{"fuzzy: -1"}},
		"a phrase too short": {Options{Name: "x", Any: []string{"seven77"}, Fuzzy: 2}, []string{"any[0]: \"seven77\" is too short"}},
		"a phrase too long":  {Options{Name: "x", Any: []string{strings.Repeat("x", 64)}, Fuzzy: 1}, []string{"any[0]: longer"}},
		"a broken pattern":   {Options{Regex: "("}, []string{"name: missing", "regex: "}},
		"a lookahead":        {Options{Name: "x", Regex: "(?!x)"}, []string{"regex: "}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.set.Validate()
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want one with %q", err, want)
				}
			}
			if _, err := New([]Options{tc.set}); err == nil {
				t.Error("New accepts it")
			}
		})
	}
	_, err := New([]Options{{Name: "x", Any: []string{"a"}}, {Name: "x", Any: []string{"b"}}})
	if err == nil || !strings.Contains(err.Error(), `keyword set "x": name: used twice`) {
		t.Errorf("error %v, want one about the second x", err)
	}
}

func TestNoSetsMatchNothing(t *testing.T) {
	var none *Matcher
	if got := match(none, user("x")); got != nil {
		t.Errorf("nil matcher: %v", got)
	}
	if got := match(build(t), user("x")); got != nil {
		t.Errorf("no sets: %v", got)
	}
}

func TestConcurrentMatchesDoNotMix(t *testing.T) {
	m := build(t, Options{Name: "a", Any: []string{"alpha"}}, Options{Name: "b", Any: []string{"betta"}, Fuzzy: 1}, Options{Name: "c", Any: []string{"Gamma"}, CaseSensitive: true})
	texts := map[string][]string{"ALPHA beta": {"a", "b"}, "gamma": nil, "Gamma alpha": {"a", "c"}}
	var group sync.WaitGroup
	for text, want := range texts {
		group.Go(func() {
			for range 200 {
				if d := cmp.Diff(want, match(m, user(text))); d != "" {
					t.Errorf("%q (-want +got):\n%s", text, d)
				}
			}
		})
	}
	group.Wait()
}

// TestTimeIsLinear tells linear from quadratic, which would take minutes here.
func TestTimeIsLinear(t *testing.T) {
	m := build(t,
		Options{Name: "a", Any: []string{strings.Repeat("a", 60), strings.Repeat("a ", 30)}},
		Options{Name: "b", Any: []string{strings.Repeat("a", 50) + "b"}, Fuzzy: 2},
		Options{Name: "c", Regex: "(a+)+$x"})
	for _, unit := range []string{"a", "a ", "\u0301", "e\u0301"} {
		text := user(strings.Repeat(unit, 1<<17/len(unit)))
		if took := testkit.CPUTime(t, func() { match(m, text) }); took > 10*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
	}
}

// distance is the plain edit distance, the oracle of the bit-parallel one.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := diagonal
			if a[i] != b[j] {
				cost = min(diagonal, row[j], row[j+1]) + 1
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// naive looks at every part of the text that starts and ends at a boundary.
func naive(text, phrase string, edits int, mode folding) bool {
	b := fold(text, mode)
	want := []rune(string(fold(phrase, mode)))
	starts, stops := []int{}, []int{}
	for i := range string(b) {
		if boundary(b, i) {
			starts = append(starts, i)
		}
		if ends(b, i) {
			stops = append(stops, i)
		}
	}
	stops = append(stops, len(b))
	for _, from := range starts {
		for _, to := range stops {
			if to < from {
				continue
			}
			part := []rune(string(b[from:to]))
			if n := len(part) - len(want); len(part) > 0 && n <= edits && -n <= edits && distance(part, want) <= edits {
				return true
			}
		}
	}
	return false
}

func FuzzMatch(f *testing.F) {
	f.Add("the project titan budget", "Project Titan", uint8(1))
	f.Add("aaaa aaab baaa", "aaaa", uint8(0))
	f.Add("これは機密です", "機密", uint8(0))
	f.Add("titan 프로젝트한강에서는 x", "프로젝트한강", uint8(1))
	f.Add("cafe\u0301 \u0301x", "café", uint8(1))
	f.Add("tixtan titann", "titan", uint8(1))
	f.Add("ſtraße ΣΊΣΥΦΟΣ", "straße", uint8(2))
	f.Fuzz(func(t *testing.T, text, phrase string, edits uint8) {
		set := Options{Name: "x", Any: []string{phrase}, Fuzzy: int(edits % 3)}
		if len(text) > 80 || len(phrase) > 40 || !utf8.ValidString(text) || !utf8.ValidString(phrase) || set.Validate() != nil {
			return
		}
		got := slices.Contains(match(build(t, set), user(text)), "x")
		if want := naive(text, phrase, set.Fuzzy, foldCase); got != want {
			t.Errorf("%q with %d edits in %q: %v, want %v", phrase, set.Fuzzy, text, got, want)
		}
	})
}

func TestFoldKeepsOneLetterOne(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if u := foldRune(r); foldRune(u) != u {
			t.Fatalf("%U folds to %U and that to %U", r, u, foldRune(u))
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	var words []string
	for a := 'a'; a <= 'z'; a++ {
		for c := 'a'; c <= 'z'; c++ {
			words = append(words, "project "+string(a)+string(c)+"x")
		}
	}
	text := user(strings.Repeat("The signal box stands beside the railway and sets the points. ", 16))
	for name, set := range map[string]Options{
		"676_phrases": {Name: "x", Any: words},
		"one_fuzzy":   {Name: "x", Any: []string{"project titan"}, Fuzzy: 1},
		"one_regex":   {Name: "x", Regex: `\bTT-\d{4}\b`},
	} {
		m := build(b, set)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text.LastUser)))
			b.ReportAllocs()
			for b.Loop() {
				match(m, text)
			}
		})
	}
}

// match is Match without an end.
func match(m *Matcher, text *signal.Text) []string {
	names, err := m.Match(context.Background(), text)
	if err != nil {
		panic(err)
	}
	return names
}

func TestNobodyWaitsForALongTextInVain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	text := user(strings.Repeat("word ", 1<<20))
	for name, o := range map[string]Options{
		"phrases":             {Name: "x", Any: []string{"titan"}},
		"a phrase with edits": {Name: "x", Any: []string{"titanium"}, Fuzzy: 1},
		"a pattern":           {Name: "x", Regex: "w[a-z]+ titan"},
	} {
		if names, err := build(t, o).Match(ctx, text); !errors.Is(err, context.Canceled) || names != nil {
			t.Errorf("%s: %v and error %v, want a cancellation", name, names, err)
		}
	}
}

func TestPhrasesArePutTogetherWherePartsMeet(t *testing.T) {
	sets := map[string]Options{
		"a phrase":                 {Name: "x", Any: []string{"project titan"}},
		"one of other length":      {Name: "x", Any: []string{"titan", strings.Repeat("long ", 15_000)}},
		"a phrase with edits":      {Name: "x", Any: []string{"project titan"}, Fuzzy: 1},
		"a pattern":                {Name: "x", Regex: `project\s+titan$`},
		"a pattern with a prefix":  {Name: "x", Regex: `project +titan\b`, CaseSensitive: true},
		"letters that are put one": {Name: "x", Any: []string{"caf\u00e9"}},
	}
	for name, o := range sets {
		m := build(t, o)
		for at := bytesPerLook - 20; at < bytesPerLook+3; at += 2 {
			text := strings.Repeat("a ", at/2) + strings.Repeat(" ", at%2) + "cafe\u0301 project   titan"
			if got := match(m, user(text)); len(got) != 1 {
				t.Errorf("%s at byte %d is not found", name, at)
			}
			if got := match(m, user(strings.ReplaceAll(text, "t", "tt"))); len(got) != 0 && name != "letters that are put one" && o.Fuzzy == 0 {
				t.Errorf("%s at byte %d is found where it is not", name, at)
			}
		}
	}
}

func TestAPatternIsQuotedAsItWasWritten(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"((", "a)(b"} {
		_, err := Options{Name: "k", Regex: pattern}.compile()
		if err == nil || !strings.Contains(err.Error(), "`"+pattern+"`") {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
