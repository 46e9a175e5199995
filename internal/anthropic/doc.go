// Package anthropic reads requests to the Messages API of Anthropic as chat completions, and spells
// errors as that API does.
//
// ToChat is a translation at the edge: what comes out is the body of a chat completion, which
// internal/openai parses as strictly as any other, so that every check that holds for chats holds
// for messages. Strings are carried over with the bytes that the client sent; nothing is decoded
// and encoded again but the input of an earlier tool call, which a chat holds as a string.
//
// What a chat has no place for is refused where an answer would be another without it, and else
// left out and told; see Request. Answers are turned by stream/messages.
//
// The package has no goroutines and no state.
package anthropic
