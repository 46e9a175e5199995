package response

import "strconv"

// Numbering numbers the events of a stream of the Responses API as they leave: from the first one
// on that is our own, or that stands behind one that was left out, each has the number behind that of
// the one before, since clients may take an event whose number they have seen for a repetition, and a
// gap for a loss. Before that, and where a server tells no
// numbers, events stay as they are. The zero value is ready for one stream.
type Numbering struct {
	last  int  // the number that left last
	known bool // there is one
	added bool // an event of our own has left, or one has been left out
	data  []byte
}

// Reset prepares for another stream, and keeps the buffer.
func (n *Numbering) Reset() { *n = Numbering{data: n.data[:0]} }

// Number sets the number of a chunk that leaves next. It costs no allocation.
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
