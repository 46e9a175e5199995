package classify

import (
	"context"
	"time"

	"signalbox/internal/signal"
)

// detectLanguage determines the language of the last user message. A message that is in no
// recognisable language, or too short to decide, is unknown (undecided): a guess would be a default
// label. In a conversation an undecided message has the language of the turn before.
func detectLanguage(ctx context.Context, req *request, t *history) signal.Value {
	start := time.Now()
	v := signal.Value{State: signal.Unknown, Reason: signal.ReasonUndecided, Source: "language"}
	told := req.language()
	if told.Code == "" && t != nil && t.before != nil && t.after.language != "" {
		told.Code, told.Probability, v.Leans = t.after.language, t.after.sure, 1
	}
	if told.Code != "" {
		v.State, v.Reason, v.Label, v.Score = signal.Known, signal.ReasonNone, told.Code, told.Probability
	} else if empty, err := blank(ctx, req.text.LastUser); err != nil {
		v.Reason = reasonOf(ctx, err)
	} else if empty {
		v.Reason = signal.ReasonNoText
	}
	v.Elapsed = time.Since(start)
	return v
}
