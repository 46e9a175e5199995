package proxy

import (
	"context"
	"strings"
	"testing"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/testkit"
	"signalbox/stream/check"
)

func TestAClaimThatFailsIsASign(t *testing.T) {
	t.Parallel()
	body := strings.Replace(testkit.Completion, `"hello"`, `"`+towerTrue+`"`, 1)
	for _, stream := range []string{"", `"stream":true,`} {
		small, big := testkit.JSON(200, towerBody()), testkit.JSON(200, body)
		if stream != "" {
			small, big = testkit.Stream(
				towerStream(towerTrue, towerFalse, towerRest)...), testkit.Stream(
				towerStream(towerTrue)...)
		}
		p := escalating(t, "{when: guard}", small, big, func(s *setup) { s.guard.Mode = "observe" })
		p.chat(guarded(strings.Replace(ask("How tall is the tower?"), "{", "{"+stream, 1), towerFact)).
			ends(t, "escalated guard small big", "tower")
		p.chat(strings.Replace(ask("no facts"), "{", "{"+stream, 1)).ends(t, "unread guard  small", "1925")
	}
}

// stuckJudge judges nothing in time.
type stuckJudge struct{}

func (stuckJudge) Judge(ctx context.Context, _ []check.Pair) ([]check.Inference, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A response that the guard should have judged and has not is not reported as good.
func TestAnAnswerThatTheGuardHasNotReadIsUnread(t *testing.T) {
	t.Parallel()
	good := testkit.JSON(200, strings.Replace(testkit.Completion, `"hello"`, `"The tower stands in Paris."`, 1))
	const place = `"facts":["Paris is the city where one finds the tower."]`
	const unread = "unread guard  small"
	asked, facts := ask("How tall?"), guarded(ask("How tall?"), place)
	for name, tt := range map[string]struct {
		how, body, want string
		fail            bool
	}{
		"judged and good":              {"{when: guard}", facts, "kept   small", false},
		"nothing to check it against":  {"{when: guard}", asked, unread, false},
		"and no other sign":            {"{when: [length, guard]}", asked, unread, false},
		"the guard is not looked for":  {"{when: length}", asked, "kept   small", false},
		"a claim that nobody got to":   {"{when: guard}", facts, unread, true},
		"and other signs were read":    {"{when: [length, guard]}", facts, unread, true},
		"a claim nobody was to get to": {"{when: length}", facts, "kept   small", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := escalating(t, tt.how, good, good, func(s *setup) {
				s.guard.Mode, s.guard.MaxHold = "observe", option.Duration(time.Minute)
				if judged(t, sayingJudge{}, "")(s); tt.fail {
					judged(t, stuckJudge{}, "")(s)
					s.guard.MaxHold = option.Duration(time.Millisecond)
				}
			})
			p.chat(tt.body).ends(t, tt.want, "tower")
		})
	}
}

// Servers send more in a stream than its text, including log-probabilities that the route requests.
func TestAClaimThatFailsIsASignWhateverElseIsTold(t *testing.T) {
	t.Parallel()
	small := towerStream(towerTrue, towerFalse, towerRest)
	for i := range small {
		small[i] = strings.Replace(small[i], `"delta"`,
			`"logprobs":{"content":[{"token":"x","logprob":-0.1,"bytes":null,"top_logprobs":[]}]},"matched_stop":2,"delta"`, 1)
	}
	p := escalating(t, "{when: guard, min_logprob: -1}", testkit.Stream(small...),
		testkit.Stream(towerStream(towerTrue)...), func(s *setup) { s.guard.Mode = "observe" })
	p.chat(guarded(askStream("How tall is the tower?"), towerFact)).ends(t, "escalated guard small big", "tower")
}
