package record

import (
	"encoding/json"
	"fmt"
	"testing"

	"signalbox/proxy/auth"
	"signalbox/proxy/decisionlog"
)

func TestAFloodOfRefusedRequestsWritesFewLines(t *testing.T) {
	t.Parallel()
	var s refusals
	offered, written := int64(0), int64(0)
	refuse := func(key, limit string) (lines int) {
		l := refusedLine{decisionlog.NewRefusal()}
		l.Limit, l.Refused = limit, 1
		offered++
		if s.first(&l, &auth.Principal{Name: key, Tenant: "t"}) {
			written += l.Refused
			return 1
		}
		return 0
	}
	minute := func() (lines int) {
		for _, l := range s.take() {
			written += l.Refused
			lines++
		}
		return lines
	}
	lines := 0
	for range 1000 {
		lines += refuse("one", "requests")
		lines += refuse("one", "tokens")
	}
	if lines != 2 {
		t.Errorf("a flood writes %d lines at once", lines)
	}
	if n := minute(); n != 2 || written != offered {
		t.Errorf("and %d after a minute, with %d of %d requests", n, written, offered)
	}
	if n := refuse("one", "requests") + minute() + minute() + minute(); n != 1 {
		t.Errorf("one more, in the minute after, is in %d lines", n)
	}
	if n := refuse("one", "requests"); n != 1 {
		t.Error("after a minute without any the first is not written at once")
	}
	minute()
	lines = 0
	for i := range 10 * refusedMost {
		lines += refuse(fmt.Sprint("caller-", i), "requests")
	}
	if lines > refusedMost+1 {
		t.Errorf("%d callers write %d lines at once", 10*refusedMost, lines)
	}
	if n := minute(); n > refusedMost+1 || len(s.since) > refusedMost+1 || written != offered {
		t.Errorf("%d lines after a minute, %d callers are kept; %d of %d requests", n, len(s.since), written, offered)
	}
}

func TestALineOfRefusedRequestsSaysWhose(t *testing.T) {
	t.Parallel()
	var s refusals
	who := &auth.Principal{Name: "app", Tenant: "lab", Role: "staff"}
	var last *refusedLine
	for i := range 3 {
		last = &refusedLine{decisionlog.NewRefusal()}
		last.ID, last.Limit, last.Refused = fmt.Sprint("r-", i), "concurrency", 1
		s.first(last, who)
	}
	lines := s.take()
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	b, err := lines[0].AppendLine(nil)
	if err != nil {
		t.Fatal(err)
	}
	var got decisionlog.Refusal
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != "r-2" || got.Key != "app" || got.Request.Tenant != "lab" || got.Request.Role != "staff" ||
		got.Limit != "concurrency" || got.Refused != 2 || got.Outcome != "refused" {
		t.Errorf("%s", b)
	}
	if _, err := decisionlog.Parse(b); err != decisionlog.ErrRefusal { //nolint:errorlint // it is not wrapped
		t.Errorf("it is read as %v", err)
	}
}
