package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
)

// Clients of the Responses API ignore events without a type and number. Some, such as Codex,
// recognise no error except that of a failed response, and not if the connection breaks.
func TestABrokenResponseEndsInATypedErrorAndHasFailed(t *testing.T) {
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up), commenting)
	ask := func(during ...func()) answered {
		return b.rawTo("/v1/responses", `{"model":"auto","input":"hi","stream":true}`, during...)
	}
	const begun = `data: {"type":"response.created","response":{"id":"resp_a","object":"response","status":"in_progress"},` +
		`"sequence_number":0}` + "\n\n" + `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,` +
		`"delta":"a","logprobs":[],"sequence_number":4}` + "\n\n"
	ends := func(body, number, id string) bool {
		_, failed, ok := strings.Cut(body, `"param":null,"code":"upstream_error"}}`+"\n\nevent: response.failed\ndata: ")
		return ok && strings.HasPrefix(failed, `{"type":"response.failed","sequence_number":`+number+`,"response":{"id":"`+id) &&
			strings.Contains(failed, `"status":"failed","error":{"code":"upstream_error","message":"the model server `) &&
			strings.HasSuffix(failed, "}}\n\n")
	}
	typed := func(number string) string {
		return "event: error\n" + `data: {"type":"error","sequence_number":` + number + `,"error":{"message":"`
	}
	up.Next(testkit.Raw(testkit.StreamHead+testkit.Chunk(begun), testkit.RST))
	got := ask()
	rest, ok := strings.CutPrefix(strings.ReplaceAll(got.body, downstream.KeepAlive, ""), begun+typed("5"))
	if !ok || got.err != nil || !ends(rest, "6", `resp_a"`) {
		t.Errorf("behind events: %v %q", got.err, got.body)
	}
	gate := make(chan struct{})
	up.Next(testkit.After(gate, testkit.JSON(400, `{"error":{"message":"no"}}`)))
	got = ask(func() { close(gate) })
	rest, ok = strings.CutPrefix(strings.ReplaceAll(got.body, downstream.KeepAlive, ""), typed("0"))
	if !ok || got.err != nil || !ends(rest, "1", "resp_req_") {
		t.Errorf("behind a comment: %v %q", got.err, got.body)
	}
}
