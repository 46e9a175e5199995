// Package count asks model servers to count the tokens of a text or request, where they can. It
// does not choose the models to ask, or what replaces a missing count.
package count
