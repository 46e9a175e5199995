package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/proxy/auth"
	"signalbox/proxy/guardrail"
)

const verifyPath = "/signalbox/v1/verify"

func TestATextIsVerifiedClaimByClaim(t *testing.T) {
	t.Parallel()
	b := watched(t, "off", testkit.NewUpstream(t, testkit.Silent()))
	for name, tt := range map[string]struct {
		body string
		want guardrail.Verdict
	}{
		"facts of every form": {
			`{"facts":["The tower is 330 m high.",{"id":"opened","text":"The tower was opened in 1889.","kind":"date"}],"question":"?","answer":"Schön, ja! The tower is 330 m high. The tower was opened in 1925."}`,
			guardrail.Verdict{Verdict: "unsupported", Claims: []guardrail.VerdictClaim{
				{Text: "Schön, ja!", End: 10, Verdict: "not_checkable"},
				{Text: "The tower is 330 m high.", Start: 11, End: 35, Verdict: "supported", Fact: 0.0},
				{Text: "The tower was opened in 1925.", Start: 36, End: 65, Verdict: "contradicted", Span: []int{24, 28}, Fact: "opened"},
			}},
		},
		"one fact": {
			`{"facts":"The tower is 330 m high.","answer":"The tower is 330 m high."}`,
			guardrail.Verdict{Verdict: "supported", Claims: []guardrail.VerdictClaim{{Text: "The tower is 330 m high.", End: 24, Verdict: "supported", Fact: 0.0}}},
		},
		"no facts": {
			`{"facts":[],"answer":"The tower is 330 m high.","question":null}`,
			guardrail.Verdict{Verdict: "unchecked", Claims: []guardrail.VerdictClaim{{Text: "The tower is 330 m high.", End: 24, Verdict: "unchecked"}}},
		},
		"nothing to check": {
			`{"facts":["The tower is 330 m high."],"answer":"Hello there."}`,
			guardrail.Verdict{Verdict: "unchecked", Claims: []guardrail.VerdictClaim{{Text: "Hello there.", End: 12, Verdict: "not_checkable"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := b.post(verifyPath, tt.body)
			var got guardrail.Verdict
			if err := json.Unmarshal([]byte(res.body), &got); err != nil || res.status != 200 {
				t.Fatalf("status %d, %v: %s", res.status, err, res.body)
			}
			for i := range got.Claims {
				if s := got.Claims[i].Score; s < 0 || s > 1 {
					t.Errorf("score %v", s)
				}
				got.Claims[i].Score = 0
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if res.header.Get("X-Signalbox-Degraded") != "grounding" {
				t.Errorf("degraded %q without a model", res.header.Get("X-Signalbox-Degraded"))
			}
		})
	}
}

func TestWhatCannotBeVerifiedNamesItsField(t *testing.T) {
	t.Parallel()
	b := watched(t, "off", testkit.NewUpstream(t, testkit.Silent()))
	long := strings.Repeat("a ", 40<<10)
	for name, tt := range map[string]struct {
		body, param string
		status      int
	}{
		"no JSON":               {`facts`, "", 400},
		"a list":                {`[]`, "", 400},
		"something behind it":   {`{"facts":"a","answer":"b"} x`, "", 400},
		"no facts":              {`{"answer":"b"}`, "facts", 400},
		"facts are a number":    {`{"facts":7,"answer":"b"}`, "facts", 400},
		"a fact is a number":    {`{"facts":["a",7],"answer":"b"}`, "facts[1]", 400},
		"a fact is empty":       {`{"facts":["a"," "],"answer":"b"}`, "facts[1].text", 400},
		"a fact without a text": {`{"facts":[{"id":"x"}],"answer":"b"}`, "facts[0].text", 400},
		"a text is a number":    {`{"facts":[{"text":7}],"answer":"b"}`, "facts[0].text", 400},
		"an unknown member":     {`{"facts":[{"text":"a","url":"b"}],"answer":"b"}`, "facts[0].url", 400},
		"an unknown field":      {`{"facts":["a"],"answer":"b","context":"ctx_a"}`, "context", 400},
		"another case":          {`{"Facts":["a"],"answer":"b"}`, "Facts", 400},
		"a field twice":         {`{"facts":["a"],"answer":"b","answer":"c"}`, "answer", 400},
		"no answer":             {`{"facts":["a"]}`, "answer", 400},
		"answer is a list":      {`{"facts":["a"],"answer":["b"]}`, "answer", 400},
		"broken UTF-8":          {"{\"facts\":[\"a\"],\"answer\":\"\xff\"}", "answer", 400},
		"too many facts":        {`{"facts":["a"` + strings.Repeat(`,"a"`, 512) + `],"answer":"b"}`, "facts", 400},
		"too much in facts":     {`{"facts":["` + long + `"],"answer":"b"}`, "facts", 413},
		"too long an answer":    {`{"facts":["a"],"answer":"` + long + `"}`, "answer", 413},
		"too long a question":   {`{"facts":["a"],"answer":"b","question":"` + long + `"}`, "question", 413},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := b.post(verifyPath, tt.body)
			if got.status != tt.status {
				t.Fatalf("status %d: %.300s", got.status, got.body)
			}
			param := ""
			if p := got.error(t).Param; p != nil {
				param = *p
			}
			if param != tt.param {
				t.Errorf("param %q, want %q: %s", param, tt.param, got.body)
			}
		})
	}
}

func TestAnUnknownFieldOfAVerifiedTextIsToldTheOnesThereAre(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"facts":["a"],"anwser":"b"}`:                   `anwser is unknown, did you mean "answer"? the body must be an object with`,
		`{"contexts":"ctx_a","answer":"b"}`:              `contexts is unknown, did you mean "context"? `,
		`{"facts":["a"],"answer":"b","temperature":1}`:   `temperature is unknown; the body`,
		`{"facts":[{"text":"a","txet":1}],"answer":"b"}`: `facts[0].txet is unknown; the body`,
		`[]`: `the body must be an object with facts`,
	} {
		_, err := guardrail.ParseVerify([]byte(body))
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			!strings.Contains(err.Error(), "or context, a pointer") {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}

func TestEveryKnownCallerMayVerify(t *testing.T) {
	t.Parallel()
	b := watched(t, "off", testkit.NewUpstream(t, testkit.Silent()), func(s *setup) {
		s.auth = auth.Options{
			Mode: auth.ModeKeys, AdminRoles: []string{"admin"}, DefaultRole: "user", DefaultTenant: "default",
			Keys: []auth.KeyOptions{{Name: "app", SHA256: "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae", Tenant: "t", Role: "user"}},
		}
	})
	const body = `{"facts":["a"],"answer":"b"}`
	if got := b.post(verifyPath, body, "Authorization", "Bearer foo"); got.status != 200 {
		t.Errorf("a user gets %d: %s", got.status, got.body)
	}
	if got := b.post(verifyPath, body); got.status != 401 {
		t.Errorf("without a key: %d: %s", got.status, got.body)
	}
}

func FuzzReadVerify(f *testing.F) {
	for _, s := range []string{`{"facts":"a","answer":"b"}`, `{"facts":[{"id":"x","text":"a"},"b"],"question":"?","answer":"b"}`, `{"facts":[7]}`, `{"a~1b":1}`, `{"facts":{"text":null}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := guardrail.ParseVerify(body)
		if err != nil {
			return
		}
		if in.Answer == "" || in.Facts == nil || len(*in.Facts) > guardrail.MaxVerifyFacts {
			t.Errorf("accepted %q as %+v", body, in)
		}
	})
}

// The cost of one text is limited: further claims are unchecked and say why.
func TestAClaimThatIsNotReadSaysWhy(t *testing.T) {
	t.Parallel()
	b := watched(t, "off", testkit.NewUpstream(t, testkit.Silent()), judged(t, sayingJudge{}, ""))
	var answer strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&answer, "Ann met Bo%d in Paris. ", i)
	}
	res := b.post(verifyPath, `{"facts":["Ann met Bo in Paris."],"answer":"`+answer.String()+`"}`)
	var got guardrail.Verdict
	if err := json.Unmarshal([]byte(res.body), &got); err != nil || res.status != 200 || len(got.Claims) < 100 {
		t.Fatalf("status %d, %v: %.300s", res.status, err, res.body)
	}
	if c := got.Claims[0]; c.Reason != "" {
		t.Errorf("the first claim: %+v", c)
	}
	if c := got.Claims[len(got.Claims)-1]; c.Verdict != "unchecked" || c.Reason != "more claims than are read of one text" {
		t.Errorf("the last claim: %+v", c)
	}
}
