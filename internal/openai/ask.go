package openai

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// BytesPerToken is the assumed number of bytes of text per token if nobody has counted: about right
// for English under byte-pair vocabularies, and near one token per character for CJK in UTF-8.
const BytesPerToken = 4

// EstimateTokens estimates the length of the conversation in tokens: the text of messages by
// BytesPerToken and, for each message, four tokens of template. Token ids count as they are.
func (r *Request) EstimateTokens() int {
	const template = 4
	n := r.TokenIDs
	if r.Instructions != "" {
		n += len(r.Instructions)/BytesPerToken + template
	}
	for i := range r.Messages {
		n += len(r.Messages[i].Text)/BytesPerToken + template
	}
	return n
}

// PromptTokens estimates the length of the prompt in tokens: EstimateTokens plus everything else
// that a model reads, by BytesPerToken: tool calls and reasoning in messages, the input of APIs
// without messages, documents, and tools in their JSON form, as templates insert them.
func (r *Request) PromptTokens() int {
	n := sizeOf(r.texts) + sizeOf(r.loose) - r.toolsText + r.toolsJSON
	for i := range r.Messages {
		n += len(r.Messages[i].Name)
	}
	return r.EstimateTokens() + r.ids + (n+BytesPerToken-1)/BytesPerToken
}

// sizeOf returns the total length of texts in bytes, not counting files given as data URLs.
func sizeOf(list []text) (n int) {
	for i := range list {
		if t := list[i].text; !strings.HasPrefix(t, "data:") || !IsFile([]byte(t)) {
			n += len(t)
		}
	}
	return n
}

// Streams reports whether the response is a stream of events with a known end mark.
func (r *Request) Streams() bool { return r.Stream && r.API != Other }

// Choices returns the number of answers that the request asks for, at least 1.
func (r *Request) Choices() int { return max(Number(r.Field("n")), 1) }

// AssumedOutputTokens is the assumed length of an answer in tokens if the client sets no limit.
const AssumedOutputTokens = 256

// MaxOutputTokens returns OutputTokens for the request as the client sent it.
func (r *Request) MaxOutputTokens() int {
	limit, ok := r.AnswerLimit()
	if !ok {
		limit = AssumedOutputTokens
	}
	return r.OutputTokens(limit, r.Field)
}

// OutputTokens returns the maximum number of tokens in the response, summed over all its answers,
// up to 2^31-1. Each answer has at most limit tokens, or the minimum length that vLLM is told to
// reach if that is more. field returns the members of the body.
func (r *Request) OutputTokens(limit int64, field func(name string) []byte) int {
	limit = min(max(limit, int64(Number(field("min_tokens")))), math.MaxInt32)
	return int(min(float64(limit)*float64(r.Answers(field)), math.MaxInt32))
}

// Answers returns the number of answers generated for the response, at least 1: all choices for all
// prompts. field returns the members of the body.
func (r *Request) Answers(field func(name string) []byte) int {
	// best_of answers are generated to return n of them
	times := max(Number(field("n")), Number(field("best_of")), 1)
	if r.API == Completion {
		times *= max(len(r.Messages)+r.TokenLists, 1) // prompts
	}
	return times
}

// QuotedField returns the value of a string field in its JSON spelling, with quotes. It is empty if
// the field is absent, empty or of another type.
func (r *Request) QuotedField(name string) string {
	if v := r.Field(name); len(v) > 2 && v[0] == '"' {
		return string(v)
	}
	return ""
}

// ConversationID returns the id of the conversation kept by the server of the Responses API, in its
// JSON spelling, with quotes; empty if the request names none.
func (r *Request) ConversationID() string {
	v := bytes.TrimSpace(r.Field("conversation"))
	if len(v) > 0 && v[0] == '{' {
		v = bytes.TrimSpace(Member(v, "id"))
	}
	if len(v) > 2 && v[0] == '"' {
		return string(v)
	}
	return ""
}

// BringsToolResult reports whether a tool result is among the messages after the last one of the
// model. Other messages beside it do not matter: agents put their notes there, and text that the
// user typed while the tool ran.
func (r *Request) BringsToolResult() bool {
	for i := len(r.Messages) - 1; i >= 0 && !r.Messages[i].FromModel(); i-- {
		if role := r.Messages[i].Role; role == roleTool || role == roleFunction {
			return true
		}
	}
	return false
}

// Stateless reports whether the request stores nothing on the server and needs nothing stored
// there. Responses are stored unless the request says otherwise, chats and completions only on
// request.
func (r *Request) Stateless() bool {
	stored := string(r.Field("store"))
	if stored == "true" || r.API == Response && stored != "false" {
		return false
	}
	return !r.Continues()
}

// Continues reports whether the request continues with data that only one server has: an earlier
// response, a conversation, items of them (item_reference), or work in the background.
func (r *Request) Continues() bool {
	return r.refers || r.QuotedField("previous_response_id") != "" || r.ConversationID() != "" ||
		string(r.Field("background")) == "true"
}

// FromModel reports whether a message is the model's own. Items of the Responses API without a role
// count if they are tool calls, but not if they contain an output.
func (m *Message) FromModel() bool { return m.Role == "assistant" }

// Number reads a JSON number as lenient servers do, which accept 4.0 and 4e0 as 4: rounded up, from
// 0 to 2^31-1. Any other value is 0.
func Number(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 1) {
		return 0
	}
	return int(min(max(math.Ceil(f), 0), math.MaxInt32))
}

// The fields that limit the length of the answer. OpenAI deprecated the first in favour of the
// second, which counts reasoning too, and its o-series and gpt-5 refuse the first
// (platform.openai.com/docs/api-reference/chat/create). vLLM reads both, the second one first.
const (
	FieldMaxTokens           = "max_tokens"
	FieldMaxCompletionTokens = "max_completion_tokens"
	FieldMaxOutputTokens     = "max_output_tokens" // of the Responses API
)
