// Package signals reads the signals of requests, with the classifier of one configuration, and tells
// them as the API, the logs and explanations do: by the names and thresholds of the configuration,
// with places in code points, and by the origin of the text.
//
// It declares what the proxy wants of models, Classifier and what some of them can do beyond that,
// and reads the bodies of requests that ask for signals. It knows no rules: which signals are needed
// is for others to say, and what follows from them.
package signals
