package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

func TestTheLogHoldsNothingOfARefusedRequest(t *testing.T) {
	t.Parallel()
	b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))))
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	const hello = `"messages":[{"role":"user","content":"x"}]}`
	for name, c := range map[string]struct {
		path, body string
		status     int
		cause      string
	}{
		"a lone surrogate": {
			chat, `{"model":"auto","messages":[{"role":"user","content":"\ud800SecretPassword123"}]}`, 400,
			"invalid_request_error: messages[0].content: invalid JSON at byte 54",
		},
		"a model that is not there": {
			chat, `{"model":"my SecretPassword123","messages":[{"role":"user","content":"x"}]}`, 404,
			"unknown model",
		},
		"a member of signalbox": {
			chat, `{"model":"auto","signalbox":{"mail SecretPassword123@example.com":1},` + hello, 400,
			"invalid_request_error: signalbox.….…: is unknown; " +
				"known are context, session, facts, explain, guard, save_context",
		},
		"a member that is spelled in another way": {
			chat, `{"model":"auto","meſſages":[{"role":"user","content":"SecretPassword123"}]}`, 400,
			`invalid_request_error: …: is spelled differently from "messages"`,
		},
		"a broken member below a name of the client": {
			chat, `{"model":"auto","SecretPassword123":{"4111111111111111":"\ud800"},` + hello, 400,
			"invalid_request_error: …: invalid JSON at byte 57",
		},
		"a block of messages": {
			messages, `{"model":"auto","max_tokens":9,` +
				`"messages":[{"role":"user","content":[{"type":"SecretPassword123"}]}]}`, 400,
			"invalid_request_error: messages[0].content[0].type",
		},
		"a surrogate in messages": {
			messages, `{"model":"auto","max_tokens":9,` +
				`"messages":[{"role":"user","content":"\ud800SecretPassword123"}]}`, 400,
			"invalid_request_error: messages[0].content: invalid JSON at byte 69",
		},
		"a context": {
			chat, `{"model":"auto","signalbox":{"context":"SecretPassword123"},` + hello, 400,
			"invalid_request_error: signalbox.context",
		},
	} {
		before := len(b.log.String())
		got := b.post(c.path, c.body)
		line := b.log.String()[before:]
		if got.status != c.status || strings.Contains(line, "SecretPassword") || strings.Contains(line, "4111111111111111") {
			t.Errorf("%s: status %d, logged %s", name, got.status, line)
		}
		if !strings.Contains(line, `"cause":"`+strings.ReplaceAll(c.cause, `"`, `\"`)+`"`) {
			t.Errorf("%s: logged %s, want %q", name, line, c.cause)
		}
	}
}
