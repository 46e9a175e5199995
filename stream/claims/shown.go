package claims

import (
	"bytes"
	"strings"
	"unicode"
)

// labelled reports whether the first line of a block says that it contains JSON or JSON lines.
// Without a label, the first text of the block decides.
func (s *Splitter) labelled() bool {
	if !s.fence.first || !s.open {
		return false
	}
	line := bytes.TrimLeft(s.buf[s.start:s.end], string(rune(s.fence.char)))
	label, _, _ := strings.Cut(strings.ToLower(string(bytes.TrimSpace(line[:min(len(line), maxPrefix)]))), " ")
	switch label {
	case "json", "jsonl", "ndjson":
		return true
	case "":
		s.fence.bare = true
	}
	return false
}

// beginFencedJSON checks whether JSON begins on a line of a block, whose text is at offset at: as
// the first text of a block without a label, or after other lines of JSON.
func (s *Splitter) beginFencedJSON(at int) verdict {
	v := no
	switch {
	case s.json.fenced && s.json.lines:
		v = s.beginsObject(at)
	case s.fence.bare && at == len(s.buf) && !s.final:
		return more
	case s.fence.bare && s.peekByte(at) != '\n':
		v = s.beginsJSON(at)
		s.fence.bare = v == more
	}
	if v == yes {
		s.openFenced(at)
	}
	return v
}

// frame returns the frame of the JSON in the open block.
func (s *Splitter) frame() Frame {
	switch {
	case !s.fence.begun:
		return NoFrame
	case instructs(s.intro):
		return Example
	}
	return Shown
}

// framed returns the frame of the contents of the open object or list.
func (m *members) framed() Frame {
	if n := len(m.levels); n > 0 && m.frame == Shown && (m.levels[n-1].call || calls(m.levels[n-1].name)) {
		return Example
	}
	return m.frame
}

// calls reports whether a member holds arguments of a call, or describes possible values. It states
// nothing.
func calls(name string) bool { return callNames[plain(name)] }

// instructs reports whether the text before a block says that the block is an example, or something
// for the reader to write or send. It looks for certain words anywhere, a JSON file name, or an
// imperative at the start.
func instructs(text string) bool {
	first := true
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), isGap) {
		word = strings.Trim(word, ".")
		if exampleWords[word] || first && orders[word] || strings.HasSuffix(word, ".json") {
			return true
		}
		first = first && leading[word]
	}
	return false
}

// isGap reports whether r separates words. A full stop may be part of a file name.
func isGap(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' && r != '_' }

//nolint:gochecknoglobals,misspell // constant tables, with German and French
var (
	callNames = set(strings.Fields(
		`arguments args kwargs parameters params input inputs tool_input action_input properties env headers`)...)
	exampleWords = set(strings.Fields(
		`example examples e.g eg sample samples template placeholder placeholders hypothetical mock dummy
		schema config configs configuration configurations syntax curl
		beispiel beispiele beispielsweise z.b vorlage platzhalter muster konfiguration
		exemple exemples modèle ejemplo ejemplos plantilla configuración esempio exemplo`)...)
	// leading are words that may precede an imperative.
	leading = set(strings.Fields(`then now next finally first instead please just simply also and or to you can could
		should must need may might want dann nun jetzt bitte sie können könnten 1 2 3 4 5 6 7 8 9 step`)...)
	orders = set(strings.Fields(`add set put use create configure save send call edit run change paste copy include
		specify define write replace update insert pass post try enter store import append adjust modify make start
		füge fügen setze setzen trage tragen verwende verwenden nutze nutzen erstelle erstellen schreibe schreiben
		sende senden rufe rufen ändere ändern speichere speichern ajoutez utilisez créez envoyez añade usa crea
		envía`)...)
)
