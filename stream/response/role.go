package response

import "maps"

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

// roles are what members are, by what they are in and their names.
//
//nolint:gochecknoglobals // constant table
var roles = func() (of [stopReason + 1]map[string]role) {
	ofMessage := map[string]role{
		"content": content, "refusal": refusal, "reasoning": reasoning,
		"reasoning_content": reasoningContent, "tool_calls": toolCalls,
		"function_call": functionCall, "role": messageRole, "audio": audio, "token_id": tokenID,
	}
	ofItem := map[string]role{
		"type": partType, "text": partText, "refusal": partRefusal, "logprobs": logprobs,
		"thinking": thinking, "content": content, "summary": summary, "arguments": arguments,
		"input": input, "name": toolName,
	}
	ofThinking := maps.Clone(ofItem)
	ofThinking["text"] = thinkingText
	ofResponse := map[string]role{
		"output": output, "status": status, "incomplete_details": incomplete,
		"output_text": outputText, "usage": usage,
	}
	ofTop := map[string]role{
		"id": headMember, "created": headMember, "model": headMember,
		"system_fingerprint": headMember, "service_tier": headMember,
		"object": objectName, "choices": choices, "error": errorValue, "x_signalbox": extension,
		"obfuscation": dull, // OpenAI pads chunks with it
		"type":        typeName, "logprobs": topLogprobs,
		// Of the Responses API alone.
		"delta": topDelta, "text": topText, "refusal": topRefusal, "arguments": topArguments,
		"input": topInput, "code": topCode, "output_index": outputIndex,
		"content_index": contentIndex, "summary_index": summaryIndex, "item_id": itemID,
		"sequence_number": sequence, "response": response, "item": item, "part": part,
	}
	maps.Copy(ofTop, ofResponse)
	ofFunction := map[string]role{
		"index": index, "function": function, "custom": custom, "arguments": arguments,
		"input": input, "name": toolName,
	}
	ofFunctionCall := maps.Clone(ofFunction)
	ofFunctionCall["arguments"] = callArguments
	ofToolCall := maps.Clone(ofFunction)
	ofToolCall["id"], ofToolCall["type"] = callID, callType
	ofUsage := map[string]role{
		"prompt_tokens": tokensIn, "input_tokens": tokensIn,
		"completion_tokens": tokensOut, "output_tokens": tokensOut, "total_tokens": tokensTotal,
		"prompt_tokens_details": tokenDetails, "input_tokens_details": tokenDetails,
		"completion_tokens_details": tokenDetails, "output_tokens_details": tokenDetails,
		"cached_tokens": cachedTokens, "reasoning_tokens": reasoningTokens,
	}
	of[topLevel], of[response], of[delta], of[message] = ofTop, ofResponse, ofMessage, ofMessage
	of[choice] = map[string]role{
		"index": index, "delta": delta, "message": message, "text": completionText,
		"finish_reason": finishReason, "logprobs": logprobs, "token_ids": tokenIDs,
		"stop_reason": stopReason,
	}
	of[item], of[part], of[contentPart], of[summaryPart] = ofItem, ofItem, ofItem, ofItem
	of[thinkingPart], of[toolCall], of[functionCall] = ofThinking, ofToolCall, ofFunctionCall
	of[function], of[custom], of[usage], of[tokenDetails] = ofFunction, ofFunction, ofUsage, ofUsage
	of[incomplete] = map[string]role{"reason": reason}
	return of
}()

// member returns what the value of a member is.
func member(of role, name []byte) role { return roles[of][string(name)] }

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
