package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/downstream"
)

// Clients of the Responses API read no event without a type and a number.
func TestABrokenResponseEndsInATypedError(t *testing.T) {
	up := testkit.NewUpstream(t, nil)
	b := start(t, oneModel(up), commenting)
	ask := func(during ...func()) answered {
		return b.rawTo("/v1/responses", `{"model":"auto","input":"hi","stream":true}`, during...)
	}
	const begun = `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,` +
		`"delta":"a","logprobs":[],"sequence_number":4}` + "\n\n"
	const end = `"param":null,"code":"upstream_error"}}` + "\n\n"
	typed := func(number string) string {
		return "event: error\n" + `data: {"type":"error","sequence_number":` + number + `,"error":{"message":"`
	}
	up.Next(testkit.Raw(testkit.StreamHead+testkit.Chunk(begun), testkit.RST))
	got := ask()
	rest, ok := strings.CutPrefix(strings.ReplaceAll(got.body, downstream.KeepAlive, ""), begun+typed("5"))
	if !ok || got.err == nil || !strings.HasSuffix(rest, end) {
		t.Errorf("behind events: %v %q", got.err, got.body)
	}
	gate := make(chan struct{})
	up.Next(testkit.After(gate, testkit.JSON(400, `{"error":{"message":"no"}}`)))
	got = ask(func() { close(gate) })
	rest, ok = strings.CutPrefix(strings.ReplaceAll(got.body, downstream.KeepAlive, ""), typed("0"))
	if !ok || got.err == nil || !strings.HasSuffix(rest, end) {
		t.Errorf("behind a comment: %v %q", got.err, got.body)
	}
}
