package proxy

import (
	"net/http"
	"time"

	"signalbox/proxy/downstream"
)

// slowStart is the time that a client has before its pace counts.
const slowStart = 5 * time.Second

// pace is how fast a client has to send a body. It belongs to one request.
type pace struct {
	begun   time.Time
	pause   time.Duration // that it may make; 0 for ever
	rate    int           // bytes a second on average; 0 for any
	renewed time.Time     // when the deadline was set
	until   time.Time     // the deadline
}

// limitBodyTime bounds the time that a body may take which nobody reads: the server reads on before
// it answers.
func (st *State) limitBodyTime(w *downstream.Writer, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	limit := slowStart
	if pause := time.Duration(st.opts.BodyTimeout); pause > 0 {
		limit = min(limit, pause)
	}
	w.Expects = w.Start.Add(limit)
	_ = w.Control.SetReadDeadline(w.Expects) // a reader without deadlines has none to miss
}

// pace goes on from the deadline that limitBodyTime set, which most bodies never need moved.
func (st *State) pace(w *downstream.Writer) pace {
	c := pace{begun: w.Start, pause: time.Duration(st.opts.BodyTimeout), rate: int(st.limits.MinBodyRate)}
	if c.pause > 0 || c.rate > 0 {
		c.renewed, c.until = w.Start, w.Expects
	}
	return c
}

// renew moves the deadline of the read to come; read is how many bytes are here. Moving it costs a
// system call's worth, so it is moved when it matters.
func (c *pace) renew(w *downstream.Writer, read int) {
	now := time.Now()
	if c.pause <= 0 && c.rate <= 0 {
		if c.renewed.IsZero() {
			c.renewed = now
			_ = w.Control.SetReadDeadline(time.Time{})
		}
		return
	}
	var until time.Time
	if c.pause > 0 {
		until = now.Add(c.pause)
	}
	if c.rate > 0 {
		if by := c.begun.Add(slowStart + time.Duration(float64(read+1)/float64(c.rate)*float64(time.Second))); until.IsZero() || by.Before(until) {
			until = by
		}
	}
	if step := c.step(); !c.until.IsZero() && until.Sub(c.until) < step && now.Sub(c.renewed) < step {
		return
	}
	c.renewed, c.until = now, until
	_ = w.Control.SetReadDeadline(until) // a reader without deadlines has none to miss
}

// step is by how much the deadline may lag behind.
func (c *pace) step() time.Duration {
	if c.pause <= 0 {
		return time.Second
	}
	return min(c.pause/4, time.Second)
}

// lift takes the deadline away when the body is here: what is read from then on only tells that the
// client has gone.
func (c *pace) lift(w *downstream.Writer) {
	if !c.until.IsZero() {
		_ = w.Control.SetReadDeadline(time.Time{})
	}
}
