// Package kv is what an operator and a model server say of the server's key-value cache: how much
// it holds, whether prompts share it, what runs there now, and from where it can take what it
// lacks.
//
// It places nothing; package affinity does, with what is read here. Everything that a server says
// is a hint: a server that says nothing, or nonsense, is served as before.
//
// Everything is safe for concurrent use. Watch owns one goroutine for each endpoint that is asked
// and returns when they have ended; nothing else starts one.
package kv
