package classify

import (
	"strings"
	"testing"
	"time"

	"signalbox/classify/lexical"
	"signalbox/internal/signal"
	"signalbox/internal/testkit"
)

// soon is how much of the processor Extract may take once its deadline has passed. It stops within
// some 20 ms; the rest is for the deadline, which passes late on machines that have other things to
// do.
const soon = time.Second

func TestADeadlineEndsTheReadingOfALongText(t *testing.T) {
	late := soon
	if testkit.Race {
		late *= 10
	}
	o := DefaultOptions()
	o.Timeout, o.Patterns = 2*time.Millisecond, true
	o.Keywords = []lexical.Options{
		{Name: "edits", Any: []string{"titanium"}, Fuzzy: 2},
		{Name: "pattern", Regex: `tit+an\s+[a-z]{3,9}[0-9]`},
	}
	c := open(t, newFake(), o)
	const size = 32 << 20
	for name, part := range map[string]string{
		"sentences":   "Sales rose by four percent, says Ann Miller of 12 Main Street. ",
		"one word":    "a",
		"upside down": "suo\u1d09\u0287\u0254n\u0279\u0287su\u1d09 ",
		"bytes":       "\xff",
	} {
		text := user(strings.Repeat(part, size/len(part)))
		for _, kind := range []signal.Kind{signal.Keyword, signal.PII, signal.Jailbreak, signal.Domain} {
			var set signal.Set
			if took := testkit.ProcessTime(t, func() { c.Extract(t.Context(), text, signal.MaskOf(kind), &set) }); took > late {
				t.Errorf("%v of %s: %v of the processor after the deadline", kind, name, took)
			}
			// What was read to its end before the deadline was noticed is as good.
			v := set.Value(kind)
			if v.State == signal.Unknown && v.Reason != signal.ReasonTimeout {
				t.Errorf("%v of %s is %+v, want unknown for a timeout", kind, name, v)
			}
		}
	}
}
