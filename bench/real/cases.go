package main

import (
	"fmt"
	"strings"
)

// The models as the servers call them, and their context windows in tokens.
const (
	tiny   = "tiny-real"
	gemma  = "gemma-real"
	window = 8192
)

// testCase is one request that is sent to a server directly and through the product.
type testCase struct {
	name   string
	path   string
	body   string
	header [2]string // one more header, where its name is not empty
}

const (
	chatPath       = "/v1/chat/completions"
	completionPath = "/v1/completions"
	responsePath   = "/v1/responses"
	tokenizePath   = "/v1/tokenize" //nolint:gosec // a path, which vLLM has at its root
)

const weatherTool = `{"type":"function","function":{"name":"get_weather","description":"The weather.",` +
	`"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`

const citySchema = `{"type":"object","properties":{"city":{"type":"string","maxLength":8},` +
	`"n":{"type":"integer"}},"required":["city","n"],"additionalProperties":false}`

// chatMembers are the members of chats beside model, messages and limits, by name of the case.
func chatMembers() [][2]string {
	return [][2]string{
		{"plain", ``},
		{"one token", `"max_tokens":1`},
		{"max_completion_tokens", `"max_completion_tokens":5`},
		{"n 2", `"n":2`},
		{"n 3 seeded", `"n":3,"seed":7,"temperature":0.8`},
		{"logprobs", `"logprobs":true,"top_logprobs":3`},
		{"logprobs alone", `"logprobs":true`},
		{"stop", `"stop":"e"`},
		{"stop list", `"stop":["zz","e","a"]`},
		{"stop kept", `"stop":["e"],"include_stop_str_in_output":true`},
		{"seed", `"seed":11,"temperature":1.0`},
		{"top_p", `"seed":3,"temperature":0.9,"top_p":0.5`},
		{"top_k", `"seed":3,"temperature":0.9,"top_k":5`},
		{"min_p", `"seed":3,"temperature":0.9,"min_p":0.1`},
		{"penalties", `"presence_penalty":0.5,"frequency_penalty":0.5,"repetition_penalty":1.2`},
		{"logit_bias", `"logit_bias":{"65":5}`},
		{"ignore_eos", `"ignore_eos":true,"min_tokens":8`},
		{"bad_words", `"bad_words":["the"]`},
		{"allowed ids", `"allowed_token_ids":[65,66,67]`},
		{"json object", `"response_format":{"type":"json_object"},"max_tokens":40`},
		{"json schema", `"response_format":{"type":"json_schema","json_schema":{"name":"c","schema":` +
			citySchema + `}},"max_tokens":60`},
		{"choice", `"structured_outputs":{"choice":["yes","no"]}`},
		{"regex", `"structured_outputs":{"regex":"[a-c]{4}"}`},
		{"tools auto", `"tools":[` + weatherTool + `],"tool_choice":"auto"`},
		{"tools none", `"tools":[` + weatherTool + `],"tool_choice":"none"`},
		{"tools required", `"tools":[` + weatherTool + `],"tool_choice":"required","max_tokens":80`},
		{"tool named", `"tools":[` + weatherTool + `],"tool_choice":{"type":"function",` +
			`"function":{"name":"get_weather"}},"max_tokens":60`},
		{"one tool call", `"tools":[` + weatherTool + `],"parallel_tool_calls":false`},
		{"thinking", `"chat_template_kwargs":{"enable_thinking":true}`},
		{"no thinking", `"chat_template_kwargs":{"enable_thinking":false}`},
		{"reasoning hidden", `"include_reasoning":false`},
		{"token ids", `"return_token_ids":true`},
		{"special tokens", `"skip_special_tokens":false`},
		{"echo", `"echo":true`},
		{"user", `"user":"u-1"`},
		{"metadata", `"metadata":{"a":"b"}`},
		{"unknown member", `"not_a_member":{"deep":[1,2,3]}`},
		{"parallel sampling", `"n":2,"seed":5,"temperature":1.1,"logprobs":true`},
	}
}

// chatTalks are conversations, by name of the case.
func chatTalks() [][2]string {
	long := strings.Repeat("The harbour opens at nine. ", 200)
	return [][2]string{
		{"system", `{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}`},
		{"three turns", `{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."},` +
			`{"role":"user","content":"Again"}`},
		{"parts", `{"role":"user","content":[{"type":"text","text":"One"},{"type":"text","text":"two"}]}`},
		{"unicode", `{"role":"user","content":"Grüße, 世界, \ud83d\ude00 ﬁ \u0000 end"}`},
		{"empty", `{"role":"user","content":""}`},
		{"long", `{"role":"user","content":"` + long + `"}`},
		{"tool result", `{"role":"user","content":"Weather?"},{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather",` +
			`"arguments":"{\"city\":\"Oslo\"}"}}]},{"role":"tool","tool_call_id":"call_1","content":"sunny"}`},
	}
}

func completionMembers() [][2]string {
	return [][2]string{
		{"text", `"prompt":"The harbour"`},
		{"list", `"prompt":["The harbour","A ship"]`},
		{"ids", `"prompt":[65,66,67,68]`},
		{"id lists", `"prompt":[[65,66],[67,68]]`},
		{"echo", `"prompt":"The harbour","echo":true`},
		{"logprobs", `"prompt":"The harbour","logprobs":2`},
		{"echo logprobs", `"prompt":"The harbour","echo":true,"logprobs":1`},
		{"n 2", `"prompt":"The harbour","n":2,"seed":5,"temperature":0.9`},
		{"stop", `"prompt":"The harbour","stop":["e"]`},
		{"regex", `"prompt":"The harbour","structured_outputs":{"regex":"[0-9]{5}"}`},
	}
}

