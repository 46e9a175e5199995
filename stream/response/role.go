package response

// role is what a value is, by where it stands. The role of an object or a list says what its
// members are. Roles of members that are read are below 64: a set of them is one word.
type role uint8

const (
	ignored role = iota
	// Of the top level of all shapes.
	topLevel
	headMember
	objectName
	typeName
	extension
	errorValue
	usage
	choices
	dull // does not matter to anybody when a text is left out
	// Of the top level of the Responses API.
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
	// Of a call of a tool.
	callID
	callType
	// Of a choice, from vLLM: the text or the token that it stopped at.
	stopReason
)

// member returns what the value of a member is.
func member(of role, name []byte) role {
	switch of { //nolint:exhaustive // the rest has no members that are read
	case topLevel:
		return topMember(name)
	case choice:
		return choiceMember(name)
	case delta, message:
		return messageMember(name)
	case response, item, part, contentPart, summaryPart, thinkingPart:
		return itemMember(of, name)
	case toolCall, function, custom, functionCall:
		return callMember(of, name)
	case usage, tokenDetails:
		return usageMember(name)
	case incomplete:
		if string(name) == "reason" {
			return reason
		}
	default:
	}
	return ignored
}

func topMember(name []byte) role {
	switch string(name) {
	case "id", "created", "model", "system_fingerprint", "service_tier":
		return headMember
	case "object":
		return objectName
	case "choices":
		return choices
	case "usage":
		return usage
	case "error":
		return errorValue
	case "x_signalbox":
		return extension
	case "obfuscation": // OpenAI pads chunks with it
		return dull
	case "type":
		return typeName
	case "logprobs":
		return topLogprobs
	}
	return responsesMember(name)
}

// responsesMember is for names that only the Responses API has at the top level.
func responsesMember(name []byte) role {
	switch string(name) {
	case "delta":
		return topDelta
	case "text":
		return topText
	case "refusal":
		return topRefusal
	case "arguments":
		return topArguments
	case "input":
		return topInput
	case "code":
		return topCode
	case "output_index":
		return outputIndex
	case "content_index":
		return contentIndex
	case "summary_index":
		return summaryIndex
	case "item_id":
		return itemID
	case "sequence_number":
		return sequence
	case "response":
		return response
	case "item":
		return item
	case "part":
		return part
	}
	return responseMember(name)
}

func responseMember(name []byte) role {
	switch string(name) {
	case "output":
		return output
	case "status":
		return status
	case "incomplete_details":
		return incomplete
	case "output_text":
		return outputText
	case "usage":
		return usage
	}
	return ignored
}

func choiceMember(name []byte) role {
	switch string(name) {
	case "index":
		return index
	case "delta":
		return delta
	case "message":
		return message
	case "text":
		return completionText
	case "finish_reason":
		return finishReason
	case "logprobs":
		return logprobs
	case "token_ids":
		return tokenIDs
	case "stop_reason":
		return stopReason
	}
	return ignored
}

func messageMember(name []byte) role {
	switch string(name) {
	case "content":
		return content
	case "refusal":
		return refusal
	case "reasoning":
		return reasoning
	case "reasoning_content":
		return reasoningContent
	case "tool_calls":
		return toolCalls
	case "function_call":
		return functionCall
	case "role":
		return messageRole
	case "audio":
		return audio
	case "token_id":
		return tokenID
	}
	return ignored
}

// itemMember is for the members of a response, of an output item and of a part of its content, and
// of a part of a message.
func itemMember(of role, name []byte) role {
	if of == response {
		return responseMember(name)
	}
	switch string(name) {
	case "type":
		return partType
	case "text":
		if of == thinkingPart {
			return thinkingText
		}
		return partText
	case "refusal":
		return partRefusal
	case "logprobs":
		return logprobs
	case "thinking":
		return thinking
	case "content":
		return content
	case "summary":
		return summary
	case "arguments":
		return arguments
	case "input":
		return input
	case "name":
		return toolName
	}
	return ignored
}

func callMember(of role, name []byte) role {
	switch string(name) {
	case "index":
		return index
	case "function":
		return function
	case "custom":
		return custom
	case "arguments":
		if of == functionCall {
			return callArguments
		}
		return arguments
	case "input":
		return input
	case "name":
		return toolName
	}
	if of == toolCall {
		switch string(name) {
		case "id":
			return callID
		case "type":
			return callType
		}
	}
	return ignored
}

func usageMember(name []byte) role {
	switch string(name) {
	case "prompt_tokens", "input_tokens":
		return tokensIn
	case "completion_tokens", "output_tokens":
		return tokensOut
	case "total_tokens":
		return tokensTotal
	case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
		return tokenDetails
	case "cached_tokens":
		return cachedTokens
	case "reasoning_tokens":
		return reasoningTokens
	}
	return ignored
}

// element returns what the elements of a list are.
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

// kind returns what the text of a string is, and whether the string is a text at all.
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

// repeated reports whether a member may be named twice: it is not read, or read from a list of
// names that no text or end depends on.
func (r role) repeated() bool {
	return r == ignored || r == headMember || r == dull || r >= tokensIn
}

// The roles of members that may not be named twice fit into a word.
const _ = uint(64 - tokensIn)
