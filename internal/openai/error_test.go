package openai

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestErrorEnvelopeHasAllFourMembers(t *testing.T) {
	tests := []struct {
		name string
		err  Error
		want string
	}{
		{
			"all set",
			Error{400, "no \"x\"", TypeInvalidRequest, "messages[0]", "c", ""},
			`{"error":{"message":"no \"x\"","type":"invalid_request_error","param":"messages[0]","code":"c"}}`,
		},
		{"empty ones are null", Error{Status: 500, Message: "internal error", Type: "server_error"}, `{"error":{"message":"internal error","type":"server_error","param":null,"code":null}}`},
		{"invalid UTF-8 and line ends", Error{Message: "a\xff\r\n", Type: "t"}, "{\"error\":{\"message\":\"a\ufffd\\r\\n\",\"type\":\"t\",\"param\":null,\"code\":null}}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := json.Marshal(&tt.err)
			if err != nil || string(b) != tt.want {
				t.Errorf("MarshalJSON = %s, %v, want %s", b, err, tt.want)
			}
			var w strings.Builder
			if n, err := tt.err.WriteTo(&w); err != nil || n != int64(len(tt.want)) || w.String() != tt.want {
				t.Errorf("WriteTo = %d, %v, %s", n, err, w.String())
			}
			if got, want := string(StreamError(&tt.err)), "data: "+tt.want+"\n\n"; got != want {
				t.Errorf("StreamError = %q, want %q", got, want)
			}
			want := "event: error\ndata: {\"type\":\"error\",\"sequence_number\":7," + tt.want[1:] + "\n\n"
			if got := string(ResponseError(&tt.err, 7)); got != want {
				t.Errorf("ResponseError = %q, want %q", got, want)
			}
		})
	}
}

func TestWriteErrorKeepsHeadersAndSetsItsOwn(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", "3")
	w.Header().Set("Content-Type", "text/event-stream")
	WriteError(w, &Error{Status: 503, Message: "m", Type: "server_error", Code: "overloaded"})
	want := `{"error":{"message":"m","type":"server_error","param":null,"code":"overloaded"}}`
	if w.Code != 503 || w.Body.String() != want {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	header := http.Header{"Content-Type": {"application/json"}, "Content-Length": {"80"}, "Retry-After": {"3"}}
	if d := cmp.Diff(header, w.Header()); d != "" {
		t.Errorf("headers (-want +got):\n%s", d)
	}

	w = httptest.NewRecorder()
	WriteError(w, &Error{Message: "m"})
	if w.Code != http.StatusInternalServerError {
		t.Errorf("error without a status answered %d, want 500", w.Code)
	}
}

func TestModelListIsTheOneOfTheAPI(t *testing.T) {
	tests := []struct {
		name string
		list ModelList
		want string
	}{
		{"empty", NewModelList(), `{"object":"list","data":[]}`},
		{"one", NewModelList(NewModelObject("auto", 7, "signalbox")), `{"object":"list","data":[{"id":"auto","object":"model","created":7,"owned_by":"signalbox"}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := json.Marshal(tt.list)
			if err != nil || string(b) != tt.want {
				t.Errorf("got %s, %v, want %s", b, err, tt.want)
			}
		})
	}
}
