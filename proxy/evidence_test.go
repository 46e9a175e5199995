package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/guardrail"
)

func TestCutEvidenceIsTold(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := watched(t, "observe", up, func(s *setup) {
		for i := range s.models {
			s.models[i].ContextWindow = 0
		}
	})
	long := `{"role":"tool","tool_call_id":"c","content":"` + strings.Repeat("word ", guardrail.MaxDocumentBytes/5+1) + `"}`
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
