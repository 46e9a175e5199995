package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/memory/outcomes"
	"signalbox/proxy/decide"
)

// judgements returns the outcomes in a store, as source, score and weight, by request.
func judgements(t *testing.T, s *outcomes.Store) map[string]string {
	t.Helper()
	var b bytes.Buffer
	if err := s.Export(&b, ""); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(b.String()) {
		var o outcomes.Outcome
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		out[o.ID] = fmt.Sprint(o.Tenant, " ", o.Source, " ", o.Score, " ", o.Weight)
	}
	return out
}

// signChat returns a chat of turns, the user's first; more holds the other members.
func signChat(more string, turns ...string) string {
	var ms []string
	for i, text := range turns {
		if strings.HasPrefix(text, "{") {
			ms = append(ms, text)
			continue
		}
		ms = append(ms, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], text))
	}
	return `{"model":"auto",` + more + `"messages":[` + strings.Join(ms, ",") + `]}`
}

const cutCompletion = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"and so"},"finish_reason":"length"}],` +
	`"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`

func TestSignsBecomeOutcomesOfTheAnswerBefore(t *testing.T) {
	t.Parallel()
	const q, answer = onTaxes, "as follows"
	broken := `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",` +
		`"function":{"name":"f","arguments":"{\"a\":"}}]}`
	result := `{"role":"tool","tool_call_id":"1","content":"what?"}`
	for name, c := range map[string]struct {
		first, second string
		Response      string
		opened        bool   // q was answered before
		want          string // of the first answer; empty for none
	}{
		"goes on":           {signChat("", q), signChat("", q, answer, "and then?"), "", false, "default continued 1 0.1"},
		"regenerated":       {signChat("", q, answer, "and then?"), signChat("", q, answer, "and then?"), "", true, "default regenerated 0 0.3"},
		"edited":            {signChat("", q, answer, "and then?"), signChat("", q, answer, "and now?"), "", true, "default edited 0 0.15"},
		"examples in front": {signChat("", q, answer, "one?"), signChat("", q, answer, "another?"), "", false, ""},
		"a broken call":     {signChat("", q), signChat("", q, broken, result), "", false, "default tool_call 0 0.5"},
		"cut":               {signChat("", q), signChat("", onPoems), cutCompletion, false, "default length 0 0.2"},
		"cut as asked for":  {signChat(`"max_tokens":2,`, q), signChat("", onPoems), cutCompletion, false, ""},
		"thumbs down":       {signChat("", q), signChat(`"metadata":{"feedback":"down"},`, q, answer, "no"), "", false, "default metadata 0 1"},
		"thumbs up":         {signChat("", q), signChat(`"metadata":{"feedback":"up"},`, q, answer, "yes"), "", false, "default metadata 1 1"},
		"other metadata":    {signChat("", q), signChat(`"metadata":{"feedback":"soon"},`, onPoems), "", false, ""},
		"an answer unasked": {signChat("", q), signChat("", onPoems), "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := decide.DefaultSignOptions()
			b, s := learns(t, func(x *setup) {
				x.signs = &all
				if c.Response != "" {
					up := testkit.NewUpstream(t, testkit.JSON(200, c.Response))
					x.models = oneModel(up)
				}
			})
			if c.opened {
				b.chat(signChat("", q))
			}
			first := b.chat(c.first)
			b.chat(c.second)
			if got := judgements(t, s)[first.header.Get("X-Request-Id")]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A response in which the guard finds a failed claim gets a bad rating, streamed or not; a true one
// gets none.
func TestAClaimThatTheGuardActsOnIsASign(t *testing.T) {
	t.Parallel()
	plain := testkit.JSON(200, towerBody())
	streamed := testkit.Stream(towerStream(towerTrue, towerFalse, towerRest)...)
	honest := testkit.JSON(200, strings.Replace(testkit.Completion, "hello", towerTrue, 1))
	for name, c := range map[string]struct {
		answer testkit.Answer
		body   string
		weight float64
		want   string
	}{
		"whole":      {plain, signChat("", onTaxes), 0.3, "default guard 0 0.3"},
		"streamed":   {streamed, signChat(`"stream":true,`, onTaxes), 0.3, "default guard 0 0.3"},
		"true":       {honest, signChat("", onTaxes), 0.3, ""},
		"turned off": {plain, signChat("", onTaxes), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := decide.DefaultSignOptions()
			all.Guard = c.weight
			b, s := learns(t, func(x *setup) {
				x.signs = &all
				x.guard.Mode = "annotate"
				x.models = oneModel(testkit.NewUpstream(t, c.answer))
			})
			a := b.chat(guarded(c.body, towerFact))
			if got := judgements(t, s)[a.header.Get("X-Request-Id")]; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Two requests with the same text and different images are not retries of each other.
func TestImagesTellTurnsApart(t *testing.T) {
	t.Parallel()
	all := decide.DefaultSignOptions()
	b, s := learns(t, func(x *setup) { x.signs = &all })
	ids := make([]string, 0, 2)
	for _, image := range []string{"AAAA", "BBBB"} {
		seen := `{"role":"user","content":[{"type":"text","text":"` + onTaxes + `"},` +
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + image + `"}}]}`
		got := b.chat(signChat(`"signalbox":{"session":"s"},`, seen))
		ids = append(ids, got.header.Get("X-Request-Id"))
	}
	if got := judgements(t, s)[ids[0]]; got != "" {
		t.Error(got)
	}
}

func TestSignsAreOffWithoutTheWord(t *testing.T) {
	t.Parallel()
	none := decide.SignOptions{}
	for name, change := range map[string]func(*setup){
		"learn: feedback":   func(*setup) {},
		"every weight at 0": func(x *setup) { x.signs = &none },
	} {
		b, s := learns(t, change)
		b.chat(signChat("", onTaxes))
		b.chat(signChat(`"metadata":{"feedback":"down"},`, onTaxes, "as follows", "and then?"))
		if got := judgements(t, s); len(got) != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestFeedbackStandsAboveSigns(t *testing.T) {
	t.Parallel()
	all := decide.DefaultSignOptions()
	b, s := learns(t, func(x *setup) { x.signs = &all })
	id := b.chat(signChat("", onTaxes)).header.Get("X-Request-Id")
	if got := b.judge(id, 0.7); got.status != http.StatusOK {
		t.Fatal(got.body)
	}
	b.chat(signChat("", onTaxes, "as follows", "and then?"))
	if got := judgements(t, s)[id]; got != "default feedback 0.7 1" {
		t.Error(got)
	}
}

func TestMetadataNameAnAnswerOfTheTenantAlone(t *testing.T) {
	t.Parallel()
	all := decide.DefaultSignOptions()
	b, s := learns(t, func(x *setup) { x.signs = &all })
	id := b.chat(signChat("", onTaxes)).header.Get("X-Request-Id")
	b.chat(signChat(`"metadata":{"feedback":"up","feedback_request_id":"`+id+`"},`, onPoems))
	if got := judgements(t, s)[id]; got != "default metadata 1 1" {
		t.Error(got)
	}
	if _, err := s.Judge("other", id, 0, 1, "", "x"); err == nil {
		t.Error("another tenant judged it")
	}
}
