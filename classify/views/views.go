// Package views gives text the shape in which safety classifiers should see it.
//
// An attack that is spelled with look-alike letters, spaced out, or wrapped in an encoding reads as
// noise to a classifier, while the model behind the proxy reads it well. [Twin] undoes such
// disguises: invisible characters, look-alikes, leetspeak, spaced letters, escapes; and it decodes
// what is encoded: base64, base32, hexadecimal, binary, lists of character codes, Morse code,
// ROT13, text written backwards or upside down, bytes hidden in tags and variation selectors.
// The twin is only ever read by classifiers and keyword rules, beside the text itself, and never
// forwarded: a disguise that was undone wrongly costs a second look and no more.
//
// Honest text comes back as it was. What looks like a disguise is undone only when the result is
// text: words of a lexicon or, for payloads, likely letter pairs (both counted by
// training/signalbox_training/view_tables.py). Russian or Greek stays as it is, because only words
// that mix scripts, or whose letters all look Latin while no other letter of the script is near,
// are folded. Of 629,000 texts of the training sets (prompts, textbooks, code, web pages, 20
// languages) 0.06 % have a twin that differs, most of them by a ligature or a misplaced Cyrillic
// letter.
//
// Time is linear in the text, the twin is at most four times as long as the text plus 256 bytes,
// and equal texts have equal twins. All functions may be called by any number of goroutines.
package views

import "strings"

const (
	// maxDepth bounds how many layers of encoding are taken off.
	maxDepth = 2
	// roomFactor and roomExtra bound the twin: roomFactor * len(text) + roomExtra bytes. A text
	// written backwards gives two payloads of its length, and in base64, beside what it decodes to,
	// three of three quarters of it: with less room than that and the text such filler would push
	// out an attack that is encoded behind it.
	roomFactor, roomExtra = 4, 256
)

// Twin returns the text with disguises undone, followed by what was found encoded in it, one
// payload to a line. changed is false, and twin is text, when there is nothing new to read. The
// text may be of any size and need not be valid UTF-8.
func Twin(text string) (twin string, changed bool) {
	room := roomFactor*len(text) + roomExtra
	body, payloads := unwrap(text, 0)
	if body == text && len(payloads) == 0 {
		return text, false
	}
	if len(body) > room {
		body = text // undoing may lengthen a text by a few bytes, never by this much
	}
	var b strings.Builder
	b.WriteString(body)
	for _, p := range payloads {
		if b.Len()+len(p)+1 > room {
			continue
		}
		b.WriteByte('\n')
		b.WriteString(p)
	}
	twin = b.String()
	return twin, twin != text
}

func appendNew(payloads, more []string) []string {
	have := make(map[string]struct{}, len(payloads))
	for _, p := range payloads {
		have[p] = struct{}{}
	}
	for _, p := range more {
		if _, ok := have[p]; !ok {
			payloads = append(payloads, p)
		}
	}
	return payloads
}

// unwrap undoes the disguises of a text that was found under depth layers of encoding, and returns
// the payloads that it holds, unwrapped themselves.
func unwrap(text string, depth int) (body string, payloads []string) {
	body, hidden := normalise(text)
	r := reading{text: body, payloads: hidden, depth: depth}
	r.run()
	body = r.edited()
	if depth == maxDepth {
		return body, nil
	}
	if r.escapes {
		// What was written in escapes may be disguised as well, now that it can be read.
		again := reading{text: body, depth: depth}
		again.run()
		body = again.edited()
		r.payloads = appendNew(r.payloads, again.payloads)
	}
	for i, p := range r.payloads {
		if i > 0 && p == r.payloads[i-1] {
			continue
		}
		inner, more := unwrap(p, depth+1)
		payloads = append(payloads, inner)
		payloads = append(payloads, more...)
	}
	return body, payloads
}
