// Package explain tells why a request was decided as it was, and what would be done with it, or
// was: the answer of the explain endpoint, of the command, and of x_signalbox.decision. It decides
// nothing: it runs what the decision ran once more, with its reasons.
package explain
