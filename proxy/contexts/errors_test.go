package contexts

import (
	"errors"
	"strings"
	"testing"
	"time"

	"signalbox/memory"
)

func TestAContextThatCannotBeStoredIsNotCalledOutOfReach(t *testing.T) {
	t.Parallel()
	away := &memory.UnavailableError{RetryAfter: time.Second, Err: errors.New("redis")}
	for want, err := range map[string]error{
		"durability best_effort":      notMade(away, &memory.Draft{}),
		"not reachable at the moment": notMade(away, &memory.Draft{Parent: memory.Ref{ID: "ctx_a"}}),
	} {
		e := Wire(err)
		if e.Status != 503 || e.Code != "context_unavailable" ||
			!strings.Contains(e.Message, want) || RetryAfter(err) != 1 {
			t.Errorf("%+v, want %q", e, want)
		}
	}
}
