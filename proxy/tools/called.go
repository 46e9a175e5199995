package tools

import "encoding/json"

// message is the part of a message or item that is read.
type message struct {
	Role         string   `json:"role"`
	Type         string   `json:"type"`
	Name         string   `json:"name"`
	FunctionCall function `json:"function_call"`
	ToolCalls    []struct {
		Function function `json:"function"`
	} `json:"tool_calls"`
}

// Called returns the names of the functions that a conversation has called, in order, and how many
// of the calls were made before the user's last message. messages is the value of `messages` or of
// `input`. Invalid parts are ignored.
func Called(messages []byte) (names []string, before int) {
	var list []json.RawMessage
	if len(messages) == 0 || messages[0] != '[' || json.Unmarshal(messages, &list) != nil {
		return nil, 0
	}
	add := func(name string) {
		if name != "" {
			names = append(names, name)
		}
	}
	for _, raw := range list {
		var m message
		_ = json.Unmarshal(raw, &m) // the valid parts are read anyway
		if m.Role == "user" {
			before = len(names)
		}
		if m.Type == "function_call" {
			add(m.Name)
		}
		add(m.FunctionCall.Name)
		for _, c := range m.ToolCalls {
			add(c.Function.Name)
		}
	}
	return names, before
}

// Mentions returns all strings in a JSON value, such as tool_choice.
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
