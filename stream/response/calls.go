package response

// knownCall is a tool call of which a stream has brought a piece.
type knownCall struct {
	choice, index int // as sent by the server
	part          int
	from, to      int // range of its id in Reader.ids; empty until one is known
}

// numberCalls numbers the tool calls in an event of a stream. By the API the number is their index,
// but some servers send 0 for every call, or none; then the id distinguishes calls. A piece whose
// id differs from that of the call with its index begins a new call only if it also has a name,
// because some servers send a new id with each piece. A piece without an id belongs to the latest
// call with its index. Reading an event again gives the same numbers.
func (r *Reader) numberCalls(e *Event) {
	for i := range e.Calls {
		if part := r.partOf(&e.Calls[i]); part != e.Calls[i].Part {
			e.renumber(i, part)
		}
	}
}

// partOf returns the number of a call whose Part is its index.
func (r *Reader) partOf(c *Call) int {
	latest, part, next := -1, c.Part, 0
	for i := range r.calls {
		k := &r.calls[i]
		if k.choice != c.Choice {
			continue
		}
		next = max(next, k.part+1)
		if k.part == c.Part {
			part = -1 // taken
		}
		if k.index != c.Part {
			continue
		}
		if latest = i; len(c.ID) > 0 && string(r.ids[k.from:k.to]) == string(c.ID) {
			return k.part
		}
	}
	if latest >= 0 {
		k := &r.calls[latest]
		if k.from == k.to {
			k.from, k.to = r.keepID(c.ID)
			return k.part
		}
		if len(c.ID) == 0 || !c.named {
			return k.part
		}
	}
	if part < 0 {
		part = next
	}
	if len(r.calls) >= maxCalls {
		return c.Part
	}
	from, to := r.keepID(c.ID)
	r.calls = append(r.calls, knownCall{c.Choice, c.Part, part, from, to})
	return part
}

// maxCallID is the maximum length of a call's id in bytes. A longer id is ignored.
const maxCallID = 1 << 10

func (r *Reader) keepID(id []byte) (from, to int) {
	from = len(r.ids)
	if len(id) <= maxCallID {
		r.ids = append(r.ids, id...)
	}
	return from, len(r.ids)
}

// told returns the index that the server uses for a call with the given number. It also returns the
// id if the index does not identify the call, otherwise nil.
func (r *Reader) told(choice, part int) (index int, id []byte) {
	index = part
	for i := range r.calls {
		if k := &r.calls[i]; k.choice == choice && k.part == part {
			index, id = k.index, r.ids[k.from:k.to]
		}
	}
	for i := range r.calls {
		if k := &r.calls[i]; k.choice == choice && k.index == index && k.part != part {
			return index, id
		}
	}
	return index, nil
}

// placeCalls numbers the calls of a body. They are complete and in order there, and an index that
// some servers repeat does not matter.
func (e *Event) placeCalls() {
	for i, n := 0, 0; i < len(e.Calls); i, n = i+1, n+1 {
		if i > 0 && e.Calls[i].Choice != e.Calls[i-1].Choice {
			n = 0
		}
		e.renumber(i, n)
	}
}

// renumber sets the number of call i and of its texts.
func (e *Event) renumber(i, part int) {
	e.Calls[i].Part = part
	for k := range e.Deltas {
		if e.Deltas[k].call == i+1 {
			e.Deltas[k].Part = part
		}
	}
}
