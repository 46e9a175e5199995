package syntax

import (
	"bytes"
	"encoding/json"
	"math"

	"go.yaml.in/yaml/v3"
)

// JSON encodes the value, keeping the order of keys. Values that JSON cannot express are errors,
// except types that only YAML distinguishes from text, such as dates, which remain text.
func (c Cursor) JSON() (text []byte, ok bool) {
	var b bytes.Buffer
	ok = c.appendJSON(&b, 0)
	return b.Bytes(), ok
}

func (c Cursor) appendJSON(b *bytes.Buffer, depth int) bool {
	if !c.plain() {
		return false
	}
	if depth > MaxDepth {
		c.Errorf("found more than %d levels of nesting", MaxDepth)
		return false
	}
	switch c.Node.Kind {
	case yaml.MappingNode:
		return c.appendObject(b, depth)
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i := range c.Node.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			if !c.item(i).appendJSON(b, depth+1) {
				return false
			}
		}
		b.WriteByte(']')
		return true
	case yaml.ScalarNode, yaml.AliasNode, yaml.DocumentNode:
	}
	return c.appendScalar(b)
}

func (c Cursor) appendObject(b *bytes.Buffer, depth int) bool {
	mark := c.Mark()
	entries, _ := c.Mapping("a mapping")
	b.WriteByte('{')
	for i, e := range entries {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := json.Marshal(e.Key)
		if err != nil {
			e.At.Errorf("found %q, expected a key that JSON can hold", Shorten(e.Key))
			return false
		}
		b.Write(key)
		b.WriteByte(':')
		if !e.At.appendJSON(b, depth+1) {
			return false
		}
	}
	b.WriteByte('}')
	return c.Mark() == mark
}

func (c Cursor) appendScalar(b *bytes.Buffer) bool {
	var v any = c.Node.Value // text, and values of YAML types that JSON lacks
	switch c.Node.Tag {
	case "!!null":
		v = nil
	case "!!bool", "!!int", "!!float":
		if err := c.Node.Decode(&v); err != nil {
			c.Expected("a value that JSON can hold")
			return false
		}
	}
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		c.Expected("a finite number")
		return false
	}
	text, err := json.Marshal(v)
	if err != nil {
		c.Expected("a value that JSON can hold")
		return false
	}
	b.Write(text)
	return true
}
