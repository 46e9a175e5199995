package proxy

import (
	"bytes"

	"signalbox/internal/signal"
)

// tokenLimit is the limit on an answer that the proxy put into a request; zero when it put none.
type tokenLimit struct {
	n    int // in tokens
	auto bool
}

// The finish reasons of the API that say something about an answer's length.
const (
	finishStop     = "stop"
	finishLength   = "length"
	finishTools    = "tool_calls"
	finishFunction = "function_call"
	finishOther    = "other" // any other, such as content_filter
)

// measure reads from an answer's bytes how it ended and, from a stream that does not carry its usage,
// about how long it was. It knows a few names and no more of JSON; inside a text, the quotes around them
// would be escaped. It belongs to one answer.
type measure struct {
	finish string // empty as long as there is none
	chunks int    // of a stream: the deltas in it
	text   int    // bytes of text in them
}

// chunk notes one piece of a stream, whole events.
func (m *measure) chunk(b []byte) {
	m.end(b)
	name := []byte(`"delta"`)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return
		}
		b = b[i+len(name):]
		m.chunks++
		m.text += textIn(b)
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
func (m *measure) end(b []byte) {
	name := []byte(`"finish_reason"`)
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return
		}
		b = bytes.TrimLeft(b[i+len(name):], ": \t\r\n")
		if len(b) > 0 && b[0] == '"' {
			m.finish = finishWord(b[1:])
		}
	}
}

// finishWord reads the word up to the quote.
func finishWord(b []byte) string {
	word, _, _ := bytes.Cut(b, []byte(`"`))
	switch string(word) {
	case finishStop:
		return finishStop
	case finishLength:
		return finishLength
	case finishTools:
		return finishTools
	case finishFunction:
		return finishFunction
	}
	return finishOther
}

// tokens estimates the length of a stream that did not tell it. A server sends a chunk for each token,
// after one for the role, but several tokens in one chunk when it falls behind, speculates or is told
// to (vLLM: stream_interval), and then the chunks are too few. So the text counts as well, at 4 bytes
// a token, as in estimateTokens. The larger of the two stands: a limit that is somewhat wide costs less
// than one that cuts answers.
func (m *measure) tokens() int64 { return int64(max(m.chunks-1, m.text/4)) }

// learn notes how long an answer was and how it ended, and reports whether that widened an automatic
// limit. Answers that were broken off, that a filter ended or that hold several choices say nothing.
func (st *State) learn(o *outcome) (widened bool) {
	if o.decision == nil || o.model == nil || o.measure.finish == "" || o.measure.finish == finishOther {
		return false
	}
	if n := o.req.Field("n"); n != nil && string(n) != "1" && string(n) != "null" {
		return false
	}
	length := o.tokens.completion
	if length == 0 {
		length = o.measure.tokens()
	}
	how := ended
	switch {
	case o.limit.auto && o.measure.finish == finishLength:
		how, length = cut, max(length, int64(o.limit.n))
	case o.limit.auto:
	case o.limit.n > 0 || o.req.MaxTokens != nil || o.req.MaxCompletionTokens != nil:
		how = bounded
	}
	st.lengths.observe(o.asked.kind, length, how)
	return how == cut
}

// kind names the answers that one of model m to this request is like. effort is that of reason.
func (d *decision) kind(m *model, effort string) kind {
	k := kind{model: m.name, effort: effort}
	if v := &d.set.Values[signal.Domain]; v.State == signal.Known {
		k.domain = v.Label
	}
	if v := &d.set.Values[signal.Complexity]; v.State == signal.Known {
		k.complexity = v.Label
	}
	return k
}
