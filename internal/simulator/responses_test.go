package simulator_test

import (
	"net/http/httptest"
	"testing"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func TestTheOfficialClientReadsResponses(t *testing.T) {
	server := httptest.NewServer(newServer(t, nil).Handler())
	defer server.Close()
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))
	params := responses.ResponseNewParams{Model: "llama-70b", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hi")}, MaxOutputTokens: openai.Int(1 << 40)}
	whole, err := client.Responses.New(t.Context(), params)
	if err != nil || whole.Status != responses.ResponseStatusCompleted || whole.OutputText() == "" || whole.Usage.OutputTokens == 0 {
		t.Fatalf("got %+v, %v", whole, err)
	}
	params.Reasoning.Effort = "high"
	stream := client.Responses.NewStreaming(t.Context(), params)
	defer func() { _ = stream.Close() }()
	said, n := map[string]string{}, int64(0)
	var last responses.Response
	for ; stream.Next(); n++ {
		e := stream.Current()
		if e.SequenceNumber != n {
			t.Errorf("event %d has number %d", n, e.SequenceNumber)
		}
		switch e := e.AsAny().(type) {
		case responses.ResponseTextDeltaEvent:
			said["text"] += e.Delta
		case responses.ResponseReasoningTextDeltaEvent:
			said["reasoning"] += e.Delta
		case responses.ResponseCompletedEvent:
			last = e.Response
		}
	}
	if err := stream.Err(); err != nil || said["reasoning"] == "" || said["text"] == "" || said["text"] != last.OutputText() {
		t.Errorf("stream gave %q, its end %q, %v", said, last.OutputText(), err)
	}
}
