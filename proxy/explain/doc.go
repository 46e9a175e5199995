// Package explain explains why a request was decided as it was, and how it is or would be served.
// This is the content of the explain endpoint, the command and x_signalbox.decision. It makes no
// decision: it repeats the evaluation and records the reasons.
package explain
