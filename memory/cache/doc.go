// Package cache keeps answers and gives them again: to the same request (exact), and to a request
// that asks the same in other words (semantic).
//
// A request is identified once (Identifier.Identify). Its Key is a SHA-256 of everything that the
// answer may depend on, so that an equal key had the equal decision of the same rules; its
// Partition is the same without the words of the last question, so that questions meet only where
// tenant, role, model, system prompt, earlier turns, tools and parameters agree. A semantic hit
// needs both a near embedding and package question to find no difference between the two texts.
// Requests whose answers are not to be repeated are refused with a Reason: a high temperature,
// several choices, tool results, pictures, state kept elsewhere.
//
// An Answer is a whole body or a stream with the times of its events; Replay gives a stream at its
// pace. What it says, whether it is whole and how it looks as the other of the two is not known
// here: see stream/response.
//
// A Store holds answers by key: Local in this process, Redis for several. An Index holds the
// questions of this process. Everything is safe for concurrent use and starts no goroutine.
package cache
