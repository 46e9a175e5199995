package proxy

import (
	"encoding/json"
	"strings"
	"testing"

	"signalbox/internal/testkit/hostile"
	"signalbox/stream/guard"
)

// spoken returns the text of a response up to its end, choice by choice, as far as its events or
// its body can be parsed.
func spoken(body string) string {
	type message struct{ Content string }
	var texts [4]strings.Builder
	for _, data := range append(heardEvents(body), body) {
		if data == "[DONE]" {
			break
		}
		var chunk struct {
			Choices []struct {
				Index          int
				Delta, Message message
			}
		}
		if json.Unmarshal([]byte(data), &chunk) != nil {
			continue
		}
		for _, c := range chunk.Choices {
			texts[c.Index%len(texts)].WriteString(c.Delta.Content + c.Message.Content)
		}
	}
	said := make([]string, len(texts))
	for i := range texts {
		said[i] = texts[i].String()
	}
	return strings.Join(said, "\n")
}

// TestAHostileBackendMeetsTheGuard runs every mode with the guard, once in a mode that passes text
// and once in one that holds it. Errors without a guard are the same with it, what breaks off
// breaks off, what is complete stays complete, and no text appears that the server did not send.
func TestAHostileBackendMeetsTheGuard(t *testing.T) {
	t.Parallel()
	for _, row := range hostileRows() {
		t.Run(row.mode, func(t *testing.T) {
			t.Parallel()
			for _, mode := range []string{guard.Annotate.String(), guard.Hold.String()} {
				for name, want := range map[string]result{"streamed": row.stream, "not streamed": row.json} {
					plain := ask("hi")
					if name == "streamed" {
						plain = askStream("hi")
					}
					s := hostile.Start(t, hostile.Options{Mode: row.mode, Still: true})
					b := start(t, hostileModels(s), func(s *setup) {
						s.guard.Mode = mode
						if want == late || want == cutLate {
							shortPatience(&s.options)
						}
					})
					got := b.raw(guarded(plain, towerFact))
					t.Run(mode+", "+name, func(t *testing.T) {
						checkGuarded(t, row, want, got, plain)
						checkSecrets(t, s, got)
						if n := s.Requests(); n != 1 {
							t.Errorf("the request was sent %d times", n)
						}
					})
				}
			}
		})
	}
}

func checkGuarded(t *testing.T, row hostileRow, want result, got answered, body string) {
	t.Helper()
	switch want {
	case refused, barred, unreadable, late:
		checkResult(t, row, want, got, body)
		return
	case passed:
		checkResult(t, row, want, got, body)
		return
	case same, mended, ended, cut, cutLate, relayed:
	}
	sent := direct(t, row.mode, body, want.before())
	streamed := strings.Contains(body, `"stream":true`)
	switch {
	case got.status != 200:
		t.Fatalf("got %d %.300s", got.status, got.body)
	case !streamed && got.err == nil:
		if got.body != sent.body && spoken(got.body) != spoken(sent.body) {
			t.Errorf("%.300q became %.300q", sent.body, got.body)
		}
		return
	}
	if got.header.Get("Content-Encoding") != "" { // nobody can read it, and what is unchecked may pass
		checkResult(t, row, want, got, body)
		return
	}
	broken := want == cut || want == cutLate || want == relayed || strings.Contains(sent.body, `"error":{`)
	if said, had := strings.TrimRight(spoken(got.body), "\n"), strings.TrimRight(spoken(sent.body), "\n"); said != had && (!broken || !strings.HasPrefix(had, said)) {
		t.Errorf("said %.300q, the server %.300q", said, had)
	}
	told := strings.Contains(got.body, `"error":{`)
	switch whole := strings.HasSuffix(strings.TrimRight(got.body, "\r\n"), "data: [DONE]") || strings.HasSuffix(strings.TrimRight(got.body, "\r\n"), "data:[DONE]"); {
	case broken && !told:
		t.Errorf("no error is told: %v, %.300q", got.err, got.body)
	case broken && whole && want != same:
		t.Errorf("what broke off ends in order: %.300q", got.body)
	case !broken && (told || got.err != nil || !whole):
		t.Errorf("what is whole does not end in order: %v, %.500q", got.err, got.body)
	}
}
