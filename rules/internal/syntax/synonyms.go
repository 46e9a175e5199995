package syntax

import (
	_ "embed" // of the words
	"strings"
)

//go:embed synonyms.txt
var synonymList string

// synonyms are words that people know from programming languages and from other routers, each with
// the words that say the same here. The first that fits the place is suggested.
//
//nolint:gochecknoglobals // constant table
var synonyms = func() map[string][]string {
	m := map[string][]string{}
	for line := range strings.Lines(synonymList) {
		ours, theirs, _ := strings.Cut(line, ": ")
		for word := range strings.FieldsSeq(theirs) {
			m[word] = strings.Fields(ours)
		}
	}
	return m
}()

// notes explain words of other routers that have no counterpart because of their meaning.
var notes = map[string]string{ //nolint:gochecknoglobals // constant table
	"priority":    "routes are tried in the order of the file",
	"operator":    "write {all: [...]} or {any: [...]}",
	"op":          "write {all: [...]} or {any: [...]}",
	"enabled":     "to switch a route off, remove it or write `when: false`",
	"description": "write a comment",
	"else":        "a further route, or default, answers what this one does not match",
	"temperature": "write set: {body: {temperature: NUMBER}}",
	"top_p":       "write set: {body: {top_p: NUMBER}}",
	"stop":        "write set: {body: {stop: [...]}}",
	"stream":      "the client decides",
	"timeout":     "timeouts belong to server and models",
	"retries":     "the candidates of models are tried in turn",
}
