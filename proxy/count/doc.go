// Package count has model servers count the tokens of a text or of a request, where they can. It
// does not say which model is asked, nor what takes the place of a count that nobody gives.
package count
