// Package wire walks serialised protobuf messages, such as ONNX models, without decoding them, and
// writes their fields.
package wire

import "google.golang.org/protobuf/encoding/protowire"

// Fields calls visit for each field of msg with all its bytes, and for length-delimited fields with
// the bytes of the value, nil for others. Both are slices of msg. It stops at the first error of
// visit, or returns an error of protowire if msg is not a message.
func Fields(msg []byte, visit func(num int, field, body []byte) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeField(msg)
		if n < 0 {
			return protowire.ParseError(n)
		}
		var body []byte
		if typ == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(msg)
			body, _ = protowire.ConsumeBytes(msg[tag:])
		}
		if err := visit(int(num), msg[:n], body); err != nil {
			return err
		}
		msg = msg[n:]
	}
	return nil
}

// Values calls visit for each field of msg with its value: the bytes of a length-delimited field,
// or the number of a varint. Otherwise it works like Fields.
func Values(msg []byte, visit func(num int, body []byte, n uint64) error) error {
	return Fields(msg, func(num int, field, body []byte) error {
		var v uint64
		if _, typ, n := protowire.ConsumeTag(field); typ == protowire.VarintType {
			v, _ = protowire.ConsumeVarint(field[n:])
		}
		return visit(num, body, v)
	})
}

// Within calls Values for each message in the given field of msg.
func Within(msg []byte, field int, visit func(num int, body []byte, n uint64) error) error {
	return Values(msg, func(num int, body []byte, _ uint64) error {
		if num != field {
			return nil
		}
		return Values(body, visit)
	})
}

// Ints appends the values of a field of repeated integers as passed by Values, packed or single.
func Ints(to []int, body []byte, n uint64) ([]int, error) {
	if body == nil {
		return append(to, int(n)), nil
	}
	for len(body) > 0 {
		v, size := protowire.ConsumeVarint(body)
		if size < 0 {
			return to, protowire.ParseError(size)
		}
		to, body = append(to, int(v)), body[size:]
	}
	return to, nil
}

// AppendMessage appends a length-delimited field.
func AppendMessage(b []byte, num protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), body)
}

// AppendNumber appends a varint field.
func AppendNumber(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}