func responseMembers() [][2]string {
	return [][2]string{
		{"text", `"input":"Hello"`},
		{"items", `"input":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"},` +
			`{"role":"user","content":"Again"}]`},
		{"typed parts", `"input":[{"type":"message","role":"user","content":[{"type":"input_text",` +
			`"text":"Hello"}]}]`},
		{"instructions", `"input":"Hello","instructions":"Be brief."`},
		{"metadata", `"input":"Hello","metadata":{"a":"b"}`},
		{"top_p", `"input":"Hello","top_p":0.9`},
		{"tools", `"input":"Weather in Oslo?","tools":[{"type":"function","name":"get_weather",` +
			`"parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`},
		{"json schema", `"input":"A city","text":{"format":{"type":"json_schema","name":"c","schema":` +
			citySchema + `}}`},
	}
}

// errorCases are requests that servers refuse.
func errorCases() (out []testCase) {
	const (
		hello = `[{"role":"user","content":"Hello"}]`
		stops = `,"stop":[" ","e","a","\n"]`
	)
	for _, e := range [][2]string{
		{"temperature", `"messages":` + hello + `,"temperature":-3`},
		{"top_p", `"messages":` + hello + `,"top_p":7`},
		{"n 0", `"messages":` + hello + `,"n":0`},
		// A server that takes such a limit for none, or for its own, stops at the first word.
		{"negative limit", `"messages":` + hello + `,"max_tokens":-5` + stops},
		{"limit too high", `"messages":` + hello + `,"max_tokens":100000` + stops},
		{"too many logprobs", `"messages":` + hello + `,"logprobs":true,"top_logprobs":900`},
		{"bad schema", `"messages":` + hello + `,"response_format":{"type":"json_schema"}`},
		{"bad regex", `"messages":` + hello + `,"structured_outputs":{"regex":"(("}`},
		{"tool choice without tools", `"messages":` + hello + `,"tool_choice":"required"`},
		{"limit as text", `"messages":` + hello + `,"max_tokens":"many"`},
		{"no messages", `"stream":false`},
		{"empty messages", `"messages":[]`},
		{"role", `"messages":[{"role":"wizard","content":"Hello"}]`},
		{"content as number", `"messages":[{"role":"user","content":7}]`},
		{"too long", `"messages":[{"role":"user","content":"` + strings.Repeat("harbour ", 9000) + `"}]`},
	} {
		members := e[1]
		if !strings.Contains(members, `"max_`) {
			members += `,"max_tokens":12` // for a server that takes it nevertheless
		}
		if !strings.Contains(members, `"temperature"`) {
			members += `,"temperature":0`
		}
		out = append(out, testCase{
			name: "error/" + e[0], path: chatPath,
			body: fmt.Sprintf(`{"model":%q,%s}`, tiny, members),
		})
	}
	return append(out,
		testCase{name: "error/no JSON", path: chatPath, body: `{"model":`},
		testCase{name: "error/a list", path: chatPath, body: `[]`},
		testCase{name: "error/model", path: chatPath, body: `{"model":"nobody","messages":` + hello + `}`})
}

// otherCases are requests to what vLLM serves beside the model's text.
func otherCases() []testCase {
	const chat = `"messages":[{"role":"user","content":"The harbour opens at nine."}]`
	var out []testCase
	for _, c := range [][3]string{
		{"tokenize/text", tokenizePath, `"prompt":"The harbour opens at nine."`},
		{"tokenize/chat", tokenizePath, chat},
		{"tokenize/tools", tokenizePath, chat + `,"tools":[` + weatherTool + `]`},
		{"tokenize/with words", tokenizePath, chat + `,"return_token_strs":true`},
		{"error/embeddings of a model without", "/v1/embeddings", `"input":"The harbour"`},
	} {
		out = append(out, testCase{name: c[0], path: c[1], body: fmt.Sprintf(`{"model":%q,%s}`, tiny, c[2])})
	}
	return out
}

// allCases are the requests of the table, for a model with the members that vLLM has.
func allCases() []testCase {
	out := errorCases()
	const hello = `{"role":"user","content":"Say something about the harbour."}`
	add := func(api, path, name, members string) {
		for _, stream := range []struct{ name, members string }{
			{"whole", ``},
			{"stream", `,"stream":true`},
			{"stream, usage", `,"stream":true,"stream_options":{"include_usage":true}`},
			{"stream, running usage", `,"stream":true,"stream_options":{"include_usage":true,` +
				`"continuous_usage_stats":true}`},
		} {
			if strings.Contains(stream.name, ",") && (path == responsePath || name != "plain" && name != "n 2") {
				continue
			}
			out = append(out, testCase{
				name: api + "/" + name + "/" + stream.name, path: path,
				body: fmt.Sprintf(`{"model":%q%s%s}`, tiny, members, stream.members),
			})
		}
	}
	chat := func(name, messages, members string) {
		members = strings.TrimSuffix(`,"messages":[`+messages+`],`+members, ",")
		if !strings.Contains(members, `"temperature"`) {
			members += `,"temperature":0`
		}
		if !strings.Contains(members, `"max_`) {
			members += `,"max_tokens":12`
		}
		add("chat", chatPath, name, members)
	}
	for _, m := range chatMembers() {
		chat(m[0], hello, m[1])
	}
	for _, m := range chatTalks() {
		chat(m[0], m[1], "")
	}
	for _, m := range completionMembers() {
		members := "," + m[1] + `,"max_tokens":12`
		if !strings.Contains(members, `"temperature"`) {
			members += `,"temperature":0`
		}
		add("completion", completionPath, m[0], members)
	}
	for _, m := range responseMembers() {
		add("response", responsePath, m[0], ","+m[1]+`,"max_output_tokens":40,"temperature":0`)
	}
	return out
}
