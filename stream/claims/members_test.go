package claims_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/stream/claims"
)

// read returns the claims as they read, preceded by their kind if it is not prose.
func read(list []claims.Claim) []string {
	var out []string
	for _, c := range list {
		s := c.Says()
		if c.Kind != claims.Prose {
			s = c.Kind.String() + ":" + s
		}
		out = append(out, s)
	}
	return out
}

func TestJSONIsReadValueByValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{
			"sentences", `{"answer": "Refunds take 5 days. Returns are free.", "confidence": 0.92}`,
			[]string{"Refunds take 5 days.", "Returns are free."},
		},
		{
			"numbers and few words with the names of their members",
			`{"product": "Aurora lamp", "price": 49.90, "weightKg": -1.2e3, "deadline": "2026-03-01"}`,
			[]string{
				"value:product: Aurora lamp", "value:Aurora lamp: price: 49.90", "value:Aurora lamp: weight_kg: -1.2e3",
				"value:Aurora lamp: deadline: 2026-03-01",
			},
		},
		{
			"each object is called by its own name",
			`[{"plan": "Basic", "fee": 9}, {"plan": "Pro", "fee": 19, "limits": {"seats": 4}}, {"fee": 3}]`,
			[]string{
				"value:plan: Basic", "value:Basic: fee: 9", "value:plan: Pro", "value:Pro: fee: 19",
				"value:Pro: seats: 4", "value:fee: 3",
			},
		},
		{
			"lists", `{"days": [5, "10 days"], "notes": ["It is old.", "Paid within 30 days of the order, at the latest"]}`,
			[]string{"value:days: 5", "value:days: 10 days", "It is old.", "Paid within 30 days of the order, at the latest"},
		},
		{
			"words that stand for a value, and what tells of the answer, are no claims",
			`{"status": "confirmed", "label": "Refund policy", "currency": "EUR", "page": 12, "source_id": "a-17",
			  "meta": {"cost": 3, "of": ["It is 5 m."]}, "span": {"start": 7, "end": 9}, "ok": true, "next": null, "count": 3}`,
			[]string{"value:confirmed: count: 3"},
		},
		{
			"escapes", `{"text": "Z\u00fcrich is \"old\".\n- It has 5\u20ac \ud83d\ude00\n"}`,
			[]string{`Zürich is "old".`, "item:It has 5€ 😀"},
		},
		{
			"a block", "```json\n{\"answer\": \"It is 5 m.\"}\n```\nIt is tall. So.",
			[]string{"code:```json", "It is 5 m.", "code:```", "It is tall.", "So."},
		},
		{"a comma too much", `{"a": [1, 2,], "b": 3,}`, []string{"value:a: 1", "value:a: 2", "value:b: 3"}},
		{"text behind it", `["It is 5 m."] Yes. No.`, []string{"It is 5 m.", "Yes.", "No."}},
		{"no JSON", `{"It is 5 m." is} said. Yes.`, []string{"is} said.", "Yes."}},
		{"no JSON in a name", "{\"It is 5 m\nhigh. Yes.", []string{"\"It is 5 m\nhigh.", "Yes."}},
		{"a citation", "[1] It is. [2] So.", []string{"[1] It is.", "[2] So."}},
		{
			"a block of another kind", "```yaml\n{\"a\": \"It is.\"}\n```",
			[]string{"code:```yaml", `code:{"a": "It is."}`, "code:```"},
		},
		{
			"a block behind text", "So:\n```json\n{\"a\": 1}\n```",
			[]string{"So:", "code:```json", "value:a: 1", "code:```"},
		},
		{
			"an object in a quotation", "So:\n> {\n>   \"a\": 1,\n>\n> \"b\": [\"It is 5 m. So\"]\n> }\n> Yes.",
			[]string{"So:", "value:a: 1", "It is 5 m.", "So", "Yes."},
		},
		{
			"a block of tildes behind text", "So:\n\n1. It is:\n   ~~~~ JSON order\n   {\"a\": 1,\n   \"b\": " +
				"\"It is 5 m. So\"}\n   ~~~~\nYes. No.",
			[]string{"So:", "item:It is:", "code:~~~~ JSON order", "value:a: 1", "It is 5 m.", "So", "code:~~~~", "Yes.", "No."},
		},
		{
			"a block of tildes that ends before its JSON", "So:\n~~~json\n{\"a\": 1,\n~~~\nYes. No.",
			[]string{"So:", "code:~~~json", "value:a: 1", "code:~~~", "Yes.", "No."},
		},
		{
			"two blocks, one object a line", "So:\n```json\n{\"a\": 1}\n{\"a\": 2}\n```\nAnd:\n```go\n{\"a\": 3}\n```\n" +
				"```json\n[4, 5]\n```",
			[]string{
				"So:", "code:```json", "value:a: 1", "value:a: 2", "code:```", "And:", "code:```go", `code:{"a": 3}`, "code:```",
				"code:```json", "value:4", "value:5", "code:```",
			},
		},
		{
			"a block without a label", "So:\n```\n\n[{\"a\": 1}]\n```\nYes.",
			[]string{"So:", "code:```", "value:a: 1", "code:```", "Yes."},
		},
		{
			"code in a block without a label", "So:\n```\nx\n{\"a\": 1}\n```\n```\n[1, 2]\n```",
			[]string{"So:", "code:```", "code:x", `code:{"a": 1}`, "code:```", "code:```", "code:[1, 2]", "code:```"},
		},
		{
			"a comment in a block", "So:\n```json\n{\"a\": 1, // one\n \"b\": 2}\n```\nYes.",
			[]string{"So:", "code:```json", "value:a: 1", "code:// one", `code:"b": 2}`, "code:```", "Yes."},
		},
		{
			"no JSON in a block", "```json\n// 5 m\n{\"a\": 1}\n```",
			[]string{"code:```json", "code:// 5 m", `code:{"a": 1}`, "code:```"},
		},
		{
			"a block that ends before its JSON", "```json\n{\"a\": 1,\n  ```\nIt is tall. So.",
			[]string{"code:```json", "value:a: 1", "code:```", "It is tall.", "So."},
		},
		{
			"an empty block", "```json\n```\nIt is tall. So.",
			[]string{"code:```json", "code:```", "It is tall.", "So."},
		},
		{"nothing in it", `{}`, nil},
		{
			"behind text", "Here is the order:\n\n{\"item\": \"Lamp\", \"price\": 49.90}\n\nIt ships today. So.",
			[]string{"Here is the order:", "value:item: Lamp", "value:Lamp: price: 49.90", "It ships today.", "So."},
		},
		{
			"behind a colon in the line", `The order: {"item": "Lamp", "price": 49.90} as asked. Yes.`,
			[]string{"The order:", "value:item: Lamp", "value:Lamp: price: 49.90", "as asked.", "Yes."},
		},
		{
			"within a sentence", `The call {"price": 49.90} costs nothing. Yes.`,
			[]string{`The call {"price": 49.90} costs nothing.`, "Yes."},
		},
		{
			"one object a line", "{\"plan\": \"Basic\", \"fee\": 9}\n{\"plan\": \"Pro\", \"fee\": 19}\n",
			[]string{"value:plan: Basic", "value:Basic: fee: 9", "value:plan: Pro", "value:Pro: fee: 19"},
		},
		{
			"one object a line of a block", "```jsonl\n{\"fee\": 9}\n{\"fee\": 19},\n\n{\"fee\": 29}\n```\nSo. Yes.",
			[]string{
				"code:```jsonl", "value:fee: 9", "value:fee: 19", "code:,", "value:fee: 29", "code:```", "So.", "Yes.",
			},
		},
		{
			"a list of objects behind text", "So:\n[\n  {\"fee\": 9},\n  {\"fee\": 19}\n]",
			[]string{"So:", "value:fee: 9", "value:fee: 19"},
		},
		{"a set behind text", "So:\n{\"Basic\", \"Pro\"} is it.", []string{"So:", `{"Basic", "Pro"} is it.`}},
		{"a list of texts behind text", "So:\n[\"Basic\"](x) is it.", []string{"So:", `["Basic"](x) is it.`}},
		{"braces behind text", "So:\n{{ \"a\": 1 }} is it.", []string{"So:", `{{ "a": 1 }} is it.`}},
		{
			"a string without an end in a block", "```json\n{\"a\": \"It is 5 m.\n  ```\nIt is tall. So.",
			[]string{"code:```json", "It is 5 m.", "code:```", "It is tall.", "So."},
		},
		{
			"a line break in a string of a block", "```json\n{\"a\": \"It is 5 m.\n`b` is 6 m.\", \"c\": 7}\n```\nSo.",
			[]string{"code:```json", "It is 5 m.", "`b` is 6 m.", "value:c: 7", "code:```", "So."},
		},
		{
			"a string without an end that is no claim", "{\"source\": \"page 3\nIt is tall. So.",
			[]string{"It is tall.", "So."},
		},
		{
			"code in a string", `{"a": "Run:\n` + "```\\nx := 1\\n```" + `"}`,
			[]string{"Run:", "code:```", "code:x := 1", "code:```"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range []claims.Options{{Values: true}, {Values: true, Blocks: true}} {
				if diff := cmp.Diff(tt.want, read(split(t, o, tt.text))); diff != "" {
					t.Errorf("claims with %+v (-want +got):\n%s", o, diff)
				}
			}
		})
	}
}

