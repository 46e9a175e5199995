package simulator

import (
	"github.com/go-json-experiment/json/jsontext"
)

// The bodies of responses that are not streamed. Field order and null fields are those of vLLM's
// response models.

type usage struct {
	PromptTokens        int            `json:"prompt_tokens"`
	TotalTokens         int            `json:"total_tokens"`
	CompletionTokens    int            `json:"completion_tokens"`
	PromptTokensDetails *promptDetails `json:"prompt_tokens_details"` // with --enable-prompt-tokens-details
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type chatResponse struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"`
	Created           int64        `json:"created"`
	Model             string       `json:"model"`
	Choices           []chatChoice `json:"choices"`
	ServiceTier       *string      `json:"service_tier"`
	SystemFingerprint *string      `json:"system_fingerprint"`
	Usage             usage        `json:"usage"`
	PromptLogprobs    *struct{}    `json:"prompt_logprobs"`
	PromptTokenIDs    *struct{}    `json:"prompt_token_ids"`
	KVTransferParams  *struct{}    `json:"kv_transfer_params"`
}

type chatChoice struct {
	Index        int            `json:"index"`
	Message      chatMessage    `json:"message"`
	Logprobs     jsontext.Value `json:"logprobs"`
	FinishReason string         `json:"finish_reason"`
	StopReason   *string        `json:"stop_reason"`
	TokenIDs     *struct{}      `json:"token_ids"`
}

type chatMessage struct {
	Role             string     `json:"role"`
	Content          *string    `json:"content"`
	Refusal          *string    `json:"refusal"`
	Annotations      *struct{}  `json:"annotations"`
	Audio            *struct{}  `json:"audio"`
	FunctionCall     *struct{}  `json:"function_call"`
	ToolCalls        []toolCall `json:"tool_calls,omitempty"`
	ReasoningContent *string    `json:"reasoning_content,omitzero"`
	Reasoning        *string    `json:"reasoning,omitzero"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionCall `json:"function"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type completionResponse struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	Created           int64              `json:"created"`
	Model             string             `json:"model"`
	Choices           []completionChoice `json:"choices"`
	ServiceTier       *string            `json:"service_tier"`
	SystemFingerprint *string            `json:"system_fingerprint"`
	Usage             usage              `json:"usage"`
	KVTransferParams  *struct{}          `json:"kv_transfer_params"`
}

type completionChoice struct {
	Index          int       `json:"index"`
	Text           string    `json:"text"`
	Logprobs       *struct{} `json:"logprobs"`
	FinishReason   string    `json:"finish_reason"`
	StopReason     *string   `json:"stop_reason"`
	TokenIDs       *struct{} `json:"token_ids"`
	PromptLogprobs *struct{} `json:"prompt_logprobs"`
	PromptTokenIDs *struct{} `json:"prompt_token_ids"`
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

type modelCard struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	Created     int64   `json:"created"`
	OwnedBy     string  `json:"owned_by"`
	Root        string  `json:"root"`
	Parent      *string `json:"parent"`
	MaxModelLen int     `json:"max_model_len"`
}

type tokenizeResponse struct {
	Count       int       `json:"count"`
	MaxModelLen int       `json:"max_model_len"`
	Tokens      []int     `json:"tokens"`
	TokenStrs   *[]string `json:"token_strs"`
}

type errorResponse struct {
	Error errorBody `json:"error"`
}

// errorBody is vLLM's ErrorInfo: `code` repeats the HTTP status as a number.
type errorBody struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func (g *generation) usageOf() usage {
	completion := g.completionTokens()
	u := usage{PromptTokens: g.promptTokens, TotalTokens: g.promptTokens + completion, CompletionTokens: completion}
	if g.cached >= 0 {
		u.PromptTokensDetails = &promptDetails{g.cached}
	}
	return u
}

// chatResponse builds the body of a chat completion.
func (g *generation) chatResponse(model, reasoningField string) any {
	body := &chatResponse{
		ID: g.id, Object: "chat.completion", Created: g.created, Model: model,
		Choices: make([]chatChoice, len(g.choices)), Usage: g.usageOf(),
	}
	for i := range g.choices {
		c := &g.choices[i]
		out := &body.Choices[i]
		out.Index, out.FinishReason, out.StopReason = i, c.finish, orNull(c.stopReason)
		out.Message.Role = "assistant"
		if c.callID == "" {
			out.Message.Content = orNull(c.text(contentPiece))
		} else if c.has(callPiece) {
			out.Message.ToolCalls = []toolCall{{
				ID: c.callID, Type: "function",
				Function: functionCall{Name: c.text(callPiece), Arguments: c.text(argumentsPiece)},
			}}
		}
		if c.has(reasoningPiece) {
			thought := c.text(reasoningPiece)
			if reasoningField == ReasoningField {
				out.Message.Reasoning = &thought
			} else {
				out.Message.ReasoningContent = &thought
			}
		}
		if g.logprobs {
			out.Logprobs = c.logprobs()
		}
	}
	return body
}

// logprobs returns the log-probabilities of a complete response.
func (c *choice) logprobs() jsontext.Value {
	out := jsontext.Value(`{"content":[`)
	for k, p := range c.pieces {
		if k > 0 {
			out = append(out, ',')
		}
		out = append(out, logprob(p.text)...)
	}
	return append(out, "]}"...)
}

// completionResponse builds the body of a text completion.
func (g *generation) completionResponse(model string) any {
	body := &completionResponse{
		ID: g.id, Object: "text_completion", Created: g.created, Model: model,
		Choices: make([]completionChoice, len(g.choices)), Usage: g.usageOf(),
	}
	for i := range g.choices {
		c := &g.choices[i]
		body.Choices[i] = completionChoice{
			Index: i, Text: c.text(contentPiece), FinishReason: c.finish, StopReason: orNull(c.stopReason),
		}
	}
	return body
}

// orNull returns s, or nil if it is empty.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
