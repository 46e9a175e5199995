package response

import "strconv"

// Numbering numbers the outgoing events of a stream of the Responses API. From the first event that
// was inserted by the proxy or follows an omitted one, each event has the number after the previous
// one, because clients may take a repeated number for a duplicate and a gap for a loss. Before
// that, and if the server sends no numbers, events are unchanged. The zero value is ready for one
// stream.
type Numbering struct {
	last  int  // the last number sent
	known bool // last is valid
	added bool // an event was inserted or omitted
	data  []byte
}

// Reset prepares for another stream and keeps the buffer.
func (n *Numbering) Reset() { *n = Numbering{data: n.data[:0]} }

// Number sets the number of the next outgoing chunk. In steady state it does not allocate.
func (n *Numbering) Number(c *Chunk) {
	n.added = n.added || c.LeftOut
	if c.reader == nil || c.reader.shape != Response || !c.IsMessage() {
		return
	}
	l := &c.Content().layout
	at, number := l.sequenceAt, l.sequence
	if !at.Present() || number < 0 {
		return
	}
	if n.added = n.added || c.own; n.added && n.known && number != n.last+1 {
		number = n.last + 1
		n.data = append(n.data[:0], c.Data[:at.Start]...)
		n.data = strconv.AppendInt(n.data, int64(number), 10)
		n.data = append(n.data, c.Data[at.End:]...)
		c.SetData(n.data)
	}
	n.last, n.known = number, true
}
