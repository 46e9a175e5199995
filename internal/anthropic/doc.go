// Package anthropic converts requests to Anthropic's Messages API to chat completions, and writes
// errors in the format of that API.
//
// ToChat translates at the edge. Its result is the body of a chat completion, which internal/openai
// parses as strictly as any other, so that all checks of chats apply to messages as well. Strings
// keep the bytes that the client sent. Nothing is decoded and encoded again, except the input of an
// earlier tool call, which a chat holds as a string.
//
// Parts that a chat cannot express are refused if the answer would differ without them. Otherwise
// they are left out and reported, see Request. Package stream/messages translates answers.
//
// The package starts no goroutines and has no state.
package anthropic
