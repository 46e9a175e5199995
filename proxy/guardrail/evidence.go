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

// The bounds of evidence in one request. Facts over theirs are refused, for what a client pins it
// counts on. Of tool results and documents the latest that fit are read, and the answer says that
// some were not.
const (
	maxFactBytes     = 64 << 10
	MaxDocumentBytes = 256 << 10
	// minDocument is how many words make a text of the prompt a document: shorter ones ask or
	// instruct.
	minDocument = 20
	// maxQuestion is how much of the end of the last question is kept, in bytes.
	maxQuestion = 2 << 10
)

// grounds is what an answer can be checked against, as texts.
type grounds struct {
	sources                 []evidence.Source
	facts, tools, documents int  // how many sources are of each kind
	cut                     bool // some did not fit

	ready   *evidence.Evidence // prepared before, in place of sources; nil when it was not
	only    string             // the context that ready is of
	origins map[int]string     // of sources: the contexts that they come from
}

// found is a text that may be evidence.
type found struct {
	origin string // the context that it comes from; empty for the request
	evidence.Source
}

// Evidence says what answers would be checked against.
type Evidence struct {
	Facts       int  `json:"facts"`        // of the request, its session and its contexts
	ToolResults int  `json:"tool_results"` // in the conversation
	Documents   int  `json:"documents"`    // in the prompt
	Cut         bool `json:"cut,omitempty"`
}

// counts is nil without any.
func (g *grounds) counts() *Evidence {
	if len(g.sources) == 0 && g.ready == nil {
		return nil
	}
	return &Evidence{g.facts, g.tools, g.documents, g.cut}
}

// prepare indexes the texts. It costs about a microsecond for every word of them.
func (g *grounds) prepare(ctx context.Context) (*evidence.Evidence, error) {
	if g.ready != nil {
		return g.ready, nil
	}
	n := maxFactBytes + MaxDocumentBytes // facts of contexts and sessions are within quotas
	for i := range g.facts {
		n += len(g.sources[i].Text)
	}
	e, err := evidence.New(ctx, g.sources, evidence.Options{MaxFacts: max(len(g.sources), 1), MaxBytes: n})
	if err != nil {
		return nil, fmt.Errorf("prepare evidence: %w", err)
	}
	return e, nil
}

// CheckFacts refuses more text in facts than is read.
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

// gather collects the evidence of a request: the facts that it brings, those of its session and its
// contexts, and, as far as the options say so, results of tools and documents. What the model
// itself said before is none.
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

// texts lists the documents and results of tools in a request.
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

// count adds a source that says something.
func count(n *int, s evidence.Source, add func(evidence.Source)) {
	if strings.TrimSpace(s.Text) != "" {
		*n++
		add(s)
	}
}

// messages adds what the messages of a request state. Their sources are named by their places,
// behind prefix.
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

// fit adds the latest of the sources that fit, in their order. Of one that is too long its end is
// added, as long as that leaves a quarter of the room to those before it, if they have use for it.
func (g *grounds) fit(texts []found) {
	before := 0 // bytes of the sources before the one at hand
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

// A part of a source says something from so many bytes on, and begins behind a break within as
// many.
const minPart = 1 << 10

// lastPart is the end of a text, at most n bytes, without the line or at least the word that is
// cut: half a number would be another one. It is empty when n is too small for a part.
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

// factSources makes sources of the facts that a request brings, which come before all others: one
// without an id is named by its place.
func factSources(facts []openai.Fact) []evidence.Source {
	out := make([]evidence.Source, len(facts))
	for i := range facts {
		out[i] = evidence.Source{ID: facts[i].ID, Text: facts[i].Text, Fact: true}
	}
	return out
}

// document returns the part of a message that states something, empty when it is too short to be a
// document. Questions of a user are left out: they would confirm what they ask.
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

// withoutQuestions drops the sentences that end in a question mark.
func withoutQuestions(text string) string {
	if !strings.ContainsAny(text, "?？؟") {
		return text
	}
	var out strings.Builder
	begun := 0 // of the sentence at hand
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

// retrieved reads the field documents, a list of texts or of objects that hold texts, such as title
// and text. What is neither is left out: the upstream judges the field.
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

// question is what the user asked last, its end when it is long.
func question(req *openai.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role == "user" {
			return tail(m.Text, maxQuestion)
		}
	}
	return ""
}

// tail is the end of s, whole characters of at most n bytes.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
