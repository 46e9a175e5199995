//go:build openai

package simulator_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func TestOfficialGoClient(t *testing.T) {
	server := listen(t, newServer(t, nil))
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(server.Client()))
	params := openai.ChatCompletionNewParams{
		Model: "llama-70b",
		Messages: []openai.ChatCompletionMessageParamUnion{
			openai.SystemMessage("Be brief."), openai.UserMessage("Hi"),
		},
		ReasoningEffort: "low", MaxTokens: openai.Int(60),
	}
	whole, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if got := whole.Choices[0].Message.Content; !strings.HasPrefix(got, answerToHi) {
		t.Errorf("answer %q", got)
	}
	if field := whole.Choices[0].Message.JSON.ExtraFields["reasoning_content"]; !strings.HasPrefix(field.Raw(), `"I am llama-70b. The user asks: \"Hi\"`) {
		t.Errorf("reasoning_content %s", field.Raw())
	}

	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("chunk does not fit: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole.Choices[0].Message.Content, acc.Choices[0].Message.Content); diff != "" {
		t.Errorf("streamed content (-whole +stream):\n%s", diff)
	}
	if whole.Usage.TotalTokens == 0 || whole.Usage.TotalTokens != acc.Usage.TotalTokens {
		t.Errorf("usage: whole %d, stream %d", whole.Usage.TotalTokens, acc.Usage.TotalTokens)
	}

	params.Model = "gpt-4"
	_, err = client.Chat.Completions.New(t.Context(), params, option.WithMaxRetries(0))
	if apiErr, ok := errors.AsType[*openai.Error](err); !ok || apiErr.StatusCode != http.StatusNotFound || apiErr.Param != "model" {
		t.Errorf("unknown model: %v", err)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "llama-70b" {
		t.Errorf("models %+v, %v", models, err)
	}
}

func TestOfficialGoClientStreamsAForcedToolCall(t *testing.T) {
	server := listen(t, newServer(t, nil))
	client := openai.NewClient(option.WithBaseURL(server.URL+"/v1"), option.WithAPIKey("none"), option.WithHTTPClient(server.Client()))
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{
		Model:    "llama-70b",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hi")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "get_weather",
			Parameters: openai.FunctionParameters{
				"type": "object", "required": []string{"city"},
				"properties": map[string]any{"city": map[string]any{"type": "string"}},
			},
		})},
		ToolChoice: openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_weather"}),
	})
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		acc.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	calls := acc.Choices[0].Message.ToolCalls
	if len(calls) != 1 || calls[0].Function.Name != "get_weather" || calls[0].Function.Arguments != `{"city": "simulated"}` || calls[0].ID == "" {
		t.Errorf("tool calls %+v", calls)
	}
}

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
