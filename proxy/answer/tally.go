package answer

import (
	"bytes"

	"signalbox/internal/openai"
)

// The finish reasons of the API that say something about an answer's length.
const (
	FinishStop     = "stop"
	FinishLength   = "length"
	FinishTools    = "tool_calls"
	FinishFunction = "function_call"
	FinishOther    = "other" // any other, such as content_filter
)

// Usage is what an answer said about its tokens; zero where it said nothing.
type Usage struct{ Prompt, Cached, Completion int64 }

// Tally reads from an answer's bytes, as they pass, how it ended, what it used and, from a stream that
// does not carry its usage, about how long it was. It knows a few names and no more of JSON; inside a text,
// the quotes around them would be escaped. The zero value is ready for one chat completion, on one
// goroutine.
type Tally struct {
	API    openai.API // of the request
	Usage  Usage
	Finish string // one of the finish reasons; empty as long as there is none

	chunks int // of a stream: the deltas in it
	text   int // bytes of text in them
}

// Chunk notes one piece of a stream, whole events, but for its usage. It allocates nothing.
func (t *Tally) Chunk(b []byte) {
	t.end(b)
	name := []byte(`"delta"`)
	if t.API == openai.Completion {
		name = []byte(`"text"`)
	}
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return
		}
		b = b[i+len(name):]
		if t.API == openai.Chat {
			t.chunks++
			t.text += textIn(b)
			continue
		}
		// In a delta of the Responses API, and in a choice of a completion, it is the text itself.
		if value := bytes.TrimLeft(b, ": \t\r\n"); len(value) > 0 && value[0] == '"' {
			t.chunks++
			t.text += stringLen(value[1:])
		}
	}
}

// Began reports whether a stream has brought anything of the answer.
func (t *Tally) Began() bool { return t.chunks > 0 }

// stringLen is the length of the inside of a string, whose front is b.
func stringLen(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(b)
}

// textIn adds up the strings in the object that begins b, without names: what the model wrote, and the
// few bytes of a role or the id of a tool call.
func textIn(b []byte) (n int) {
	depth, last := 0, 0 // last is the length of the string before, which is no text when a colon follows
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return n + last
			}
		case '"':
			begun := i + 1
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			n, last = n+last, min(i, len(b))-begun
		case ':':
			last = 0
		}
	}
	return n + last
}

// end notes the finish reason in b. In chat completions and completions every choice of every chunk has
// finish_reason, null in all but the last.
func (t *Tally) end(b []byte) {
	if t.API == openai.Response {
		t.endResponse(b)
		return
	}
	name := []byte(`"finish_reason"`)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return
		}
		b = bytes.TrimLeft(b[i+len(name):], ": \t\r\n")
		if len(b) > 0 && b[0] == '"' {
			t.Finish = finishWord(b[1:])
		}
	}
}

// endResponse notes the end of a response, which is told by the type of the last event and, where it is
// incomplete, by the reason: vLLM calls the event completed even then. A response that called a tool is
// complete as any other.
func (t *Tally) endResponse(b []byte) {
	switch {
	case bytes.Contains(b, []byte(`"response.failed"`)):
		t.Finish = FinishOther
	case bytes.Contains(b, []byte(`"response.completed"`)), bytes.Contains(b, []byte(`"response.incomplete"`)):
		t.Finish = responseWord(b)
	}
}

// responseWord reads how a response ended: a reason stands in it only if it is incomplete.
func responseWord(b []byte) string {
	_, details, _ := bytes.Cut(b, []byte(`"incomplete_details"`))
	details = bytes.TrimLeft(details, ": \t\r\n")
	if len(details) == 0 || details[0] != '{' {
		return FinishStop
	}
	_, why, _ := bytes.Cut(details, []byte(`"reason"`))
	if bytes.HasPrefix(bytes.TrimLeft(why, ": \t\r\n"), []byte(`"max_output_tokens"`)) {
		return FinishLength
	}
	return FinishOther
}

// endBody notes the end of a response that is no stream. Its front may have been passed on; then what is
// left says by its status that it ended, and nothing of a reason.
func (t *Tally) endBody(b []byte) {
	switch {
	case t.API != openai.Response:
		t.end(b)
	case bytes.Contains(b, []byte(`"status"`)):
		t.Finish = responseWord(b)
	}
}

// finishWord reads the word up to the quote.
func finishWord(b []byte) string {
	word, _, _ := bytes.Cut(b, []byte(`"`))
	switch string(word) {
	case FinishStop:
		return FinishStop
	case FinishLength:
		return FinishLength
	case FinishTools:
		return FinishTools
	case FinishFunction:
		return FinishFunction
	}
	return FinishOther
}

// Length estimates the length of a stream that did not tell it, in tokens. A server sends a chunk for each token,
// after one for the role, but several tokens in one chunk when it falls behind, speculates or is told
// to (vLLM: stream_interval), and then the chunks are too few. So the text counts as well, at 4 bytes
// a token. The larger of the two stands: a limit that is somewhat wide costs less
// than one that cuts answers.
func (t *Tally) Length() int64 { return int64(max(t.chunks-1, t.text/4)) }

// tailSize is how much of the end of a body is searched for usage when it came in several pieces.
const tailSize = 1 << 10

// Body notes the end of an answer that is no stream: before is the end of what was passed on before last.
func (t *Tally) Body(before, last []byte) {
	if len(last) < tailSize && len(before) > 0 {
		last = append(bytes.Clone(before), last...)
	}
	t.FindUsage(last)
	t.endBody(last)
}

// FindUsage reads the last usage object of b, if there is one. It knows the few numbers by name and no more of JSON; inside
// a text the quotes around "usage" would be escaped.
func (t *Tally) FindUsage(b []byte) {
	i := bytes.LastIndex(b, []byte(`"usage"`))
	if i < 0 {
		return
	}
	b = bytes.TrimLeft(b[i+len(`"usage"`):], ": \t\r\n")
	if len(b) == 0 || b[0] != '{' {
		return
	}
	t.Usage = Usage{
		Prompt: numberAfter(b, `"prompt_tokens"`), Cached: numberAfter(b, `"cached_tokens"`), Completion: numberAfter(b, `"completion_tokens"`),
	}
	if t.API == openai.Response {
		t.Usage.Prompt, t.Usage.Completion = numberAfter(b, `"input_tokens"`), numberAfter(b, `"output_tokens"`)
	}
}

// numberAfter reads the digits that follow a name in b; 0 without any.
func numberAfter(b []byte, name string) int64 {
	i := bytes.Index(b, []byte(name))
	if i < 0 {
		return 0
	}
	var n int64
	for _, c := range bytes.TrimLeft(b[i+len(name):], ": \t\r\n") {
		if c < '0' || c > '9' || n > 1<<40 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
