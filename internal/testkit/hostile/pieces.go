package hostile

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"signalbox/internal/testkit"
)

// The pieces of responses.
const (
	// Finish ends the only choice of a stream.
	Finish = testkit.Finish
	// Usage is the chunk without choices.
	Usage = `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}` + "\n\n"
	// Done ends a stream.
	Done = testkit.Done
	// Completion is a complete response.
	Completion = `{"id":"c-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`
	// StreamHead is the head of a chunked stream.
	StreamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	// End is the last chunk of a chunked body.
	End = "0\r\n\r\n"
)

// EventOf returns event i of a stream with a text and its creation time, in an unknown field, by
// which a client can measure the delay. A time of 0 makes it deterministic.
func EventOf(i int, text string, at time.Time) string {
	quoted, _ := json.Marshal(text)
	var t int64
	if !at.IsZero() {
		t = at.UnixNano()
	}
	return fmt.Sprintf(`data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}],"i":%d,"t":%d}`+"\n\n", quoted, i, t)
}

// errorBody is an error in vLLM's wording.
func errorBody(status int, message string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":"BadRequestError","param":null,"code":%d}}`, message, status)
}

// answerHead is the head of a response with a body of known length.
func answerHead(status int, contentType string, length int, header ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n", status, contentType, length)
	for _, line := range header {
		b.WriteString(line + "\r\n")
	}
	return b.String() + "\r\n"
}

// deep returns JSON nested n times.
func deep(n int) string {
	return `{"choices":` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}"
}
