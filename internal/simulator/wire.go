package simulator

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// framer writes the chunks of one stream. Field order and null fields are those of pydantic's
// model_dump_json(exclude_unset=True) in vLLM. All methods append to dst and return it; they
// allocate only when dst is too small.
type framer interface {
	// open appends what precedes the first token of choice i, if anything.
	open(dst []byte, i int) []byte
	// token appends token k of choice i. last is set on the token that ends a choice cut at its
	// limit.
	token(dst []byte, i, k int, last end) []byte
	// close appends the chunk that ends choice i when no token did.
	close(dst []byte, i int) []byte
	// end appends an event of those that end the stream, and tells whether there are more.
	end(dst []byte) (out []byte, more bool)
}

// end says whether a chunk ends its choice.
type end uint8

const (
	goesOn end = iota
	ends
)

// frame is what both framers share: the bytes that start every chunk of the stream.
type frame struct {
	*generation
	head     []byte // `data: {...,"choices":[`
	totalled bool   // the usage chunk was sent
}

func newFrame(g *generation, object, model string) frame {
	h := append(make([]byte, 0, 160), `data: {"id":`...)
	h = appendQuoted(h, g.id)
	h = append(h, `,"object":`...)
	h = appendQuoted(h, object)
	h = append(h, `,"created":`...)
	h = strconv.AppendInt(h, g.created, 10)
	h = append(h, `,"model":`...)
	h = appendQuoted(h, model)
	return frame{generation: g, head: append(h, `,"choices":[`...)}
}

// seal ends a chunk; sent is the number of completion tokens so far.
func (f *frame) seal(dst []byte, sent int) []byte {
	dst = append(dst, ']')
	if f.usage == usageEvery {
		dst = append(f.appendUsage(dst, sent), '}')
	}
	return append(dst, "}\n\n"...)
}

// appendUsage appends token counts, up to the brace that ends them.
func (f *frame) appendUsage(dst []byte, completion int) []byte {
	dst = append(dst, `,"usage":{"prompt_tokens":`...)
	dst = strconv.AppendInt(dst, int64(f.promptTokens), 10)
	dst = append(dst, `,"total_tokens":`...)
	dst = strconv.AppendInt(dst, int64(f.promptTokens+completion), 10)
	dst = append(dst, `,"completion_tokens":`...)
	return strconv.AppendInt(dst, int64(completion), 10)
}

// end appends the usage chunk, where it is asked for, and then [DONE].
func (f *frame) end(dst []byte) (out []byte, more bool) {
	if f.usage == usageNever || f.totalled {
		return append(dst, "data: [DONE]\n\n"...), false
	}
	f.totalled = true
	dst = append(append(dst, f.head...), ']')
	dst = f.appendUsage(dst, f.completionTokens())
	if f.cached >= 0 { // as in vLLM, only the last count has details
		dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), int64(f.cached), 10)
		dst = append(dst, '}')
	}
	return append(dst, "}}\n\n"...), true
}

// appendFinish appends finish_reason and stop_reason of choice i.
func (f *frame) appendFinish(dst []byte, i int) []byte {
	c := &f.choices[i]
	dst = append(dst, `,"finish_reason":"`...)
	dst = append(dst, c.finish...)
	dst = append(dst, `","stop_reason":`...)
	if c.stopReason == "" {
		return append(dst, "null"...)
	}
	return appendQuoted(dst, c.stopReason)
}

// chatFramer frames a chat completion.
type chatFramer struct {
	frame
	reasoningField string
}

func (f *chatFramer) open(dst []byte, i int) []byte {
	dst = append(dst, f.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`...)
	return f.seal(dst, 0)
}

func (f *chatFramer) token(dst []byte, i, k int, last end) []byte {
	c := &f.choices[i]
	p := c.pieces[k]
	dst = append(dst, f.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"delta":{`...)
	switch p.kind {
	case contentPiece:
		dst = appendQuoted(append(dst, `"content":`...), p.text)
	case reasoningPiece:
		dst = appendQuoted(dst, f.reasoningField)
		dst = appendQuoted(append(dst, ':'), p.text)
	case callPiece:
		dst = append(dst, `"tool_calls":[{"id":`...)
		dst = appendQuoted(dst, c.callID)
		dst = append(dst, `,"type":"function","index":0,"function":{"name":`...)
		dst = appendQuoted(dst, p.text)
		dst = append(dst, `,"arguments":""}}]`...)
	case argumentsPiece:
		dst = append(dst, `"tool_calls":[{"index":0,"function":{"arguments":`...)
		dst = append(appendQuoted(dst, p.text), "}}]"...)
	}
	dst = append(dst, `},"logprobs":`...)
	if f.logprobs {
		dst = append(append(dst, `{"content":[`...), logprob(p.text)...)
		dst = append(dst, "]}"...)
	} else {
		dst = append(dst, "null"...)
	}
	if last == ends {
		dst = f.appendFinish(dst, i)
	} else {
		dst = append(dst, `,"finish_reason":null`...)
	}
	dst = append(dst, `,"token_ids":null}`...)
	return f.seal(dst, k+1)
}

func (f *chatFramer) close(dst []byte, i int) []byte {
	dst = append(dst, f.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = append(dst, `,"delta":{"content":""},"logprobs":null`...)
	dst = append(f.appendFinish(dst, i), `,"token_ids":null}`...)
	return f.seal(dst, len(f.choices[i].pieces))
}

// textFramer frames a text completion.
type textFramer struct{ frame }

func (*textFramer) open(dst []byte, _ int) []byte { return dst }

func (f *textFramer) token(dst []byte, i, k int, last end) []byte {
	return f.seal(f.choice(dst, i, f.choices[i].pieces[k].text, last), k+1)
}

func (f *textFramer) close(dst []byte, i int) []byte {
	return f.seal(f.choice(dst, i, "", ends), len(f.choices[i].pieces))
}

func (f *textFramer) choice(dst []byte, i int, text string, last end) []byte {
	dst = append(dst, f.head...)
	dst = append(dst, `{"index":`...)
	dst = strconv.AppendInt(dst, int64(i), 10)
	dst = appendQuoted(append(dst, `,"text":`...), text)
	dst = append(dst, `,"logprobs":null`...)
	if last == ends {
		dst = f.appendFinish(dst, i)
	} else {
		dst = append(dst, `,"finish_reason":null,"stop_reason":null`...)
	}
	return append(dst, '}')
}

// logprob returns the log-probability entry of a token: a made-up value in [-1, 0] that depends on
// the token alone, and no alternatives.
func logprob(token string) []byte {
	dst := append(make([]byte, 0, 128), `{"token":`...)
	dst = appendQuoted(dst, token)
	dst = append(dst, `,"logprob":`...)
	dst = strconv.AppendFloat(dst, -float64(tokenID(token)%1000)/1000, 'f', -1, 64)
	dst = append(dst, `,"bytes":[`...)
	for i := range len(token) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(token[i]), 10)
	}
	return append(dst, `],"top_logprobs":[]}`...)
}

// appendQuoted appends s as a JSON string. Invalid UTF-8, the only error, becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
}
