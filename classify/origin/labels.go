package origin

import (
	"slices"
	"strings"
)

const (
	// maxLabel is the longest line that names the material below it, in bytes.
	maxLabel = 120
	// minLabelled is how much text below or behind a label has at least, in bytes.
	minLabelled = 40
	// minRule is how many marks a line between prompt and material has at least.
	minRule = 5
	// maxRules is how many different lines of marks may open material: what opens beyond is text.
	maxRules = 8
)

// materials are labels in front of what was retrieved or pasted, as templates of prompts have them
// (LangChain, LlamaIndex, Haystack, DSPy). The line ends with them or goes on behind a colon.
//
//nolint:gochecknoglobals // constant table
var materials = map[string]bool{
	"article": true, "background": true, "chunks": true, "context": true, "contexts": true,
	"context information": true, "conversation": true, "doc": true, "docs": true,
	"document": true, "documents": true, "email": true, "email body": true, "evidence": true,
	"excerpt": true, "excerpts": true, "facts": true, "file": true, "input text": true,
	"knowledge": true, "logs": true, "message": true, "page": true, "page content": true,
	"passage": true, "passages": true, "reference": true, "references": true, "results": true,
	"retrieved context": true, "retrieved documents": true, "review": true, "search results": true,
	"snippet": true, "snippets": true, "source": true, "sources": true, "text": true,
	"tool output": true, "tool result": true, "transcript": true, "web results": true,
	"kontext": true, "dokument": true, "dokumente": true, "quellen": true, "contexte": true,
	"contexto": true, "documento": true, "documentos": true, "contesto": true, "context is": true,
	"\u4e0a\u4e0b\u6587": true, "\u6587\u6863": true, "\u8cc7\u6599": true,
	"\u30b3\u30f3\u30c6\u30ad\u30b9\u30c8": true, "\ubb38\uc11c": true,
}

// questions are labels in front of what the user asks.
//
//nolint:gochecknoglobals // constant table
var questions = map[string]bool{
	"instruction": true, "instructions": true, "query": true, "question": true, "request": true,
	"task": true, "user": true, "user question": true, "user query": true, "frage": true,
	"aufgabe": true, "pregunta": true, "domanda": true, "pergunta": true,
	"\u95ee\u9898": true, "\u8cea\u554f": true, "\uc9c8\ubb38": true,
}

// answers are labels in front of what the model is to write.
//
//nolint:gochecknoglobals // constant table
var answers = map[string]bool{
	"answer": true, "final answer": true, "helpful answer": true, "output": true, "response": true,
	"summary": true, "your answer": true, "antwort": true, "r\u00e9ponse": true,
	"respuesta": true, "risposta": true, "resposta": true, "\u7b54\u6848": true,
}

// labels is what the walk over the lines of a text has seen of them; -1 for what it has not.
type labels struct {
	material, question, answer int             // the material begins, the last line of each
	asked                      bool            // a question stood before the material
	below                      bool            // the line before speaks of what is below
	rules                      map[string]span // lines of marks around material; empty until one closes it
}

// labelled finds material behind labels, and between lines of marks below a line that speaks of what
// is below. It ends at the last label of a question, or of the answer where the question stood first
// and nothing follows, and at the last line of the same marks. Retrieved text may have such labels
// and lines of its own, and must not end the material with one. What is data already, such as code
// between fences, has no labels.
func (s *splitter) labelled() {
	s.look = 0
	seen := labels{material: -1, question: -1, answer: -1}
	found := s.data
	slices.SortFunc(found, earlier)
	known := 0 // up to where the text is data
	for at := 0; at < len(s.text) && !s.ended(at); {
		end := lineEnd(s.text, at)
		for len(found) > 0 && found[0].from <= at {
			known = max(known, found[0].to)
			found = found[1:]
		}
		if at >= known {
			s.labelLine(&seen, at, end)
		}
		at = end
	}
	for _, r := range seen.rules {
		s.label(r.from, r.to)
	}
	to := len(s.text)
	switch {
	case seen.material < 0:
		return
	case seen.question >= 0 && !seen.asked:
		to = seen.question
	case seen.answer >= 0 && isPrompt(strings.TrimSpace(s.text[seen.answer:])):
		to = seen.answer
	}
	s.label(seen.material, to)
}

// labelLine takes the line text[at:end].
func (s *splitter) labelLine(seen *labels, at, end int) {
	line := strings.TrimSpace(s.text[at:min(end, at+2*maxLabel)])
	if line == "" {
		return
	}
	if isRule(line) {
		seen.ruled(line, at, end)
	}
	name, value := label(line)
	switch {
	case questions[name] && seen.material < 0:
		seen.asked = true
	case questions[name]:
		seen.question = at
	case answers[name]:
		seen.answer = at
	case materials[name] && seen.material < 0:
		seen.material = end
		if value != "" {
			n, _ := colonOf(s.text[at:end])
			seen.material = at + n + strings.Index(s.text[at+n:end], value)
		}
	}
	seen.below = len(line) <= maxLabel && speaksOfBelow(line)
}

// ruled takes a line of marks at text[at:end].
func (l *labels) ruled(line string, at, end int) {
	r, ok := l.rules[line]
	switch {
	case ok:
		r.to = at
	case l.below && len(l.rules) < maxRules:
		r = span{end, end}
	default:
		return
	}
	if l.rules == nil {
		l.rules = make(map[string]span)
	}
	l.rules[line] = r
}

// isPrompt reports whether text is the label of an answer and nothing else.
func isPrompt(text string) bool {
	if len(text) > maxLabel {
		return false
	}
	name, value := label(text)
	return answers[name] && value == ""
}

// label takes text[from:to] for material, if it is long enough.
func (s *splitter) label(from, to int) {
	if len(strings.TrimSpace(s.text[from:to])) >= minLabelled {
		s.data = append(s.data, span{from, to})
	}
}

// label returns the name before the colon of a line, in small letters and without the marks of
// headings, lists and emphasis, and what stands behind it; "" for a line that has none. Without a
// colon the whole line may be the name if it is a heading.
func label(line string) (name, value string) {
	n, size := colonOf(line)
	heading := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "[[")
	switch {
	case n >= 0 && n <= maxLabel:
		name, value = line[:n], strings.Trim(line[n+size:], " \t*_")
	case heading && len(line) <= maxLabel:
		name = line
	default:
		return "", ""
	}
	return strings.ToLower(strings.Trim(name, "#*_[]<>|=- \t0123456789.")), value
}

// colonOf returns where the first colon of a line is, -1 without one, and its size.
func colonOf(line string) (n, size int) {
	n, size = strings.IndexByte(line, ':'), 1
	if wide := strings.Index(line, "\uff1a"); wide >= 0 && (n < 0 || wide < n) {
		n, size = wide, len("\uff1a")
	}
	return n, size
}

// isRule reports whether a line is a row of one mark.
func isRule(line string) bool {
	return len(line) >= minRule && strings.IndexByte("-=*#_~+", line[0]) >= 0 &&
		strings.Trim(line, line[:1]) == ""
}

// speaksOfBelow reports whether a line says that material follows.
func speaksOfBelow(line string) bool {
	line = strings.ToLower(line)
	return strings.HasSuffix(line, ":") || strings.Contains(line, "below") ||
		strings.Contains(line, "following")
}
