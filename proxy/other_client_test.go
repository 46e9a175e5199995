package proxy

import (
	"errors"
	"io"
	"testing"

	goopenai "github.com/sashabaranov/go-openai"

	"signalbox/internal/testkit"
)

func TestTheOtherGoClientIsAtHome(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	b := start(t, oneModel(up))
	config := goopenai.DefaultConfig("k")
	config.BaseURL = b.URL + "/v1"
	client := goopenai.NewClientWithConfig(config)
	req := goopenai.ChatCompletionRequest{Model: "auto", Messages: []goopenai.ChatCompletionMessage{{Role: "user", Content: "math"}}}
	got, err := client.CreateChatCompletion(t.Context(), req)
	if err != nil || got.Choices[0].Message.Content != "hello" || got.Header().Get("X-Signalbox-Route") != "math" {
		t.Fatalf("got %+v, %v", got, err)
	}
	up.Next(testkit.Stream(testkit.Event("a"), testkit.Event("b"), testkit.Finish, testkit.Done))
	stream, err := client.CreateChatCompletionStream(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text string
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text += chunk.Choices[0].Delta.Content
	}
	if text != "ab" {
		t.Errorf("stream gave %q", text)
	}
}
