// Package warm has endpoints read stored contexts ahead of the requests that will name them, where
// nobody would have to wait for that: a real request goes to where those will, unless what is there
// is known to be enough, or another replica is at it.
//
// Everything exported is safe for concurrent use. Reader.Run owns a goroutine for each context that
// is read in passing, up to 16, and returns when they have ended.
package warm
