package response

import "slices"

// role is the meaning of a value, given its position. The role of an object or a list determines
// the roles of its members. Roles of members that are read are below 64, so that a set of them fits
// in one word.
type role uint8

const (
	ignored role = iota
	// Top level, all shapes.
	topLevel
	headMember
	objectName
	typeName
	extension
	errorValue
	usage
	choices
	dull // can be lost when a text is omitted
	// Top level, Responses API.
	topDelta
	topText
	topRefusal
	topArguments
	topInput
	topCode
	topLogprobs
	outputIndex
	contentIndex
	summaryIndex
	itemID
	sequence
	response
	item
	part
	output
	status
	incomplete
	reason
	outputText // all texts of a response as one
	// Of a choice.
	choice
	index
	delta
	message
	completionText
	finishReason
	logprobs
	tokenIDs
	// Of a delta or message.
	content
	refusal
	reasoning
	reasoningContent
	toolCalls
	functionCall
	messageRole
	audio
	tokenID
	contentPart
	partText
	partRefusal
	partType
	thinking
	thinkingPart
	thinkingText
	toolCall
	function
	custom
	arguments
	callArguments
	toolName
	input
	// Of an output item.
	summary
	summaryPart
	// Of a usage.
	tokensIn
	tokensOut
	tokensTotal
	tokenDetails
	cachedTokens
	reasoningTokens
	// Of a tool call.
	callID
	callType
	// Of a choice, from vLLM: the text or the token that it stopped at.
	stopReason
)

// named is a member name with its role.
type named struct {
	name string
	role role
}

// roles maps each role to the names and roles of its members. A short list with frequent members
// first is faster than a map. If a name occurs twice, the first entry counts.
//
//nolint:gochecknoglobals // constant table
var roles = func() (of [stopReason + 1][]named) {
	is := func(name string, r role) named { return named{name, r} }
	ofMessage := []named{
		is("content", content), is("role", messageRole), is("reasoning_content", reasoningContent),
		is("reasoning", reasoning), is("tool_calls", toolCalls), is("function_call", functionCall),
		is("refusal", refusal), is("audio", audio), is("token_id", tokenID),
	}
	ofItem := []named{
		is("type", partType), is("text", partText), is("refusal", partRefusal), is("logprobs", logprobs),
		is("thinking", thinking), is("content", content), is("summary", summary),
		is("arguments", arguments), is("input", input), is("name", toolName),
	}
	ofResponse := []named{
		is("output", output), is("status", status), is("incomplete_details", incomplete),
		is("output_text", outputText), is("usage", usage),
	}
	ofTop := slices.Concat([]named{
		is("id", headMember), is("object", objectName), is("created", headMember),
		is("model", headMember), is("choices", choices), is("type", typeName),
		is("system_fingerprint", headMember), is("service_tier", headMember),
		is("obfuscation", dull), // OpenAI pads chunks with it
		is("error", errorValue), is("x_signalbox", extension), is("logprobs", topLogprobs),
	}, ofResponse, []named{ // only in the Responses API
		is("delta", topDelta), is("text", topText), is("refusal", topRefusal),
		is("arguments", topArguments), is("input", topInput), is("code", topCode),
		is("output_index", outputIndex), is("content_index", contentIndex),
		is("summary_index", summaryIndex), is("item_id", itemID), is("sequence_number", sequence),
		is("response", response), is("item", item), is("part", part),
	})
	ofFunction := []named{
		is("index", index), is("function", function), is("custom", custom),
		is("arguments", arguments), is("input", input), is("name", toolName),
	}
	ofUsage := []named{
		is("prompt_tokens", tokensIn), is("completion_tokens", tokensOut),
		is("total_tokens", tokensTotal), is("cached_tokens", cachedTokens),
		is("reasoning_tokens", reasoningTokens), is("prompt_tokens_details", tokenDetails),
		is("completion_tokens_details", tokenDetails), is("input_tokens", tokensIn),
		is("output_tokens", tokensOut), is("input_tokens_details", tokenDetails),
		is("output_tokens_details", tokenDetails),
	}
	of[topLevel], of[response], of[delta], of[message] = ofTop, ofResponse, ofMessage, ofMessage
	of[choice] = []named{
		is("index", index), is("delta", delta), is("logprobs", logprobs),
		is("finish_reason", finishReason), is("stop_reason", stopReason), is("token_ids", tokenIDs),
		is("text", completionText), is("message", message),
	}
	of[item], of[part], of[contentPart], of[summaryPart] = ofItem, ofItem, ofItem, ofItem
	of[thinkingPart] = append([]named{is("text", thinkingText)}, ofItem...)
	of[toolCall] = append([]named{is("id", callID), is("type", callType)}, ofFunction...)
	of[functionCall] = append([]named{is("arguments", callArguments)}, ofFunction...)
	of[function], of[custom], of[usage], of[tokenDetails] = ofFunction, ofFunction, ofUsage, ofUsage
	of[incomplete] = []named{is("reason", reason)}
	return of
}()

// member returns the role of a member's value.
func member(of role, name []byte) role {
	for _, m := range roles[of] {
		if m.name == string(name) {
			return m.role
		}
	}
	return ignored
}

// element returns the role of a list's elements.
func element(of role) role {
	switch of { //nolint:exhaustive // the rest has no elements that are read
	case choices:
		return choice
	case toolCalls:
		return toolCall
	case content:
		return contentPart
	case summary:
		return summaryPart
	case thinking:
		return thinkingPart
	case output:
		return item
	default:
		return ignored
	}
}

// kind returns the kind of text in a string, and whether the string is a text at all.
func (r role) kind() (Kind, bool) {
	switch r { //nolint:exhaustive // the rest is no text
	case content, completionText, partText, topDelta, topText, outputText:
		return Text, true
	case refusal, partRefusal, topRefusal:
		return Refusal, true
	case reasoning, reasoningContent, thinkingText, thinking:
		return Reasoning, true
	case arguments, callArguments, input, topArguments, topInput, topCode:
		return Tool, true
	case toolName:
		return ToolName, true
	default:
		return 0, false
	}
}

// top reports whether a string is a text only if the event's type says so.
func (r role) top() bool { return r >= topDelta && r <= topCode }

// repeated reports whether a member may occur twice: either it is not read, or no text and no end
// depends on it.
func (r role) repeated() bool {
	return r == ignored || r == headMember || r == dull || r >= tokensIn
}

// The roles of members that must not occur twice fit into a word.
const _ = uint(64 - tokensIn)
