package upstream

import (
	"bytes"
	"encoding/json"
)

// Names are what a response calls itself; empty where it does not say, or not near its beginning.
type Names struct{ ID, Model string }

// Names are looked for where the call asks for them, in the first event of a stream or in a body as
// far as it was read first.
func (u *Response) Names() Names {
	if u.asks && u.buf != nil {
		u.find(u.buf.bytes())
	}
	return u.told
}

// find looks for names in what was read.
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

// read reads the members of an object, and of the one in it that an event of another API has around
// its response, up to where b ends. What comes first counts.
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

// readName reads the value of a member that is a name into to, unless that has one.
func readName(dec *json.Decoder, to *string) error {
	x, err := dec.Token()
	if name, ok := x.(string); ok && *to == "" && len(name) <= maxName {
		*to = name
	}
	return err
}

// maxName bounds a name, in bytes: those of models are paths at most.
const maxName = 200
