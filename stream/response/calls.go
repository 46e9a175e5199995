package response

// knownCall is a call of a tool that a stream has brought a piece of.
type knownCall struct {
	choice, index int // as told
	part          int
	from, to      int // its id in Reader.ids; empty as long as none is told
}

// numberCalls gives the calls of an event of a stream their numbers. By the API that is their
// index, but there are servers that send 0 for each call, or none: there the id tells calls apart.
// A piece with another id than that of the call of its index begins a new call if it also has a
// name, since some servers send a new id with each piece. A piece without an id belongs to the
// latest call of its index. An event that is read again gives the same.
func (r *Reader) numberCalls(e *Event) {
	for i := range e.Calls {
		if part := r.partOf(&e.Calls[i]); part != e.Calls[i].Part {
			e.renumber(i, part)
		}
	}
}

// partOf returns the number of a call, whose Part is its index.
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

// maxCallID bounds the id of a call, in bytes. A longer one is none.
const maxCallID = 1 << 10

func (r *Reader) keepID(id []byte) (from, to int) {
	from = len(r.ids)
	if len(id) <= maxCallID {
		r.ids = append(r.ids, id...)
	}
	return from, len(r.ids)
}

// told returns the index of a call as the server tells it, by its number, and its id where that
// alone says which call is meant; nil where the index does.
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

// placeCalls gives the calls of a body their numbers: there they are told as a whole, one behind
// the other, and an index that some servers repeat says nothing.
func (e *Event) placeCalls() {
	for i, n := 0, 0; i < len(e.Calls); i, n = i+1, n+1 {
		if i > 0 && e.Calls[i].Choice != e.Calls[i-1].Choice {
			n = 0
		}
		e.renumber(i, n)
	}
}

// renumber sets the number of call i, and of its texts.
func (e *Event) renumber(i, part int) {
	e.Calls[i].Part = part
	for k := range e.Deltas {
		if e.Deltas[k].call == i+1 {
			e.Deltas[k].Part = part
		}
	}
}
