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
type Usage struct {
	Prompt, Cached, Completion int64 // tokens
	Uncached                   bool  // it said that 0 tokens of the prompt were cached
}

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
	front  int // of the piece before: where its first delta stood
	apart  int // and how far behind a delta the next one did
}

// Counts notes the deltas in one piece of a stream, whole events; it allocates nothing. The events of a stream are alike up to their delta, and
// behind it, so it stands where that of the piece before stood, and nothing is searched.
func (t *Tally) Counts(b []byte) {
	name := `"delta"`
	if t.API == openai.Completion {
		name = `"text"`
	}
	for at := &t.front; ; at = &t.apart {
		i := find(b, name, *at)
		if i < 0 {
			return
		}
		*at = i
		b = b[i+len(name):]
		if t.API == openai.Chat {
			n, size := textIn(b)
			t.chunks++
			t.text += n
			b = b[size:]
			continue
		}
		// In a delta of the Responses API, and in a choice of a completion, it is the text itself.
		if value := skipBlank(b); len(value) > 0 && value[0] == '"' {
			t.chunks++
			t.text += stringLen(value[1:])
		}
	}
}

// find returns the offset of a name in b, -1 without one. It is looked for at a likely place first.
func find(b []byte, name string, likely int) int {
	if end := likely + len(name); end <= len(b) && string(b[likely:end]) == name {
		return likely
	}
	bare := name[1:] // a quote is the commonest byte of JSON
	for from := 1; from < len(b); {
		i := bytes.Index(b[from:], []byte(bare))
		if i < 0 {
			return -1
		}
		if from += i; b[from-1] == '"' {
			return from - 1
		}
		from++
	}
	return -1
}

// skipBlank passes over what may stand between a name and its value.
func skipBlank(b []byte) []byte {
	for len(b) > 0 && (b[0] == ':' || b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
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
// few bytes of a role or the id of a tool call. size is that of the object.
func textIn(b []byte) (n, size int) {
	depth, last := 0, 0 // last is the length of the string before, which is no text when a colon follows
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return n + last, i + 1
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
	return n + last, len(b)
}

// Ends notes the finish reason in one piece of a stream. In chat completions and completions every choice of every chunk has
// finish_reason, null in all but the last.
func (t *Tally) Ends(b []byte) {
	if t.API == openai.Response {
		t.endResponse(b)
		return
	}
	const name = `"finish_reason"`
	for {
		i := find(b, name, 0)
		if i < 0 {
			return
		}
		b = skipBlank(b[i+len(name):])
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
	details = skipBlank(details)
	if len(details) == 0 || details[0] != '{' {
		return FinishStop
	}
	_, why, _ := bytes.Cut(details, []byte(`"reason"`))
	if bytes.HasPrefix(skipBlank(why), []byte(`"max_output_tokens"`)) {
		return FinishLength
	}
	return FinishOther
}

// endBody notes the end of a response that is no stream. Its front may have been passed on; then what is
// left says by its status that it ended, and nothing of a reason.
func (t *Tally) endBody(b []byte) {
	switch {
	case t.API != openai.Response:
		t.Ends(b)
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

// bytesPerToken is the length of a token in bytes of text where only the text is known: English
// under byte-pair vocabularies, and near a character for CJK in UTF-8.
const bytesPerToken = 4

// Length estimates the length of a stream that did not tell it, in tokens, from its text. The
// number of its events says nothing of it: one may carry several tokens, when a server falls
// behind, speculates or is told to (vLLM: stream_interval), or a part of one, when a server sends
// characters.
func (t *Tally) Length() int64 { return int64(t.text+bytesPerToken-1) / bytesPerToken }

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
	if find(b, `"usage"`, 0) < 0 {
		return // searching from the front is ten times as fast, and most chunks have none
	}
	i := bytes.LastIndex(b, []byte(`"usage"`))
	b = skipBlank(b[i+len(`"usage"`):])
	if len(b) == 0 || b[0] != '{' {
		return
	}
	t.Usage = Usage{
		Prompt: numberAfter(b, `"prompt_tokens"`), Cached: numberAfter(b, `"cached_tokens"`), Completion: numberAfter(b, `"completion_tokens"`),
	}
	if t.API == openai.Response {
		t.Usage.Prompt, t.Usage.Completion = numberAfter(b, `"input_tokens"`), numberAfter(b, `"output_tokens"`)
	}
	t.Usage.Uncached = t.Usage.Cached == 0 && saysZero(b, `"cached_tokens"`)
}

// saysZero reports whether the value of a name in b begins with the digit 0.
func saysZero(b []byte, name string) bool {
	i := bytes.Index(b, []byte(name))
	if i < 0 {
		return false
	}
	value := skipBlank(b[i+len(name):])
	return len(value) > 0 && value[0] == '0'
}

// numberAfter reads the digits that follow a name in b; 0 without any.
func numberAfter(b []byte, name string) int64 {
	i := bytes.Index(b, []byte(name))
	if i < 0 {
		return 0
	}
	var n int64
	for _, c := range skipBlank(b[i+len(name):]) {
		if c < '0' || c > '9' || n > 1<<40 {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}
