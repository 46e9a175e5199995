// Package recent keeps recent decisions for operators: the last decisions, what became of
// conversations, and the cost of requests since the process started. A decision is kept in its raw
// form and rendered when an operator looks at it, or when its configuration is replaced.
//
// It has no part in serving requests: Count and Add report those that have ended.
package recent
