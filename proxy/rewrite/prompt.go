package rewrite

import (
	"slices"
	"strings"

	"signalbox/internal/openai"
)

// What happened to the client's system prompt.
const (
	promptInserted = "inserted" // there was none
	promptReplaced = "replaced"
	promptPrefixed = "prefixed"
	promptKept     = "kept"
)

// prompt inserts the route's system prompt and returns what happened to the client's. The result is
// empty if the route has none, or if the request has no place for one, such as a text completion.
// It takes the place of the client's prompt or, if the request names contexts, is placed next to
// those; see compile. A client's prompt that is not vague is replaced only in mode always.
//
// Some clients split their prompt over several messages with role system or developer, and in the
// Responses API over instructions and such items. They count as one prompt: it is vague if all of
// it is, and is replaced as a whole.
func (rw Change) prompt(p *openai.Patch) (fate string) {
	want := rw.Decision.Action.Prompt
	if want.Name == "" || rw.Request.API != openai.Chat && rw.Request.API != openai.Response {
		return ""
	}
	text, first := rw.o.Prompts[want.Name], max(rw.Request.SystemIndex, 0)
	end := first
	for end < len(rw.Request.Messages) && isSystem(&rw.Request.Messages[end]) {
		end++
	}
	own := rw.Request.Messages[first:end]
	specific := !isVague(rw.o.vague, rw.Request.Instructions) ||
		slices.ContainsFunc(own, func(m openai.Message) bool { return m.HasImage || !isVague(rw.o.vague, m.Text) })
	switch {
	case len(own) == 0 && rw.Request.Instructions == "":
		fate = promptInserted
	case want.Mode == "always", !specific:
		fate = promptReplaced
	case want.Mode == "prefix":
		fate = promptPrefixed
	default:
		return promptKept
	}
	switch {
	case rw.Decision.Contexts.Named():
		if fate == promptReplaced {
			rw.clearPrompt(p, first, end)
		}
	case rw.Request.API == openai.Response:
		rw.instruct(p, fate, text, first, end)
	default:
		putSystem(p, fate, text, first, end)
	}
	return fate
}

func isSystem(m *openai.Message) bool { return m.Role == "system" || m.Role == "developer" }

// putSystem inserts text into the messages of a chat; those from first to end are the client's
// prompt.
func putSystem(p *openai.Patch, fate, text string, first, end int) {
	switch fate {
	case promptInserted:
		p.InsertMessage(0, "system", text)
	case promptPrefixed:
		p.PrependToMessageText(first, text+"\n\n")
	case promptReplaced:
		p.ReplaceMessageText(first, text)
		for i := first + 1; i < end; i++ {
			p.DeleteMessage(i)
		}
	}
}

// instruct inserts text into the instructions of a Responses API request. Instructions precede all
// items, so they stay separate from prompt items that are kept.
func (rw Change) instruct(p *openai.Patch, fate, text string, first, end int) {
	if fate == promptPrefixed && rw.Request.Instructions != "" {
		p.PrependToInstructions(text + "\n\n")
		return
	}
	p.SetInstructions(text)
	for i := first; i < end && fate == promptReplaced; i++ {
		p.DeleteMessage(i)
	}
}

// isVague reports whether a system prompt is blank or one of the vague ones.
func isVague(vague []string, text string) bool {
	n := normalise(text)
	return n == "" || slices.Contains(vague, n)
}

// longestVague limits the prompts that are compared with the vague ones, in bytes.
const longestVague = 4 << 10

// normalise removes differences in case, spacing and closing punctuation.
func normalise(s string) string {
	if len(s) > longestVague {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimRight(s, ".!? ")
}

// PromptFate returns what inserting the route's prompt did to the client's.
func (rw Change) PromptFate() string {
	return rw.prompt(openai.NewPatch(rw.Request))
}

// clearPrompt removes the client's prompt, the messages from first to end, in favour of one placed
// next to contexts. A message with media keeps them, and the last message of a request stays,
// without text.
func (rw Change) clearPrompt(p *openai.Patch, first, end int) {
	if rw.Request.Instructions != "" {
		p.DeleteField("instructions")
	}
	left := len(rw.Request.Messages)
	for i := first; i < end; i++ {
		if rw.Request.Messages[i].HasImage || left == 1 {
			p.ReplaceMessageText(i, "")
			continue
		}
		p.DeleteMessage(i)
		left--
	}
}
