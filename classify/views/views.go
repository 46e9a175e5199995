// Package views normalises text for safety classifiers.
//
// An attack that is spelled with look-alike letters, spaced out, or encoded is noise to a
// classifier, while the model behind the proxy understands it. [Twin] undoes such disguises:
// invisible characters, look-alikes, leetspeak, spaced letters, escapes. It also decodes base64,
// base32, hexadecimal, binary, lists of character codes, Morse code, ROT13, text written backwards
// or upside down, and bytes hidden in tags and variation selectors. The twin is only read by
// classifiers and keyword rules, in addition to the text itself, and never forwarded: a wrong
// correction costs only a second reading.
//
// Ordinary text is returned unchanged. A possible disguise is undone only if the result is text:
// words of a lexicon or, for payloads, likely letter pairs (both counted by
// training/signalbox_training/view_tables.py). Russian or Greek stays as it is, because only words
// that mix scripts, or whose letters all look Latin while no other letter of the script is near,
// are folded. Of 629,000 texts of the training sets (prompts, textbooks, code, web pages, 20
// languages) 0.06 % have a twin that differs, most of them because of a ligature or a misplaced
// Cyrillic letter.
//
// Time is linear in the text, the twin is at most four times as long as the text plus 256 bytes,
// and equal texts have equal twins. All functions are safe for concurrent use.
package views

import "strings"

const (
	// maxDepth is the maximum number of layers of encoding that are removed.
	maxDepth = 2
	// roomFactor and roomExtra limit the twin to roomFactor * len(text) + roomExtra bytes. A text
	// written backwards produces two payloads of its length, and in base64, in addition to the
	// decoded text, three of three quarters of it. With less room, such filler could push out an
	// attack that is encoded after it.
	roomFactor, roomExtra = 4, 256
)

// Twin returns the text with disguises undone, followed by the decoded payloads, one per line.
// changed is false, and twin is text, if there is nothing new to read. The text may have any size
// and need not be valid UTF-8.
func Twin(text string) (twin string, changed bool) {
	room := roomFactor*len(text) + roomExtra
	body, payloads := unwrap(text, 0)
	if body == text && len(payloads) == 0 {
		return text, false
	}
	if len(body) > room {
		body = text // normalising may lengthen a text by a few bytes, never by this much
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

// unwrap undoes the disguises of a text found under depth layers of encoding, and returns its
// payloads, unwrapped themselves.
func unwrap(text string, depth int) (body string, payloads []string) {
	body, hidden := normalise(text)
	r := reading{text: body, payloads: hidden, depth: depth}
	r.run()
	body = r.edited()
	if depth == maxDepth {
		return body, nil
	}
	if r.escapes {
		// Text that was escaped may also be disguised, which can only be seen now.
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
