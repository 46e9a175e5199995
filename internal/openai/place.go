package openai

import "strconv"

// SegmentField names the message of a chat completion that holds a segment of Text, such as
// messages[7]. It is empty for a text outside of messages, and for other APIs.
func (r *Request) SegmentField(segment int) string {
	if r.API != Chat || segment < 0 {
		return ""
	}
	at, next := 0, 0
	if r.Instructions != "" {
		at++
	}
	for i := range r.Messages {
		m, first := &r.Messages[i], at
		if m.Name != "" {
			at++
		}
		if m.Text != "" {
			at++
		}
		for ; next < len(r.texts) && r.texts[next].message == i; next++ {
			at++
		}
		if first <= segment && segment < at {
			return "messages[" + strconv.Itoa(i) + "]"
		}
	}
	return ""
}
