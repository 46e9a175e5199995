package signs_test

import (
	"fmt"
	"testing"
	"time"

	"signalbox/memory/outcomes/signs"
)

func say(texts ...string) []signs.Message {
	out := make([]signs.Message, len(texts))
	for i, t := range texts {
		out[i] = signs.Message{Role: []string{"user", "assistant"}[i%2], Text: t}
	}
	return out
}

func TestWhatATurnSaysOfTheAnswerBefore(t *testing.T) {
	t.Parallel()
	broken := say("q", "", "and?")
	broken[1].Broken = true
	for name, c := range map[string]struct {
		first, second signs.Turn
		after         time.Duration
		want          signs.Sign
	}{
		"goes on":                      {signs.Turn{Messages: say("q")}, signs.Turn{Messages: say("q", "a", "and?")}, 0, signs.Continued},
		"after another answer":         {signs.Turn{Messages: say("q")}, signs.Turn{Messages: say("x", "a", "and?")}, 0, ""},
		"an example, and the same":     {signs.Turn{Messages: say("q", "a", "and?")}, signs.Turn{Messages: say("q", "a", "and?")}, 0, ""},
		"an example, and another":      {signs.Turn{Messages: say("q", "a", "and?")}, signs.Turn{Messages: say("q", "a", "what then?")}, 0, ""},
		"an example of a session":      {signs.Turn{Session: "s", Messages: say("q", "a", "and?")}, signs.Turn{Session: "s", Messages: say("q", "a", "what then?")}, 0, ""},
		"questions of a session":       {signs.Turn{Session: "s", Messages: say("one")}, signs.Turn{Session: "s", Messages: say("two")}, 0, ""},
		"a first message of many":      {signs.Turn{Messages: say("hello")}, signs.Turn{Messages: say("hello")}, 0, ""},
		"first messages of many":       {signs.Turn{Messages: say("hello")}, signs.Turn{Messages: say("good morning")}, 0, ""},
		"a first message of a session": {signs.Turn{Session: "s", Messages: say("hello")}, signs.Turn{Session: "s", Messages: say("hello")}, 0, signs.Regenerated},
		"of another session":           {signs.Turn{Session: "s", Messages: say("hello")}, signs.Turn{Session: "r", Messages: say("hello")}, 0, ""},
		"of another tenant":            {signs.Turn{Tenant: "a", Messages: say("q")}, signs.Turn{Tenant: "b", Messages: say("q", "a", "and?")}, 0, ""},
		"a call that is no JSON":       {signs.Turn{Messages: say("q")}, signs.Turn{Messages: broken}, 0, signs.ToolCall},
		"much later":                   {signs.Turn{Messages: say("q")}, signs.Turn{Messages: say("q", "a", "and?")}, time.Hour, ""},
	} {
		now := time.Unix(0, 0)
		w := signs.New(10, func() time.Time { return now })
		c.first.ID, c.second.ID = "1", "2"
		if _, sign := w.See(c.first); sign != "" {
			t.Errorf("%s: the first turn says %s", name, sign)
		}
		now = now.Add(c.after)
		id, sign := w.See(c.second)
		if sign != c.want || (id == "1") != (sign != "") {
			t.Errorf("%s: %q of %q, want %q", name, sign, id, c.want)
		}
	}
}

func TestAnAnswerIsJudgedOnce(t *testing.T) {
	t.Parallel()
	w := signs.New(10, time.Now)
	w.See(signs.Turn{ID: "1", Messages: say("q")})
	w.See(signs.Turn{ID: "2", Messages: say("q", "a", "and?")})
	if id, sign := w.See(signs.Turn{ID: "3", Messages: say("q", "a", "what then?")}); id != "2" || sign != signs.Edited {
		t.Errorf("%s of %s", sign, id)
	}
	if id, sign := w.See(signs.Turn{ID: "4", Messages: say("q", "a", "what then?")}); id != "3" || sign != signs.Regenerated {
		t.Errorf("%s of %s", sign, id)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	t.Parallel()
	w := signs.New(3, time.Now)
	for i := range 100 {
		w.See(signs.Turn{ID: fmt.Sprint(i), Messages: say(fmt.Sprint(i))})
	}
	for i, want := range map[int]signs.Sign{96: "", 99: signs.Continued} {
		if _, sign := w.See(signs.Turn{ID: "next", Messages: say(fmt.Sprint(i), "a", "and?")}); sign != want {
			t.Errorf("turn %d: %q", i, sign)
		}
	}
}
