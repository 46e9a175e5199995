// Package warm makes endpoints read stored contexts before they are needed, if that delays nobody.
// It sends a real request to where requests with the context will go, unless the context is known
// to be cached there, or another replica is doing the same.
//
// Everything exported is safe for concurrent use. Reader.Run owns a goroutine for each context read
// in the background, up to 16, and returns when they have ended.
package warm
