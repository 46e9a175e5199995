package openai

import "strings"

// IsWord reports whether s is a word of the API, of JSON Schema (2020-12) or of chat templates,
// such as name, type, properties, string or auto: a list that is closed, and of words that say
// nothing by themselves. As names and as short strings they are not read, so that a tool without
// any name of its own costs nothing.
func IsWord(s []byte) bool {
	_, ok := words[string(s)]
	return ok
}

//nolint:gochecknoglobals // constant table
var words = func() map[string]struct{} {
	m := make(map[string]struct{})
	for _, names := range [][]string{
		chatNames, messageNames, partNames, toolCallNames, functionNames, streamOptionsNames,
		completionNames, bodyNames, itemNames, responseNames, responseItemNames, reasoningNames,
		promptNames, strings.Fields(schemaWords), strings.Fields(apiWords),
	} {
		for _, w := range names {
			m[w] = struct{}{}
		}
	}
	for i := range exemptions {
		m[exemptions[i].name] = struct{}{}
	}
	return m
}()

// schemaWords are the keywords and types of JSON Schema, drafts 4 to 2020-12, its formats, and the
// addresses of its drafts.
const schemaWords = `
$anchor $comment $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary additionalItems
additionalProperties allOf anyOf const contains contentEncoding contentMediaType contentSchema
default definitions dependencies dependentRequired dependentSchemas deprecated description else
enum examples exclusiveMaximum exclusiveMinimum format if items maxContains maxItems maxLength
maxProperties maximum minContains minItems minLength minProperties minimum multipleOf not nullable
oneOf pattern patternProperties prefixItems properties propertyNames readOnly required schema
strict then title type unevaluatedItems unevaluatedProperties uniqueItems writeOnly array boolean
integer null number object string date date-time duration email hostname idn-email idn-hostname
int32 int64 ipv4 ipv6 iri iri-reference json-pointer regex relative-json-pointer time uri
uri-reference uri-template uuid float double http://json-schema.org/draft-04/schema#
http://json-schema.org/draft-06/schema# http://json-schema.org/draft-07/schema#
https://json-schema.org/draft/2019-09/schema https://json-schema.org/draft/2020-12/schema`

// apiWords are names and values of the APIs that are read where they are something else.
const apiWords = `
assistant developer function system tool user parameters json_schema json_object text json grammar
choice custom mcp definition syntax lark annotations logprobs parsed index parallel_tool_calls
verbosity summary effort generate_summary none minimal low medium high xhigh max auto default
disabled flex priority scale concise detailed required any allowed_tools mode image_url image_file
image_embeds input_audio audio_url video_url file refusal thinking reasoning input_text
output_text input_image input_file input_video summary_text reasoning_text audio video message
item_reference reasoning function_call function_call_output custom_tool_call
custom_tool_call_output file_search file_search_call web_search web_search_preview web_search_call
code_interpreter code_interpreter_call computer_use_preview computer_call computer_call_output
computer_screenshot image_generation image_generation_call local_shell local_shell_call
local_shell_call_output shell apply_patch mcp_call mcp_list_tools mcp_approval_request
mcp_approval_response compaction logs image search open_page find url_citation file_citation
in_progress completed incomplete searching failed detail original file_id filename score
attributes logs query queries command keys text_search cache_control ephemeral include_usage
include_obfuscation continuous_usage_stats content_filter wav mp3 opus aac flac pcm pcm16 png jpeg
webp jsonl base64 float alloy ash ballad coral echo fable nova onyx sage shimmer verse cedar marin
voice search_context_size user_location approximate country city region timezone filters
enable_thinking thinking_budget add_generation_prompt modalities store seed service_tier
encoding_format truncation temperature top_p top_k min_p frequency_penalty presence_penalty
repetition_penalty top_logprobs background max_tool_calls prompt_cache_retention in_memory 24h
in-memory dimensions contents contexts doc_id snippet source`