// TestABlockOfJSONIsFramed checks that the text before a block decides whether it is an example.
func TestABlockOfJSONIsFramed(t *testing.T) {
	t.Parallel()
	const block = "```json\n{\"a\": 1}\n```"
	for text, want := range map[string]claims.Frame{
		block:                                claims.NoFrame,
		"So: {\"a\": 1}":                     claims.NoFrame,
		"So:\n" + block:                      claims.Shown,
		"Here is the record:\n\n" + block:    claims.Shown,
		block + "\n" + block:                 claims.Shown,
		"For example:\n" + block:             claims.Example,
		"Then set the port:\n" + block:       claims.Example,
		"Your `app.json`:\n" + block:         claims.Example,
		"## Beispiel\n\n" + block:            claims.Example,
		"The set, for one, is:\n" + block:    claims.Shown,
		"Add it. The result is:\n" + block:   claims.Shown,
		"So:\n```json\n{\"args\": [1]}\n```": claims.Example,
	} {
		list := split(t, claims.Options{Values: true}, text)
		got := claims.NoFrame
		for _, c := range list {
			if c.Kind == claims.Value {
				got = c.Frame
			}
		}
		if got != want {
			t.Errorf("%q has frame %v, want %v", text, got, want)
		}
	}
}

// jsonPieces are the parts of random JSON texts.
var jsonPieces = []string{
	`{"a": `, `{`, `}`, `[`, `]`, `,`, `: `, `"`, `"b": `,
	`"It is 5 m. So it is.", `, `"5 m"`, `49.90`, `-1e3,`, `true`, `\n`, `\"`, `\u00e9`,
	`\ud83d\ude00`, `\ud83d`, `\u12`, `\`, "\n", " ", "é", "\xff", "\xe5", "\"confidence\": ", "0.9, ",
	"The tower is tall. ", "塔高。", "word ",
	"```json\n", "\n```\n", "\n```", "\n```\n\n{", "\n~~~~json\n", "\n> ", "\n> {\n> ", "\n~~~~\n",
	"For example:\n", "\n{\"a\": 1}\n", "So: ",
	`{"a": "`, `{"a": ["`, "abcdefghij", strings.Repeat("x", 300),
}

func TestPiecesNeverChangeTheClaimsOfJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		begin := rapid.SampledFrom([]string{`{"a": "`, `{"a": `, `[{"b": `, "```json\n{\"a\": ", ""}).Draw(t, "begin")
		text := begin + strings.Join(rapid.SliceOfN(rapid.SampledFrom(jsonPieces), 0, 40).Draw(t, "text"), "")
		s, err := claims.New(claims.Options{MaxWords: 12, Stride: 8, MaxBytes: 256, Values: true, Blocks: true})
		if err != nil {
			t.Fatal(err)
		}
		want := append([]claims.Claim(nil), s.Feed(text)...)
		want = append(want, s.Flush()...)
		last := 0
		for _, c := range want {
			if c.Bytes.Start < last || text[c.Bytes.Start:c.Bytes.End] != c.Text {
				t.Fatalf("claim %q at %v, where %q stands", c.Text, c.Bytes, text[c.Bytes.Start:c.Bytes.End])
			}
			last = c.Bytes.Start
			n := utf8.RuneCountInString(text[:c.Bytes.Start])
			if n != c.Runes.Start || n+utf8.RuneCountInString(c.Text) != c.Runes.End {
				t.Fatalf("claim %q at runes %v, want %d", c.Text, c.Runes, n)
			}
			all := claims.Span{End: utf8.RuneCountInString(c.Says()[c.Lead:])}
			if raw := c.Raw(all); raw.Start != 0 || raw.End != utf8.RuneCountInString(c.Text) {
				t.Fatalf("%q of %q is at %v", c.Says(), c.Text, raw)
			}
		}
		checkChunks(t, s, text, want, func(int) int { return 1 })
		checkChunks(t, s, text, want, func(int) int { return rapid.IntRange(1, 9).Draw(t, "piece") })
	})
}

func TestManyEscapesAreReadInTheirPlaces(t *testing.T) {
	t.Parallel()
	text := `{"a": "` + strings.Repeat(`\u00e9\"`, 4000) + strings.Repeat(`Gr\u00fcn is old. `, 4000) + `"}`
	for _, c := range split(t, claims.Options{Values: true}, text) {
		if text[c.Bytes.Start:c.Bytes.End] != c.Text || utf8.RuneCountInString(text[:c.Bytes.Start]) != c.Runes.Start {
			t.Fatalf("claim %q at %v, where %q stands", c.Text, c.Bytes, text[c.Bytes.Start:c.Bytes.End])
		}
	}
}

func TestAPlaceInWhatIsReadIsOneOfTheText(t *testing.T) {
	t.Parallel()
	list := split(t, claims.Options{Values: true}, `{"a": "Z\u00fcrich has 5 m.", "b": "\u00e9 6", "c": 7}`)
	for i, want := range []string{"5", "6", "7"} {
		c := &list[i]
		said := c.Says()[c.Lead:]
		before, _, _ := strings.Cut(said, want)
		at := utf8.RuneCountInString(before)
		raw := c.Raw(claims.Span{Start: at, End: at + 1})
		if got := string([]rune(c.Text)[raw.Start:raw.End]); got != want {
			t.Errorf("%q of %q is %q at %v, want %q", said, c.Text, got, raw, want)
		}
	}
}

// TestABrokenEscapeIsInItsPlace checks that a backslash before an invalid byte is an escape of that
// byte.
func TestABrokenEscapeIsInItsPlace(t *testing.T) {
	t.Parallel()
	c := split(t, claims.Options{Values: true}, "{\"a\": \"\\\xe5\"}")[0]
	if raw := c.Raw(claims.Span{End: 1}); raw != (claims.Span{End: 2}) {
		t.Errorf("%q of %q is at %v", c.Says(), c.Text, raw)
	}
}

func TestJSONAllocatesOnlyForClaims(t *testing.T) {
	s := splitter(t, claims.Options{Values: true, Blocks: true})
	s.Feed(`{"a": "The tower is 330 metres tall. It is \"old\". "}`)
	s.Flush()
	deltas := []string{"The tower ", "in Z\\u0", "0fcrich is ", "\\\"about\\\" three hundred ", "metres tall"}
	if n := testing.AllocsPerRun(200, func() {
		s.Reset()
		s.Feed(`{"`)
		for _, d := range deltas {
			s.Feed(d)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a name without an end, want 0", n)
	}
	if n := testing.AllocsPerRun(200, func() {
		s.Reset()
		s.Feed(`["`)
		for _, d := range deltas {
			s.Feed(d)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a string without a boundary, want 0", n)
	}
}
