package openai

import (
	"bytes"
	"math"
	"strconv"
	"strings"
)

// BytesPerToken is how many bytes of text one token stands for where nobody has counted: about
// right for English under byte-pair vocabularies, and near one token a character for CJK in UTF-8.
const BytesPerToken = 4

// EstimateTokens estimates how long the conversation is, in tokens: what messages say by
// BytesPerToken and, for each message, four tokens of template. Ids of tokens count as they are.
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

// PromptTokens estimates what the prompt takes, in tokens: EstimateTokens and all else that a model
// is given to read, by BytesPerToken: calls of tools and reasoning in messages, the input of APIs
// without messages, documents, and tools as they are spelled, for so templates have them.
func (r *Request) PromptTokens() int {
	n := sizeOf(r.texts) + sizeOf(r.loose) - r.toolsText + r.toolsJSON
	for i := range r.Messages {
		n += len(r.Messages[i].Name)
	}
	return r.EstimateTokens() + r.ids + (n+BytesPerToken-1)/BytesPerToken
}

// sizeOf is how long texts are together, in bytes, but for files as data URLs, which are no text.
func sizeOf(list []text) (n int) {
	for i := range list {
		if t := list[i].text; !strings.HasPrefix(t, "data:") || !IsFile([]byte(t)) {
			n += len(t)
		}
	}
	return n
}

// Streams reports whether the response is a stream of events with a known end.
func (r *Request) Streams() bool { return r.Stream && r.API != Other }

// Choices is the number of answers that the request asks for, at least 1.
func (r *Request) Choices() int { return max(Number(r.Field("n")), 1) }

// AssumedOutputTokens is the assumed length of an answer, in tokens, where the client sets no limit.
const AssumedOutputTokens = 256

// MaxOutputTokens is the OutputTokens of the request as the client sent it.
func (r *Request) MaxOutputTokens() int {
	limit, ok := r.AnswerLimit()
	if !ok {
		limit = AssumedOutputTokens
	}
	return r.OutputTokens(limit, r.Field)
}

// OutputTokens is the most tokens that the response may have, over all its answers, where each has
// at most limit, or the length that vLLM is told to reach first, up to 2^31-1. field tells the
// members of the body.
func (r *Request) OutputTokens(limit int64, field func(name string) []byte) int {
	limit = min(max(limit, int64(Number(field("min_tokens")))), math.MaxInt32)
	return int(min(float64(limit)*float64(r.Answers(field)), math.MaxInt32))
}

// Answers is how many answers are made for the response, at least 1: all choices for all prompts.
// field tells the members of the body.
func (r *Request) Answers(field func(name string) []byte) int {
	times := max(Number(field("n")), Number(field("best_of")), 1) // best_of are made to give n of them
	if r.API == Completion {
		times *= max(len(r.Messages)+r.TokenLists, 1) // prompts
	}
	return times
}

// QuotedField is the value of a field that is a string, as it is spelled, quotes included. It is
// empty when the field is absent, empty or of another type.
func (r *Request) QuotedField(name string) string {
	if v := r.Field(name); len(v) > 2 && v[0] == '"' {
		return string(v)
	}
	return ""
}

// ConversationID is the id of the conversation that the server of the Responses API keeps, as it is
// spelled, quotes included; empty when the request names none.
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

// BringsToolResult reports whether the result of a tool call is among the messages behind the last
// one of the model, whatever the client says beside it: agents put their notes there, and what the
// user typed while the tool ran.
func (r *Request) BringsToolResult() bool {
	for i := len(r.Messages) - 1; i >= 0 && !r.Messages[i].FromModel(); i-- {
		if role := r.Messages[i].Role; role == roleTool || role == roleFunction {
			return true
		}
	}
	return false
}

// Stateless reports whether the request leaves nothing at the server and needs nothing that the
// server has stored. Responses are stored unless the request says otherwise, chats and completions
// only if it asks for it.
func (r *Request) Stateless() bool {
	stored := string(r.Field("store"))
	if stored == "true" || r.API == Response && stored != "false" {
		return false
	}
	return !r.Continues()
}

// Continues reports whether the request goes on with data that one server has: an earlier response,
// a conversation, items of them (item_reference), or work in the background.
func (r *Request) Continues() bool {
	return r.refers || r.QuotedField("previous_response_id") != "" || r.ConversationID() != "" ||
		string(r.Field("background")) == "true"
}

// FromModel reports whether a message is the model's own. Items of the Responses API without a role
// are its tool calls, unless they bring an output.
func (m *Message) FromModel() bool { return m.Role == "assistant" }

// Number reads a JSON number as lenient servers do, which take 4.0 and 4e0 for 4: rounded up, from
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
