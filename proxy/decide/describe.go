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

// Describe writes the response headers that describe the decision. It omits those that are known
// only when an endpoint answers.
func (d *Decision) Describe(h http.Header) {
	values := [...]string{d.Route, "off", "off", d.Timing(0, 0)} // one allocation
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

// DescribeSaving writes the headers with the saving of the request and with its arm, which depends
// on the saving.
func (d *Decision) DescribeSaving(h http.Header) {
	if saves := d.Saving.String(); saves != "" {
		h["X-Signalbox-Budget"] = []string{saves}
	}
	delete(h, "X-Signalbox-Arm")
	d.describeArm(h)
}

// DescribePlace writes the headers that say where the request went; first is the model that should
// have served it. effort is empty when the request says nothing about reasoning.
func (d *Decision) DescribePlace(h http.Header, m *backend.Model, e *pool.Endpoint, effort string, first *backend.Model) {
	values := [...]string{m.Name, e.Name, effort} // one allocation
	h["X-Signalbox-Model"] = values[0:1:1]
	h["X-Signalbox-Endpoint"] = values[1:2:2]
	h["X-Signalbox-Reasoning"] = values[2:3:3]
	d.Talk.answeredBy(m)
	d.Talk.describe(h)
	lost := append(d.Degraded(), d.Lacking...)
	if m != first {
		lost = append(lost, "fallback")
	}
	delete(h, "X-Signalbox-Degraded") // an earlier attempt may have set it
	if len(lost) > 0 {
		h["X-Signalbox-Degraded"] = []string{strings.Join(lost, ",")}
	}
}

// Timing returns the value of Server-Timing, in milliseconds with one decimal. queue is the time
// between the decision and the attempt that was answered, upstream the time from that attempt to
// the response head.
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

// maxHeaderText limits a label in a header, in bytes. It is the maximum length of a name in the
// configuration.
const maxHeaderText = 200

// headerText makes a label safe for a header. Labels come from model files.
func headerText(s string) string {
	s = s[:min(len(s), maxHeaderText)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
