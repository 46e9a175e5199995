// Package chain writes the text of stored contexts and messages as the chain of blocks by which
// package affinity identifies prompts, in the order in which a model reads them.
package chain
