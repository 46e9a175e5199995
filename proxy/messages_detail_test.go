package proxy

import (
	"strings"
	"testing"

	"signalbox/internal/testkit"
)

func TestTheDetailOfAnErrorIsItsMessage(t *testing.T) {
	t.Parallel()
	for detail, want := range map[string]string{
		`"Field required"`: "Field required",
		`[{"loc":["body","x",0],"msg":"Field required","input":"secret"},{"msg":"late"}]`: "body.x.0: Field required; late",
		`"` + strings.Repeat("é", 2000) + `"`:                                             strings.Repeat("é", 512) + "...",
		`[{},["a"],{}]`:                                                                   "the model server reports an error",
		`{"x":1}`:                                                                         "the model server reports an error",
	} {
		up := testkit.NewUpstream(t, testkit.JSON(422, `{"detail":`+detail+`}`))
		b := start(t, oneModel(up))
		if got := b.message(askMessage("hi", "")); got.status != 422 || got.failure(t) != "invalid_request_error: "+want {
			t.Errorf("detail %.100s: %d %s", detail, got.status, got.body)
		}
	}
}
