package downstream

import (
	"net/http"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/stream/messages"
)

// Anthropic's Messages API is a way to say chat completions: a request becomes one when it is
// decoded, and its response becomes a message when it is written. All stages between know chats
// alone.
const (
	MessagesPath = "/v1/messages"
	CountPath    = MessagesPath + "/count_tokens"
)

// Dialogue is a request to the Messages API and its response.
type Dialogue struct {
	messages.Answer

	Raw    []byte      // the body as it came; nil for one that cannot go on as it is
	Model  openai.Span // of the value of model in raw
	Direct bool        // the response is of a server that speaks this API
}

// NewDialogue is nil for a path of any other API. What is below MessagesPath is of this one, also
// where nothing is.
func NewDialogue(id, path string) *Dialogue {
	if path != MessagesPath && !strings.HasPrefix(path, MessagesPath+"/") {
		return nil
	}
	return &Dialogue{Answer: messages.Answer{ID: plainID(id)}}
}

// plainID is an id with which names of JSON and of clients can do: a client may send any visible
// one.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// renameHeaders gives the headers of a response the names that the API has for them: the id of the
// request, and limits with the time at which they are full again (API reference, rate limits).
func renameHeaders(h http.Header, id string, now time.Time) {
	h["Request-Id"] = []string{id}
	for _, what := range [...]string{"Requests", "Tokens"} {
		for _, part := range [...]string{"Limit", "Remaining", "Reset"} {
			from := "X-Ratelimit-" + part + "-" + what
			value := h[from]
			delete(h, from)
			if len(value) != 1 {
				continue
			}
			if part == "Reset" {
				wait, err := time.ParseDuration(value[0])
				if err != nil {
					continue
				}
				value = []string{now.Add(wait).UTC().Format(time.RFC3339)}
			}
			h["Anthropic-Ratelimit-"+what+"-"+part] = value
		}
	}
}
