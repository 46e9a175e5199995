package proxy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
)

// parsed reads a chat request.
func parsed(tb testing.TB, body string) *openai.Request {
	tb.Helper()
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return req
}

// words is a text of n words that states something.
func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n-1)) + " end." }

func TestEvidenceComesFromWhereTheOptionsSay(t *testing.T) {
	t.Parallel()
	system, user := words(20), words(30)
	body := `{"model":"auto","signalbox":{"facts":["one",{"id":"b","text":"two"}]},` +
		`"documents":["plain",{"text":"body","title":"head","doc_id":7},7,{}],` +
		`"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"developer","content":"` + system + `"},` +
		`{"role":"user","content":"` + user + ` Is it 7 m high? So tell."},{"role":"assistant","content":"` + words(40) + `"},` +
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
			o := GuardOptions{ToolResults: tt.tools, Documents: tt.documents}
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
	req := parsed(t, `{"model":"auto","signalbox":{"facts":["one"]},"messages":[`+tool("a", 10)+","+tool("b", maxDocumentBytes-100)+","+tool("c", 90)+","+tool("d", 10)+`]}`)
	o := GuardOptions{ToolResults: true}
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

func TestCutEvidenceIsTold(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := watched(t, "observe", up, func(s *setup) {
		for i := range s.models {
			s.models[i].ContextWindow = 0
		}
	})
	long := `{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat("word ", maxDocumentBytes/5+1) + `"}`
	got := b.chat(guarded(`{"model":"auto","messages":[`+long+`,{"role":"user","content":"hi"}]}`, towerFact))
	if got.header.Get("X-Signalbox-Degraded") != "evidence,grounding" || got.header.Get("X-Signalbox-Guard") != "observe" {
		t.Errorf("degraded %q, guard %q", got.header.Get("X-Signalbox-Degraded"), got.header.Get("X-Signalbox-Guard"))
	}
}

func TestResultsOfToolsAreEvidenceForTheAnswer(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, towerBody()))
	b := watched(t, "annotate", up)
	got := b.chat(`{"model":"auto","messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"c","content":"The tower is 330 m high. It was opened in 1889."}]}`)
	s := hear(t, got.body).guard
	if got.header.Get("X-Signalbox-Guard") != "annotate" || s == nil || len(s.Failed) != 1 || s.Failed[0].Fact != "messages[1]" {
		t.Errorf("guard %q, summary %+v", got.header.Get("X-Signalbox-Guard"), s)
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
