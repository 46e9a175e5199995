package answer

import "bytes"

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
// the quotes around them would be escaped. The zero value is ready for one answer, on one goroutine.
type Tally struct {
	Usage  Usage
	Finish string // one of the finish reasons; empty as long as there is none

	chunks int // of a stream: the deltas in it
	text   int // bytes of text in them
}

// Chunk notes one piece of a stream, whole events, but for its usage. It allocates nothing.
func (t *Tally) Chunk(b []byte) {
	t.end(b)
	name := []byte(`"delta"`)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return
		}
		b = b[i+len(name):]
		t.chunks++
		t.text += textIn(b)
	}
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

// end notes the finish reason in b. The API has finish_reason in every choice of every chunk, null in
// all but the last.
func (t *Tally) end(b []byte) {
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
	t.end(last)
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
