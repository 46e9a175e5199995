// Package kv holds what operators and model servers state about a server's key-value cache: its
// size, whether prompts share it, what runs on the server now, and from which other server it can
// fetch missing blocks.
//
// The package places no requests; package affinity does, with these values. All statements of a
// server are hints: a server that reports nothing, or nonsense, is served as before.
//
// Everything is safe for concurrent use. Watch owns one goroutine per polled endpoint and returns
// when they have ended; nothing else starts a goroutine.
package kv
