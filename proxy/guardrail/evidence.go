// Package guardrail determines what a response is checked against, in which mode, and whether a
// classifier ends it: the options of the guard, the evidence of a request, and output moderation.
// Package stream/guard checks the claims.
package guardrail

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"signalbox/internal/openai"
	"signalbox/internal/script"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/stream/evidence"
)

// Limits of the evidence in one request. Facts beyond theirs are refused, because a client relies
// on what it pins. Of tool results and documents the latest that fit are read, and the response
// says that some were not.
const (
	maxFactBytes     = 64 << 10
	MaxDocumentBytes = 256 << 10
	// minDocument is the minimum number of words for a text of the prompt to count as a document.
	// Shorter ones are questions or instructions.
	minDocument = 20
	// maxQuestion is how much of the end of the last question is kept, in bytes.
	maxQuestion = 2 << 10
)

// grounds is the text that a response can be checked against.
type grounds struct {
	sources                 []evidence.Source
	facts, tools, documents int  // number of sources of each kind
	cut                     bool // some did not fit

	ready   *evidence.Evidence // prepared evidence used instead of sources; nil if there is none
	only    string             // the context that ready belongs to
	origins map[int]string     // by index of a source, its context
}

// found is a text that may be evidence.
type found struct {
	origin string // its context; empty for the request
	evidence.Source
}

// Evidence counts what responses would be checked against.
type Evidence struct {
	Facts       int  `json:"facts"`        // from the request, its session and its contexts
	ToolResults int  `json:"tool_results"` // in the conversation
	Documents   int  `json:"documents"`    // in the prompt
	Cut         bool `json:"cut,omitempty"`
}

// counts returns nil if there are none.
func (g *grounds) counts() *Evidence {
	if len(g.sources) == 0 && g.ready == nil {
		return nil
	}
	return &Evidence{g.facts, g.tools, g.documents, g.cut}
}

// prepare indexes the texts. This takes about a microsecond per word.
func (g *grounds) prepare(ctx context.Context) (*evidence.Evidence, error) {
	if g.ready != nil {
		return g.ready, nil
	}
	n := maxFactBytes + MaxDocumentBytes // facts of contexts and sessions are limited by quotas
	for i := range g.facts {
		n += len(g.sources[i].Text)
	}
	e, err := evidence.New(ctx, g.sources, evidence.Options{MaxFacts: max(len(g.sources), 1), MaxBytes: n})
	if err != nil {
		return nil, fmt.Errorf("prepare evidence: %w", err)
	}
	return e, nil
}

// CheckFacts refuses facts with more text than is read.
func CheckFacts(facts []openai.Fact, param string) error {
	n := 0
	for i := range facts {
		n += len(facts[i].Text)
	}
	if n <= maxFactBytes {
		return nil
	}
	return fault.TooLarge(param, fmt.Sprintf("%s holds %d bytes of text, at most %d are read", param, n, maxFactBytes))
}

// gather collects the evidence of a request: facts of the request, of its session and of its
// contexts and, if the options say so, tool results and documents. What the model itself said
// earlier is not evidence.
func (o Options) gather(req *openai.Request, r *resolve.Contexts) *grounds {
	g := &grounds{sources: factSources(req.Extras.Facts), facts: len(req.Extras.Facts)}
	texts := o.texts(req, g)
	if len(texts) == 0 && g.alone(o, r) {
		return g
	}
	if r != nil {
		g.addFacts(r.Facts, "")
		for _, s := range r.Snaps {
			g.addFacts(s.Facts, resolve.Pointer(s))
		}
		texts = append(o.ofContexts(r, g), texts...)
	}
	g.fit(texts)
	return g
}

// texts lists the documents and tool results in a request.
func (o Options) texts(req *openai.Request, g *grounds) []found {
	var out []found
	add := func(s evidence.Source) { out = append(out, found{Source: s}) }
	if o.Documents {
		for i, text := range retrieved(req.Field("documents")) {
			count(&g.documents, evidence.Source{ID: fmt.Sprintf("documents[%d]", i), Text: text}, add)
		}
		count(&g.documents, evidence.Source{ID: "instructions", Text: document("system", req.Instructions)}, add)
	}
	o.messages(req, "", g, add)
	return out
}

// count adds a source that is not empty.
func count(n *int, s evidence.Source, add func(evidence.Source)) {
	if strings.TrimSpace(s.Text) != "" {
		*n++
		add(s)
	}
}

