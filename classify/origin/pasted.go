package origin

import (
	"slices"
	"strings"
)

const (
	// maxRequest is the maximum length of a request about material, in bytes.
	maxRequest = 320
	// minMaterial is the minimum amount of material below or above such a request, in bytes.
	minMaterial = 400
	// share is the minimum ratio of the material's length to that of the request.
	share = 3
)

// requests are words with which one asks for something to be done with a text. Those of languages
// without spaces are looked for anywhere, the others at the start of a word.
//
//nolint:gochecknoglobals // constant table
var requests = []string{
	"summar", "tl;dr", "tldr", "translat", "proofread", "paraphras", "rewrite", "rephrase",
	"shorten", "simplify", "explain this", "explain the", "what does this", "what does it say",
	"what is this", "what's this", "what do you think", "key points", "main points", "analy",
	"review this", "review the", "extract", "classify", "categori", "correct th", "fix the",
	"check this", "check the", "improve this", "reply to", "respond to", "draft a reply",
	"answer this", "based on the", "according to the", "in the text", "in this text",
	"the following", "text below", "see below", "the above", "text above", "this article",
	"this email", "this e-mail", "this mail", "this message", "this document", "this text",
	"this page", "this log", "this report", "here is the", "here's the", "here is my", "here's my",
	"here is an", "fasse", "zusammenfass", "\u00fcbersetz", "korrigier", "der folgende",
	"folgenden text", "was steht", "was bedeutet", "r\u00e9sum", "tradui", "corrige",
	"le texte suivant", "que dit", "resum", "traduc", "traduz", "el siguiente", "o seguinte",
	"riassum", "il seguente", "samenvat", "vertaal", "\u043f\u0435\u0440\u0435\u0432\u0435\u0434",
	"\u0440\u0435\u0437\u044e\u043c", "\u043a\u0440\u0430\u0442\u043a\u043e", "\u603b\u7ed3",
	"\u7ffb\u8bd1", "\u6458\u8981", "\u4ee5\u4e0b", "\u8981\u7d04", "\u7ffb\u8a33", "\uc694\uc57d",
	"\ubc88\uc5ed",
}

// commands are words with which one tells a model who it is or what to forget: what follows them is
// no material, whatever it looks like.
//
//nolint:gochecknoglobals // constant table
var commands = []string{
	"you are", "you're", "you will", "you must", "you shall", "you have", "act as", "pretend",
	"from now on", "ignore", "disregard", "forget", "role", "persona", "rules", "instructions",
	"simulate", "imagine", "jailbreak", "dan ", "obey", "du bist", "tu es", "eres ",
}

// pasted finds material below or above a request about it. Both are whole paragraphs.
func (s *splitter) pasted() {
	if len(s.text) < minMaterial || s.err != nil {
		return
	}
	from, to := 0, len(s.text)
	if n := firstParagraph(s.text); n > 0 && asks(said(s.text[:n])) {
		from = n
	}
	if n := lastParagraph(s.text); n > from && asks(said(s.text[n:])) {
		to = n
	}
	asked := len(s.text) - (to - from)
	if asked > 0 && to-from >= max(minMaterial, share*asked) {
		s.data = append(s.data, span{from, to})
	}
}

// said returns a paragraph without sentences inserted by programs.
func said(paragraph string) string {
	own, found := Own(paragraph, nil)
	if !found {
		return paragraph
	}
	var b strings.Builder
	for _, at := range own {
		b.WriteString(paragraph[at[0]:at[1]])
	}
	return b.String()
}

// asks reports whether a paragraph is a request about a text.
func asks(paragraph string) bool {
	p := strings.TrimSpace(paragraph)
	if p == "" || len(p) > maxRequest {
		return false
	}
	p = strings.ToLower(p)
	for _, w := range commands {
		if startsWord(p, w) {
			return false
		}
	}
	return slices.ContainsFunc(requests, func(w string) bool { return startsWord(p, w) })
}

// startsWord reports whether w occurs in text at the start of a word, or anywhere if its script is
// written without spaces.
func startsWord(text, w string) bool {
	for from := 0; ; {
		n := strings.Index(text[from:], w)
		if n < 0 {
			return false
		}
		at := from + n
		if at == 0 || w[0] >= 0xE0 || !letter(text[at-1]) {
			return true
		}
		from = at + 1
	}
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 0x80 }

// firstParagraph returns the end of the first paragraph of text, or of its first line if that ends
// in a colon; 0 if neither is short.
func firstParagraph(text string) int {
	for at := 0; at < len(text) && at <= maxRequest; {
		end := lineEnd(text, at)
		line := strings.TrimSpace(text[at:min(end, at+2*maxRequest)])
		colon := strings.HasSuffix(line, ":") || strings.HasSuffix(line, "\uff1a")
		if colon || line == "" && strings.TrimSpace(text[:at]) != "" {
			return end % len(text)
		}
		at = end
	}
	return 0
}

// lastParagraph returns the start of the last paragraph of text, or len(text) if it is not short.
func lastParagraph(text string) int {
	at := len(strings.TrimRight(text, " \t\r\n"))
	from := max(0, at-maxRequest)
	for at > from {
		n := strings.LastIndexByte(text[from:at], '\n')
		if n < 0 {
			break
		}
		at = from + n
		if strings.HasSuffix(strings.TrimRight(text[from:at], " \t\r"), "\n") {
			return at + 1
		}
	}
	return len(text)
}
