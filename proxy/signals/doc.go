// Package signals computes the signals of requests with the classifier of one configuration, and
// reports them as the API, logs and explanations do: with configured names and thresholds,
// positions in code points, and by origin of the text.
//
// It declares the interfaces that the proxy requires of models, Classifier and its optional
// extensions, and parses the bodies of requests for signals. It does not evaluate rules: the caller
// decides which signals are needed and what follows from them.
package signals
