package decide

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// Describe writes the headers that say what the decision was. It leaves out what is known only once
// an endpoint answers.
func (d *Decision) Describe(h http.Header) {
	values := [...]string{d.Route, "off", "off", d.Timing(0, 0)} // in one piece
	h["X-Signalbox-Route"] = values[0:1:1]
	h["X-Signalbox-Cache"] = values[1:2:2]
	h["X-Signalbox-Guard"] = values[2:3:3]
	h["Server-Timing"] = values[3:4:4]
	d.DescribeSaving(h)
	if v := d.Set.Value(signal.Domain); v.State == signal.Known {
		h["X-Signalbox-Domain"] = []string{headerText(v.Label)}
		h["X-Signalbox-Confidence"] = []string{strconv.FormatFloat(v.Score, 'f', 3, 64)}
	}
	if lost := append(d.Degraded(), d.Lacking...); len(lost) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(lost, ",")}
	}
}

// DescribeSaving writes the headers that say what the request saves with, and its arm, which
// depends on that.
func (d *Decision) DescribeSaving(h http.Header) {
	if saves := d.Saving.String(); saves != "" {
		h["X-Signalbox-Budget"] = []string{saves}
	}
	delete(h, "X-Signalbox-Arm")
	d.describeArm(h)
}

// DescribePlace writes the headers that say where the request went; first is where it should have.
// effort is empty where nothing was said of reasoning.
func (d *Decision) DescribePlace(h http.Header, m *backend.Model, e *pool.Endpoint, effort string, first *backend.Model) {
	values := [...]string{m.Name, e.Name, effort} // in one piece
	h["X-Signalbox-Model"] = values[0:1:1]
	h["X-Signalbox-Endpoint"] = values[1:2:2]
	h["X-Signalbox-Reasoning"] = values[2:3:3]
	d.Talk.answeredBy(m)
	d.Talk.describe(h)
	lost := append(d.Degraded(), d.Lacking...)
	if m != first {
		lost = append(lost, "fallback")
	}
	delete(h, "X-Signalbox-Degraded") // an attempt before this one may have set it
	if len(lost) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(lost, ",")}
	}
}

// Timing is the value of Server-Timing, in milliseconds with one decimal. queue is the time between
// the decision and the attempt that was answered, upstream that attempt's time to its head.
func (d *Decision) Timing(queue, upstream time.Duration) string {
	b := make([]byte, 0, 96)
	for i, part := range [...]struct {
		name string
		d    time.Duration
	}{{"decide;dur=", d.Elapsed}, {"classify;dur=", d.Classified}, {"queue;dur=", queue}, {"upstream;dur=", upstream}} {
		if i > 0 {
			b = append(b, ", "...)
		}
		tenths := (max(part.d, 0) + 50*time.Microsecond) / (100 * time.Microsecond)
		b = strconv.AppendInt(append(b, part.name...), int64(tenths/10), 10)
		b = append(b, '.', byte('0'+tenths%10))
	}
	return string(b)
}

// maxHeaderText is how much of a label a header shows, in bytes: as much as a name of the
// configuration may have.
const maxHeaderText = 200

// headerText makes a label fit for a header; labels come from model files.
func headerText(s string) string {
	s = s[:min(len(s), maxHeaderText)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
