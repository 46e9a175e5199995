package classify

import (
	"time"

	"signalbox/classify/language"
	"signalbox/internal/signal"
)

// detectLanguage tells the language of the last user message. One that is too short to tell is
// unknown: a guess would be a default label.
func detectLanguage(req *request) signal.Value {
	start := time.Now()
	v := signal.Value{State: signal.Unknown, Reason: signal.ReasonNoText, Source: "language"}
	if code, p, ok := language.Detect(req.text.LastUser); ok {
		v.State, v.Reason, v.Label, v.Score = signal.Known, signal.ReasonNone, code, p
	}
	v.Elapsed = time.Since(start)
	return v
}
