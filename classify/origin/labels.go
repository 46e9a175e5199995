package origin

import (
	"slices"
	"strings"
)

const (
	// maxLabel is the maximum length of a line that introduces the material below it, in bytes.
	maxLabel = 120
	// minLabelled is the minimum amount of text below or after a label, in bytes.
	minLabelled = 40
	// minRule is the minimum number of marks in a line that separates prompt and material.
	minRule = 5
	// maxRules is the maximum number of different lines of marks that may open material; further
	// ones are text.
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

// labels is the state of the walk over the lines of a text; -1 for what has not been found.
type labels struct {
	// start of the material, and the last line with each label
	material, question, answer int
	asked                      bool // a question preceded the material
	below                      bool // the previous line announces what is below
	// lines of marks around material; empty until one closes it
	rules map[string]span
}

// labelled finds material after labels, and between lines of marks below a line that announces it.
// The material ends at the last label of a question, or of the answer if the question came first
// and nothing follows, and at the last line of the same marks. Retrieved text may contain such
// labels and lines itself, and must not be able to end the material. Text that is already data,
// such as code between fences, has no labels.
func (s *splitter) labelled() {
	s.look = 0
	seen := labels{material: -1, question: -1, answer: -1}
	found := s.data
	slices.SortFunc(found, earlier)
	known := 0 // end of the text known to be data
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

// labelLine processes the line text[at:end].
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

// ruled processes a line of marks at text[at:end].
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

// isPrompt reports whether text consists only of the label of an answer.
func isPrompt(text string) bool {
	if len(text) > maxLabel {
		return false
	}
	name, value := label(text)
	return answers[name] && value == ""
}

// label marks text[from:to] as material, if it is long enough.
func (s *splitter) label(from, to int) {
	if len(strings.TrimSpace(s.text[from:to])) >= minLabelled {
		s.data = append(s.data, span{from, to})
	}
}

// label returns the name before the colon of a line, in lower case and without the marks of
// headings, lists and emphasis, and the text after it; "" for a line without one. A heading without
// a colon may be a name as a whole.
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

// colonOf returns the index of the first colon of a line, -1 without one, and its size.
func colonOf(line string) (n, size int) {
	n, size = strings.IndexByte(line, ':'), 1
	if wide := strings.Index(line, "\uff1a"); wide >= 0 && (n < 0 || wide < n) {
		n, size = wide, len("\uff1a")
	}
	return n, size
}

// isRule reports whether a line consists of one repeated mark.
func isRule(line string) bool {
	return len(line) >= minRule && strings.IndexByte("-=*#_~+", line[0]) >= 0 &&
		strings.Trim(line, line[:1]) == ""
}

// speaksOfBelow reports whether a line announces that material follows.
func speaksOfBelow(line string) bool {
	line = strings.ToLower(line)
	return strings.HasSuffix(line, ":") || strings.Contains(line, "below") ||
		strings.Contains(line, "following")
}
