package rewrite

import (
	"slices"
	"strings"

	"signalbox/internal/openai"
)

// The fates of the client's system prompt.
const (
	promptInserted = "inserted" // there was none
	promptReplaced = "replaced"
	promptPrefixed = "prefixed"
	promptKept     = "kept"
)

// prompt puts the route's system prompt in and tells what became of the client's own; empty when
// the route has none, or the request has no place for one, as a completion that is no chat. It goes
// where the client's own stands, or, where the request names contexts, beside those; see
// rewriter.compile. A client's own prompt that says something gives way only to mode always.
//
// Some clients split their prompt over several messages, of role system or developer, and in the
// Responses API over instructions and such items. They are one prompt: it is vague when all of it
// is, and when it is replaced no part of it stays.
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

// putSystem puts text in among the messages of a chat; those from first to end are the client's
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

// instruct puts text into the instructions of a response. They come before all items, so in front
// of items of the client's prompt that stay they stand by themselves.
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

// isVague reports whether a system prompt says nothing: it is blank or one of the vague ones.
func isVague(vague []string, text string) bool {
	n := normalise(text)
	return n == "" || slices.Contains(vague, n)
}

// longestVague bounds the prompts that are compared with the vague ones, in bytes.
const longestVague = 4 << 10

// normalise folds what two spellings of a sentence may differ in: case, spacing, closing
// punctuation.
func normalise(s string) string {
	if len(s) > longestVague {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimRight(s, ".!? ")
}

// PromptFate tells what putting the route's prompt in made of the client's.
func (rw Change) PromptFate() string {
	return rw.prompt(openai.NewPatch(rw.Request))
}

// clearPrompt takes the client's own prompt out, the messages from first to end, for one that
// stands beside contexts. A message with media keeps them, and the last message of a request stays,
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
