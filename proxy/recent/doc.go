// Package recent keeps what was decided lately, for operators who look at it: the last decisions,
// what became of conversations, and what requests have cost since the process started. A decision
// is kept as it was taken down and written out when somebody looks, or when the configuration that
// it was made by is replaced.
//
// It knows no way of a request: Count and Add tell it of those that have ended.
package recent
