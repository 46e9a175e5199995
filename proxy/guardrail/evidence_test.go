package guardrail

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/stream/evidence"
)

func TestOnlyAFormOfTheAPIKeepsMarkersOut(t *testing.T) {
	t.Parallel()
	chat := func(more string) string {
		return `{"model":"m","messages":[{"role":"user","content":"hi"}],` + more + `}`
	}
	completion := func(more string) string { return `{"model":"m","prompt":"hi",` + more + `}` }
	response := func(more string) string { return `{"model":"m","input":"hi",` + more + `}` }
	for _, tt := range []struct {
		api  openai.API
		body string
		want bool
	}{
		{openai.Chat, chat(`"response_format":{"type":"json_object"}`), true},
		{openai.Chat, chat(`"response_format":{"type":"json_schema","json_schema":{}}`), true},
		{openai.Chat, chat(`"response_format":{"type":"structural_tag","structures":[]}`), true},
		{openai.Chat, chat(`"response_format":{"type":"text"}`), false},
		{openai.Chat, chat(`"response_format":{"type":"x"}`), false},
		{openai.Chat, chat(`"response_format":{"type":7}`), false},
		{openai.Chat, chat(`"response_format":"json_object"`), false},
		{openai.Chat, chat(`"text":{"format":{"type":"json_object"}}`), false},
		{openai.Chat, chat(`"guided_regex":"a+"`), true},
		{openai.Chat, chat(`"guided_regex":""`), false},
		{openai.Chat, chat(`"guided_regex":["a"]`), false},
		{openai.Chat, chat(`"guided_choice":["a"]`), true},
		{openai.Chat, chat(`"guided_choice":[]`), false},
		{openai.Chat, chat(`"guided_json":{"type":"object"}`), true},
		{openai.Chat, chat(`"guided_json":{}`), false},
		{openai.Chat, chat(`"guided_json":null`), false},
		{openai.Chat, chat(`"structured_outputs":{"regex":"a+"}`), true},
		{openai.Chat, chat(`"structured_outputs":{"json_object":true}`), true},
		{openai.Chat, chat(`"structured_outputs":{"json_object":false}`), false},
		{openai.Chat, chat(`"structured_outputs":{"x":"a"}`), false},
		{openai.Chat, chat(`"structured_outputs":[1]`), false},
		{openai.Completion, completion(`"response_format":{"type":"json_object"}`), true},
		{openai.Response, response(`"text":{"format":{"type":"json_schema","schema":{}}}`), true},
		{openai.Response, response(`"text":{"format":{"type":"text"}}`), false},
		{openai.Response, response(`"response_format":{"type":"json_object"}`), false},
		{openai.Response, response(`"guided_regex":"a+"`), false},
	} {
		req, err := openai.Parse(tt.api, []byte(tt.body), openai.Limits{})
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
		} else if got := formed(req); got != tt.want {
			t.Errorf("%s: formed %v", tt.body, got)
		}
	}
}

func TestOfALongSourceTheEndIsRead(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { // of 16 bytes
		var out strings.Builder
		for i := range n {
			out.WriteString("row " + strconv.Itoa(1e10+i) + "\n")
		}
		return out.String()
	}
	long := lines(MaxDocumentBytes / 16 * 2)
	for name, tt := range map[string]struct {
		texts []string
		want  []int // bytes kept of each
	}{
		"alone":                     {[]string{long}, []int{MaxDocumentBytes - 16}},
		"behind a short one":        {[]string{lines(10), long}, []int{160, MaxDocumentBytes - 160 - 16}},
		"before a short one":        {[]string{long, lines(10)}, []int{MaxDocumentBytes - 160 - 16, 160}},
		"behind another long one":   {[]string{long, long}, []int{MaxDocumentBytes/4 + 16 - 16, MaxDocumentBytes*3/4 - 16}},
		"one word":                  {[]string{strings.Repeat("7", MaxDocumentBytes+1)}, []int{0}},
		"with no room for its part": {[]string{lines(2000), lines(MaxDocumentBytes/16 - 10)}, []int{0, MaxDocumentBytes - 160}},
	} {
		g := &grounds{}
		var texts []found
		for _, text := range tt.texts {
			texts = append(texts, found{Source: evidence.Source{Text: text}})
		}
		g.fit(texts)
		var want []string
		for i, n := range tt.want {
			if text := tt.texts[i]; n > 0 {
				want = append(want, text[len(text)-n:])
			}
		}
		if len(g.sources) != len(want) || !g.cut {
			t.Fatalf("%s: %d sources, cut %v", name, len(g.sources), g.cut)
		}
		for i, s := range g.sources {
			if s.Text != want[i] {
				t.Errorf("%s: source %d has %d bytes, want %d", name, i, len(s.Text), len(want[i]))
			}
		}
	}
}

