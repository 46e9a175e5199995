package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var (
	answerLine = regexp.MustCompile("(?i)answer(?: is)?[ \t*_`]*[:：]")
	lastNumber = regexp.MustCompile(`-?\d[\d,]*(?:\.\d+)?`)
	wordOfText = regexp.MustCompile(`[A-Za-z]+`)
)

// right reports whether a response gives an answer. What counts is behind the last
// "Answer:"; where there is none, it is the last line. Kind says how the two are compared:
//
//	number   the last number there, as a number; commas between its digits do not count
//	literal  the text with either kind of quotes, but for white space outside of them
//	word     the first word there, in any case
func right(response, answer, kind string) bool {
	said := given(response)
	switch kind {
	case "number":
		all := lastNumber.FindAllString(said, -1)
		if len(all) == 0 {
			return false
		}
		got, err := strconv.ParseFloat(strings.ReplaceAll(all[len(all)-1], ",", ""), 64)
		want, wrong := strconv.ParseFloat(answer, 64)
		return err == nil && wrong == nil && got == want
	case "literal":
		return literal(said) == literal(answer)
	}
	return strings.EqualFold(wordOfText.FindString(said), answer)
}

// given is the part of a response in which its answer is.
func given(response string) string {
	response = strings.TrimSpace(response)
	if all := answerLine.FindAllStringIndex(response, -1); len(all) > 0 {
		response = strings.TrimSpace(response[all[len(all)-1][1]:])
		response, _, _ = strings.Cut(response, "\n")
	} else if at := strings.LastIndexByte(response, '\n'); at >= 0 {
		response = response[at+1:]
	}
	return strings.Trim(response, " \t\r*`")
}

// literal is a Python literal in one spelling.
func literal(s string) string {
	var out strings.Builder
	quoted := false
	for _, r := range strings.TrimSuffix(s, ".") {
		if r == '"' || r == '\'' {
			r, quoted = '\'', !quoted
		}
		if quoted || !unicode.IsSpace(r) {
			out.WriteRune(r)
		}
	}
	return out.String()
}
