package tools

import "encoding/json"

// message is what is read of a message or of an item.
type message struct {
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	FunctionCall function `json:"function_call"`
	ToolCalls    []struct {
		Function function `json:"function"`
	} `json:"tool_calls"`
}

// Called returns the names of the functions that a conversation has called: messages is the value
// of `messages` or of `input`. What cannot be read calls nothing.
func Called(messages []byte) map[string]bool {
	var list []json.RawMessage
	if len(messages) == 0 || messages[0] != '[' || json.Unmarshal(messages, &list) != nil {
		return nil
	}
	out := map[string]bool{}
	for _, raw := range list {
		var m message
		_ = json.Unmarshal(raw, &m) // of what fits badly the rest is read
		if m.Type == "function_call" {
			out[m.Name] = true
		}
		out[m.FunctionCall.Name] = true
		for _, c := range m.ToolCalls {
			out[c.Function.Name] = true
		}
	}
	delete(out, "")
	return out
}

// Mentions returns all strings of a value of JSON, such as tool_choice.
func Mentions(raw []byte) map[string]bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	out := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out[v] = true
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(v)
	return out
}
