// Package feedback reads how good answers were: from what callers say of them, and from signs,
// which the next request of a conversation gives of the answer before it, and an answer of itself.
// It keeps nothing: package memory/outcomes does, and memory/outcomes/signs the turns that are
// waited for.
package feedback
