package downstream

import (
	"net/http"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/stream/messages"
)

// Anthropic's Messages API is treated as another form of chat completions: a request is converted
// into one when it is decoded, and its response into a message when it is written. All stages in
// between handle chats only.
const (
	MessagesPath = "/v1/messages"
	CountPath    = MessagesPath + "/count_tokens"
)

// Dialogue is a request to the Messages API and its response.
type Dialogue struct {
	messages.Answer

	Raw    []byte      // the body as received; nil if it cannot be forwarded unchanged
	Model  openai.Span // position of the value of model in Raw
	Direct bool        // the server speaks the Messages API
}

// NewDialogue returns nil for a path of another API. All paths below MessagesPath belong to the
// Messages API, even if nothing is served there.
func NewDialogue(id, path string) *Dialogue {
	if path != MessagesPath && !strings.HasPrefix(path, MessagesPath+"/") {
		return nil
	}
	return &Dialogue{Answer: messages.Answer{ID: plainID(id)}}
}

// plainID replaces an id that JSON names or clients could not handle, since a client may send any
// visible characters.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// renameHeaders gives response headers the names of Anthropic's API: the request id, and limits
// with the time at which they are full again (API reference, rate limits).
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
