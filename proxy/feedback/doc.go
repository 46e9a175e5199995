// Package feedback determines how good responses were: from ratings by callers, and from signs. A
// sign comes from the next request of a conversation, or from the response itself. The package
// stores nothing: memory/outcomes stores outcomes, and memory/outcomes/signs the turns that await a
// sign.
package feedback
