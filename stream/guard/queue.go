package guard

import (
	"slices"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

// anyTime is the choice of an item that no text has to wait for.
const anyTime = response.Everything - 1

// passage is a piece of a lane in an event.
type passage struct {
	delta    int // index in the event's deltas
	lane     *lane
	from, to int    // in the lane
	ahead    byte   // the lane's last byte before it
	tail     byte   // its own last byte
	text     []byte // its text, while its event is processed
	free     bool   // a mark may precede it
	within   bool   // it may begin within a word
}

// wait requires the first claims of a lane to have verdicts.
type wait struct {
	lane   *lane
	claims int
}

// splice is a mark in a text of an event.
type splice struct {
	delta, at int    // index in the event's deltas, and offset in its text
	text      []byte // one of the stream's forms of the marker
}

// item is an event of the upstream, or text of one, on its way to the client.
type item struct {
	event sse.Event
	chunk *response.Chunk // chunk of the event, only for the current one
	// choice decides the order. Items of one choice keep theirs. Everything: after all earlier and
	// before all later items. anyTime: no order.
	choice int
	texts  []passage // pieces of lanes that are checked
	wholes []passage // texts that repeat a lane as a whole
	ends   []int     // choices that end in the event
	last   bool      // it waits for verdicts
	waits  []wait    // which verdicts
	bare   bool      // without its texts it contains nothing else
	strip  bool      // its texts go separately
	done   bool      // it is [DONE]
	fails  bool      // it reports an error
	moves  bool      // its text releases text
	marks  []*record // failed claims to mark directly after it
	inside []splice  // marks in its texts
	stops  []int     // choices with a finish_reason in it, which may not be their end
	calls  []int     // choices that call a tool in it

	spelled bool // log probabilities or token ids repeat its texts
	forged  bool // the server wrote into the guard's own member

	spare     []byte // memory of a copy: of the event, or of the text without one
	synthetic bool   // spare is the text of texts[0]
}

// reset empties the item and keeps its memory.
func (it *item) reset(e sse.Event) {
	*it = item{
		event: e, choice: anyTime, texts: it.texts[:0], wholes: it.wholes[:0], waits: it.waits[:0], ends: it.ends[:0], marks: it.marks[:0], spare: it.spare[:0],
		inside: it.inside[:0], stops: it.stops[:0], calls: it.calls[:0],
	}
}

// size returns the number of bytes that the item holds.
func (it *item) size() int { return len(it.spare) }

// queue holds items that may not go yet, in order of arrival.
type queue struct {
	items []*item
	free  []*item
	bytes int
}

// Limits on the items kept for reuse: their number, and the memory of each in bytes.
const (
	maxFree  = 256
	maxSpare = 4 << 10
)

func (q *queue) empty() bool { return len(q.items) == 0 }

// blocks reports whether an item of a choice has to wait for a queued one.
func (q *queue) blocks(choice int) bool {
	return slices.ContainsFunc(q.items, func(it *item) bool { return blocks(it.choice, choice) })
}

func blocks(ahead, choice int) bool {
	return ahead == response.Everything || choice == response.Everything || ahead == choice && choice != anyTime
}

func (q *queue) take() *item {
	if n := len(q.free); n > 0 {
		it := q.free[n-1]
		q.free = q.free[:n-1]
		return it
	}
	return &item{}
}

// put appends an item, whose memory must be its own.
func (q *queue) put(it *item) {
	q.items = append(q.items, it)
	q.bytes += it.size()
}

// putCopy appends a copy of an item whose event belongs to the parser.
func (q *queue) putCopy(from *item) {
	it := q.take()
	it.reset(from.event)
	it.choice, it.last, it.bare, it.strip, it.done = from.choice, from.last, from.bare, from.strip, from.done
	it.texts = append(it.texts, from.texts...)
	it.wholes = append(it.wholes, from.wholes...)
	it.waits = append(it.waits, from.waits...)
	it.ends = append(it.ends, from.ends...)
	it.marks = append(it.marks, from.marks...)
	it.inside = append(it.inside, from.inside...)
	it.stops = append(it.stops, from.stops...)
	it.calls = append(it.calls, from.calls...)
	it.spelled, it.fails, it.forged = from.spelled, from.fails, from.forged
	e := &it.event
	it.spare = append(append(append(it.spare, e.Raw...), e.Name...), e.Data...)
	raw, name := len(e.Raw), len(e.Raw)+len(e.Name)
	e.Raw, e.Name, e.Data = it.spare[:raw:raw], it.spare[raw:name:name], it.spare[name:]
	for i := range it.texts {
		it.texts[i].lane.last, it.texts[i].text = it, nil
	}
	q.put(it)
}

// drop keeps a removed item for reuse.
func (q *queue) drop(it *item) {
	q.bytes -= it.size()
	it.reset(sse.Event{})
	if len(q.free) < maxFree && cap(it.spare) <= maxSpare {
		q.free = append(q.free, it)
	}
}

// clear drops all items.
func (q *queue) clear() {
	clear(q.items)
	q.items, q.bytes = q.items[:0], 0
}

// passage returns the piece of a lane in the item.
func (it *item) passage(ln *lane) passage {
	for _, p := range it.texts {
		if p.lane == ln {
			return p
		}
	}
	return passage{lane: ln, from: ln.fed, to: ln.fed, tail: ln.tail}
}
