package record

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/exchange"
)

func TestACacheThatIsOffKeepsNothingAtNoCost(t *testing.T) {
	o, h := &exchange.Exchange{}, http.Header{}
	w := downstream.New(httptest.NewRecorder(), &http.Request{Header: h})
	r, b := &Recorder{}, &Book{Base: &decide.Base{}}
	if n := testing.AllocsPerRun(100, func() { r.keep(t.Context(), b, w, o, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
