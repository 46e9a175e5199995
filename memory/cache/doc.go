// Package cache stores answers and returns them for equal requests (exact), and for requests with
// the same meaning in other words (semantic).
//
// A request is identified once (Identifier.Identify). Its Key is a SHA-256 of everything that the
// answer may depend on, so that an equal key had the same decision under the same rules. Its
// Partition is the same without the words of the last question, so that questions are only compared
// if tenant, role, model, system prompt, earlier turns, tools and parameters agree. A semantic hit
// requires a near embedding, and that package question finds no difference between the two texts.
// Requests whose answers must not be repeated are refused with a Reason: a high temperature,
// several choices, tool results, images, state kept elsewhere.
//
// An Answer is a whole body or a stream with the times of its events; a Player replays a stream at
// its pace. This package does not interpret answers, or convert bodies to streams and back: see
// stream/response.
//
// A Store holds answers by key: Local in this process, Redis for several. An Index holds the
// questions of this process. Everything is safe for concurrent use and starts no goroutine.
package cache
