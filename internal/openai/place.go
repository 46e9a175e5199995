package openai

import "strconv"

// Whole stands for the place in a list, where no single one is meant.
const Whole = -1

// Place is where the client of a translated request said what a message says.
type Place struct {
	Message int // of its messages, from 0; Whole for what stands beside them, its instructions
	Block   int // of the content of that message, from 0; Whole where it is not one block alone
}

// String names the place, as messages[3].content[0], messages[3] or system.
func (p Place) String() string {
	if p.Message == Whole {
		return "system"
	}
	at := "messages[" + strconv.Itoa(p.Message) + "]"
	if p.Block != Whole {
		at += ".content[" + strconv.Itoa(p.Block) + "]"
	}
	return at
}

// SegmentField names the message of a chat completion that holds a segment of Text, such as
// messages[7]; of a translated request the place in what the client sent. It is empty for a text
// outside of messages, and for other APIs.
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
			return r.messageField(i)
		}
	}
	return ""
}

// messageField names a message.
func (r *Request) messageField(i int) string {
	if i < len(r.Places) {
		return r.Places[i].String()
	}
	return Place{Message: i, Block: Whole}.String()
}