// messages adds the evidence in the messages of a request. Sources are named by their position,
// after prefix.
func (o Options) messages(req *openai.Request, prefix string, g *grounds, add func(evidence.Source)) {
	for i := range req.Messages {
		m := &req.Messages[i]
		id := fmt.Sprintf("%s%s[%d]", prefix, req.PromptField(), i)
		switch m.Role {
		case "tool", "function":
			if o.ToolResults {
				count(&g.tools, evidence.Source{ID: id, Text: m.Text}, add)
			}
		case "system", "developer", "user":
			if o.Documents {
				count(&g.documents, evidence.Source{ID: id, Text: document(m.Role, m.Text)}, add)
			}
		}
	}
}

// fit adds the latest sources that fit, in their order. Of a source that is too long, only its end
// is added. This end leaves a quarter of the room to earlier sources, if they can use it.
func (g *grounds) fit(texts []found) {
	before := 0 // bytes of the sources before the current one
	for i := range texts {
		before += len(texts[i].Text)
	}
	room := MaxDocumentBytes
	kept := len(texts) // texts[kept:] are added
	for _, s := range slices.Backward(texts) {
		before -= len(s.Text)
		if len(s.Text) > room {
			g.cut = true
			if s.Text = lastPart(s.Text, room-min(before, room/4)); s.Text == "" {
				continue
			}
		}
		kept--
		texts[kept] = s
		room -= len(s.Text)
	}
	for _, s := range texts[kept:] {
		if s.origin != "" {
			g.from(len(g.sources), s.origin)
		}
		g.sources = append(g.sources, s.Source)
	}
}

// minPart is the minimum size of a useful part of a source, and the range in which a break to begin
// at is searched for, in bytes.
const minPart = 1 << 10

// lastPart returns the end of a text, at most n bytes. It drops an incomplete line, or at least an
// incomplete word, since half of a number would be a different number. It is empty if n is too
// small.
func lastPart(s string, n int) string {
	if n < minPart {
		return ""
	}
	s = tail(s, n)
	head := s[:min(len(s), minPart)]
	if i := strings.IndexByte(head, '\n'); i >= 0 {
		return s[i+1:]
	}
	if i := strings.IndexAny(head, " \t,;"); i >= 0 {
		return s[i+1:]
	}
	return strings.TrimLeftFunc(s, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || strings.ContainsRune(".'-+:/", r)
	})
}

// factSources converts the facts of a request to sources, which come before all others. A fact
// without an id is named by its position.
func factSources(facts []openai.Fact) []evidence.Source {
	out := make([]evidence.Source, len(facts))
	for i := range facts {
		out[i] = evidence.Source{ID: facts[i].ID, Text: facts[i].Text, Fact: true}
	}
	return out
}

// document returns the part of a message that makes statements; empty when it is too short for a
// document. A user's questions are omitted, since they would confirm what they ask.
func document(role, text string) string {
	if role == "user" {
		text = withoutQuestions(text)
	}
	if n := len(strings.Fields(text)); n >= minDocument || n > 0 && wide(text) >= minDocument {
		return text
	}
	return ""
}

// wide counts the characters of scripts without spaces between words.
func wide(text string) int {
	n := 0
	for _, r := range text {
		if script.IsUnspaced(r) {
			n++
		}
	}
	return n
}

// withoutQuestions removes sentences that end in a question mark.
func withoutQuestions(text string) string {
	if !strings.ContainsAny(text, "?？؟") {
		return text
	}
	var out strings.Builder
	begun := 0 // start of the current sentence
	for i, r := range text {
		end := i + len(string(r))
		switch r {
		case '?', '？', '؟':
			begun = end
		case '.', '!', '\n', '。', '！':
			out.WriteString(text[begun:end])
			begun = end
		}
	}
	out.WriteString(text[begun:])
	return out.String()
}

// title is the member of a document that is read first.
const title = "title"

// retrieved reads the field documents: a list of texts, or of objects with texts such as title and
// text. Anything else is ignored; the upstream validates the field.
func retrieved(field []byte) []string {
	var list []json.RawMessage
	if json.Unmarshal(field, &list) != nil {
		return nil
	}
	out := make([]string, len(list))
	for i, raw := range list {
		var fields map[string]any
		if json.Unmarshal(raw, &out[i]) == nil || json.Unmarshal(raw, &fields) != nil {
			continue
		}
		for _, name := range append([]string{title}, slices.Sorted(maps.Keys(fields))...) {
			s, ok := fields[name].(string)
			if ok && s != "" {
				out[i] += s + "\n"
			}
			delete(fields, name)
		}
	}
	return out
}

// question returns the user's last question, or only its end if it is long.
func question(req *openai.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == "user" {
			return tail(m.Text, maxQuestion)
		}
	}
	return ""
}

// tail returns the end of s: whole characters, at most n bytes.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