func TestEvidenceComesFromWhereTheOptionsSay(t *testing.T) {
	t.Parallel()
	system, user := statement(20), statement(30)
	body := `{"model":"auto","signalbox":{"facts":["one",{"id":"b","text":"two"}]},` +
		`"documents":["plain",{"text":"body","title":"head","doc_id":7},7,{}],` +
		`"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"developer","content":"` + system + `"},` +
		`{"role":"user","content":"` + user + ` Is it 7 m high? So tell."},{"role":"assistant","content":"` + statement(40) + `"},` +
		`{"role":"tool","tool_call_id":"c","content":"result"},{"role":"tool","tool_call_id":"d","content":" "},` +
		`{"role":"user","content":"這座塔高三百三十公尺，建於一八八九年，位於巴黎市中心，每年都有很多人來看。"},{"role":"user","content":"How high is it?"}]}`
	req := parsed(t, body)
	facts := []evidence.Source{{Text: "one", Fact: true}, {ID: "b", Text: "two", Fact: true}}
	tool := evidence.Source{ID: "messages[4]", Text: "result"}
	for name, tt := range map[string]struct {
		tools, documents bool
		want             []evidence.Source
		counts           Evidence
	}{
		"facts alone":      {false, false, facts, Evidence{Facts: 2}},
		"results of tools": {true, false, append(facts[:2:2], tool), Evidence{Facts: 2, ToolResults: 1}},
		"everything": {true, true, append(
			facts[:2:2], evidence.Source{ID: "documents[0]", Text: "plain"}, evidence.Source{ID: "documents[1]", Text: "head\nbody\n"},
			evidence.Source{ID: "messages[1]", Text: system}, evidence.Source{ID: "messages[2]", Text: user + " So tell."}, tool,
			evidence.Source{ID: "messages[6]", Text: "這座塔高三百三十公尺，建於一八八九年，位於巴黎市中心，每年都有很多人來看。"},
		), Evidence{Facts: 2, ToolResults: 1, Documents: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{ToolResults: tt.tools, Documents: tt.documents}
			g := o.gather(req, nil)
			if diff := cmp.Diff(tt.want, g.sources); diff != "" {
				t.Errorf("sources (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tt.counts, g.counts()); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
			if e, err := g.prepare(t.Context()); err != nil || e.Empty() {
				t.Errorf("prepared: %v", err)
			}
		})
	}
	if got := question(req); got != "How high is it?" {
		t.Errorf("question %q", got)
	}
}

func TestOfTooMuchEvidenceTheLatestIsRead(t *testing.T) {
	t.Parallel()
	tool := func(c string, n int) string {
		return `{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat(c, n) + `"}`
	}
	req := parsed(t, `{"model":"auto","signalbox":{"facts":["one"]},"messages":[`+tool("a", 10)+","+tool("b", MaxDocumentBytes-100)+","+tool("c", 90)+","+tool("d", 10)+`]}`)
	o := Options{ToolResults: true}
	g := o.gather(req, nil)
	var got []string
	for _, s := range g.sources {
		got = append(got, s.Text[:1])
	}
	if diff := cmp.Diff([]string{"o", "b", "c", "d"}, got); diff != "" || !g.cut || !g.counts().Cut {
		t.Errorf("cut %v, sources (-want +got):\n%s", g.cut, diff)
	}
	if _, err := g.prepare(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestQuestionsAreNoEvidence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"A fact. Another one.":      "A fact. Another one.",
		"Is it so?":                 "",
		"A fact. Is it so? And so.": "A fact. And so.",
		"A fact.\nIs it so\nor so?": "A fact.\nIs it so\n",
		"事实。是这样吗？是的。":               "事实。是的。",
	} {
		if got := withoutQuestions(in); got != want {
			t.Errorf("%q leaves %q, want %q", in, got, want)
		}
	}
}

// parsed parses a chat request.
func parsed(tb testing.TB, body string) *openai.Request {
	tb.Helper()
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

// statement returns a text of n words that states something.
func statement(n int) string { return strings.TrimSpace(strings.Repeat("word ", n-1)) + " end." }
