package upstream

import (
	"bytes"
	"encoding/json"
)

// Names are the id and model in a response; empty when missing, or not near its beginning.
type Names struct{ ID, Model string }

// Names returns the names if the call asks for them. They are searched for in the first event of a
// stream, or in the part of a body that was read first.
func (u *Response) Names() Names {
	if u.asks && u.buf != nil {
		u.find(u.buf.bytes())
	}
	return u.told
}

// find searches for names in b.
func (u *Response) find(b []byte) {
	if !u.asks || len(b) == 0 {
		return
	}
	if u.Stream != nil {
		i := bytes.Index(b, []byte("data:"))
		if i < 0 {
			return
		}
		b = b[i+len("data:"):]
	}
	u.asks = false
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err == nil && t == json.Delim('{') {
		u.told.read(dec)
	}
}

// read reads the members of an object up to the end of b, and those of the object that another
// API's event has around its response. The first value counts.
func (n *Names) read(dec *json.Decoder) {
	for dec.More() && (n.ID == "" || n.Model == "") {
		name, err := dec.Token()
		if err != nil {
			return
		}
		switch name {
		case "message", "response":
			if t, err := dec.Token(); err != nil || t != json.Delim('{') {
				return
			}
			n.read(dec)
			return
		case "id":
			err = readName(dec, &n.ID)
		case "model":
			err = readName(dec, &n.Model)
		default:
			err = dec.Decode(new(json.RawMessage))
		}
		if err != nil {
			return
		}
	}
}

// readName reads a member's value into to, unless to is already set.
func readName(dec *json.Decoder, to *string) error {
	x, err := dec.Token()
	if name, ok := x.(string); ok && *to == "" && len(name) <= maxName {
		*to = name
	}
	return err
}

// maxName limits a name, in bytes. Model names are paths at most.
const maxName = 200
