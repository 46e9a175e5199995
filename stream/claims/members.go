package claims

import (
	"bytes"
	"cmp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on JSON that is read value by value; our choice. What is beyond them is read as text.
const (
	maxDepth  = 64
	maxToken  = 256 // bytes of a name, a number or a word
	maxLabel  = 64  // bytes of the name that a value is told with, and of what its object is called
	fewWords  = 8   // of a string that is told with its name
	maxOpener = 64  // bytes that are looked at for where JSON begins
	// From so many escapes of a string on those that are not needed any more are dropped.
	manyEscapes = 4 << 10
)

// members reads a text of JSON. Each string is cut like a text of its own; a short one, and each
// number, is a claim that is told with the name of its member and with what its object is called.
type members struct {
	open   bool
	fenced bool // in a block of Markdown
	want   want
	token  token
	from   int // in the buffer: where the token that is under way begins, its quotation mark apart
	levels []level

	text    *Splitter // of the string that is under way
	at      Span      // bytes and code points of the text before that string
	fed     int       // bytes of it that were read, as they read
	found   int       // claims in it so far
	escapes []escape  // of its part that no claim was cut from yet
}

// want is what comes next in JSON.
type want uint8

const (
	aValue want = iota
	aValueOrEnd
	aName
	aNameOrEnd
	aColon
	aCommaOrEnd
)

// token is what of JSON is under way.
type token uint8

const (
	noToken token = iota
	nameToken
	stringToken
	muteToken // a string that is not judged
	wordToken // a number, true, false or null
)

// level is an object or a list that is open.
type level struct {
	object bool
	mute   bool   // nothing in it is a fact of the answer
	name   string // of the member that is read, or of the list
	label  string // what the object is called: its first short string, or its year
}

// escape is an escaped character of a string: how much longer it and all before it are in the text
// than as they read, and where it stands as it reads.
type escape struct{ at, bytes, runes int }

// beginsJSON reports whether JSON begins at a place: brackets before a quotation mark.
func (s *Splitter) beginsJSON(at int) verdict {
	if at >= len(s.buf) || s.buf[at] != '{' && s.buf[at] != '[' {
		return no
	}
	last := byte(0)
	for i := at; i < at+maxOpener; i++ {
		if i >= len(s.buf) {
			if s.final {
				return no
			}
			return more
		}
		switch c := s.buf[i]; {
		case c == '"':
			return yes
		case c == '[' || c == '{' && last != '{':
			last = c
		case !isBlank(c):
			return no
		}
	}
	return no
}

// isBlank reports whether c is white space of JSON.
func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// openJSON begins to read JSON at a place.
func (s *Splitter) openJSON(at int, fenced bool) { //nolint:revive // a fact about the text
	m := &s.json
	if m.text == nil {
		o := s.opts
		o.Values = false
		m.text = &Splitter{opts: o}
	}
	*m = members{open: true, fenced: fenced, text: m.text, levels: m.levels[:0], escapes: m.escapes[:0]}
	s.pos, s.lineStart, s.kind = at, false, Prose
}

// leaveJSON goes on as in a text, from a place on, or as in the block that the JSON stands in.
func (s *Splitter) leaveJSON(from int) {
	s.json.open, s.json.token = false, noToken
	s.pos, s.start, s.end = from, from, from
	s.open, s.words, s.inWord, s.depth = false, 0, false, 0
	s.value, s.lineLen = value{over: true}, 0
	if s.json.fenced {
		s.value = value{}
		s.fence = fence{open: true, char: '`', run: 3}
	}
}

// readJSON reads the next part of JSON; false means that more text is needed.
func (s *Splitter) readJSON() bool {
	m := &s.json
	switch m.token {
	case nameToken:
		return s.readName()
	case stringToken, muteToken:
		return s.readString()
	case wordToken:
		return s.readWord()
	case noToken:
	}
	c := s.buf[s.pos]
	if isBlank(c) {
		s.pos++
		return true
	}
	m.from = s.pos
	switch {
	case m.want == aColon && c == ':':
		m.want = aValue
	case m.want == aCommaOrEnd && c == ',':
		m.want = aValue
		if m.levels[len(m.levels)-1].object {
			m.want = aName
		}
	case m.want == aColon, m.want == aCommaOrEnd && c != '}' && c != ']':
		s.leaveJSON(s.pos)
		return true
	case c == '}' || c == ']':
		return s.closeLevel(c)
	case m.want == aName || m.want == aNameOrEnd:
		if c != '"' {
			s.leaveJSON(s.pos)
			return true
		}
		m.token = nameToken
	default:
		return s.beginJSONValue(c)
	}
	s.pos++
	return true
}

// closeLevel ends an object or a list, and with the last one the JSON.
func (s *Splitter) closeLevel(c byte) bool {
	m := &s.json
	n := len(m.levels)
	if n == 0 || m.levels[n-1].object != (c == '}') || m.want == aValue && c == '}' {
		s.leaveJSON(s.pos)
		return true
	}
	s.pos++
	m.levels, m.want = m.levels[:n-1], aCommaOrEnd
	if n == 1 {
		s.leaveJSON(s.pos)
	}
	return true
}

// beginJSONValue begins a value with its first byte.
func (s *Splitter) beginJSONValue(c byte) bool {
	m := &s.json
	switch {
	case (c == '{' || c == '[') && len(m.levels) < maxDepth:
		l := level{object: c == '{'}
		if n := len(m.levels); n > 0 {
			up := &m.levels[n-1]
			l.mute = up.mute || besides(up.name)
			l.name = up.name
			if l.label = up.label; !up.object {
				l.label = ""
			}
		}
		m.levels = append(m.levels, l)
		m.want = aValueOrEnd
		if l.object {
			m.want = aNameOrEnd
		}
		s.pos++
	case len(m.levels) == 0:
		s.leaveJSON(s.pos)
	case c == '"':
		s.pos++
		m.token = stringToken
		if l := &m.levels[len(m.levels)-1]; l.mute || isMute(l.name) {
			m.token = muteToken
		}
		m.from, m.fed, m.found, m.escapes = s.pos, 0, 0, m.escapes[:0]
		m.at = Span{s.base + s.pos, s.baseRune + utf8.RuneCount(s.buf[:s.pos])}
		m.text.Reset()
	case c == '-' || c >= '0' && c <= '9' || letter(c):
		m.token = wordToken
		s.pos++
	default:
		s.leaveJSON(s.pos)
	}
	return true
}

// readName reads the name of a member, its quotation mark apart.
func (s *Splitter) readName() bool {
	m := &s.json
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; {
		case c == '\\' && s.pos+1 == len(s.buf) && !s.final:
			return false
		case c == '\n', s.pos-m.from > maxToken:
			s.leaveJSON(m.from)
			return true
		case c == '\\':
			s.pos++
		case c == '"':
			l := &m.levels[len(m.levels)-1]
			l.name = unquote(s.buf[m.from+1 : s.pos])
			m.token, m.want = noToken, aColon
			s.pos++
			return true
		}
		s.pos = min(s.pos+1, len(s.buf))
	}
	return s.final
}

// unquote is what stands between quotation marks, its escapes read.
func unquote(text []byte) string {
	text = bytes.TrimSpace(text)
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text)
	}
	var out []byte
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if text[i] == '\\' {
			if r, size = escaped(text[i:]); size == 0 {
				break
			}
		}
		out, i = utf8.AppendRune(out, r), i+size
	}
	return string(out)
}

// readWord reads a number, or a word that stands for a value.
func (s *Splitter) readWord() bool {
	m := &s.json
	for s.pos < len(s.buf) && s.pos-m.from <= maxToken && bytes.IndexByte([]byte(",]} \t\r\n"), s.buf[s.pos]) < 0 {
		s.pos++
	}
	if s.pos == len(s.buf) && !s.final {
		return s.pos-m.from > maxToken
	}
	word := s.buf[m.from:s.pos]
	switch string(word) {
	case "true", "false", "null", "True", "False", "None", "NaN":
	default:
		if !isNumber(word) {
			s.leaveJSON(m.from)
			return true
		}
		if l := &m.levels[len(m.levels)-1]; !l.mute && !isMute(l.name) {
			before := s.baseRune + utf8.RuneCount(s.buf[:m.from])
			c := Claim{
				Text: string(word), Kind: Value, Place: Inside, Unfinished: s.pos == len(s.buf),
				Bytes: Span{s.base + m.from, s.base + s.pos}, Runes: Span{before, before + len(word)},
			}
			s.told(&c, c.Text)
			s.out = append(s.out, c)
			if l.label == "" && l.object && anyPart(l.name, yearNames) {
				l.label = c.Text
			}
		}
	}
	m.token, m.want = noToken, aCommaOrEnd
	return true
}

// isNumber reports whether a word is made like a number of JSON.
func isNumber(word []byte) bool {
	digits := false
	for i, c := range word {
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case c == '-' && i == 0, i > 0 && bytes.IndexByte([]byte(".eE+-"), c) >= 0:
		default:
			return false
		}
	}
	return digits
}

// readString reads on in a string.
func (s *Splitter) readString() bool {
	m := &s.json
	end := s.pos
	for end < len(s.buf) && s.buf[end] != '"' && s.buf[end] != '\\' {
		end++
	}
	if end == len(s.buf) && !s.final {
		end = s.pos + wholeRunes(s.buf[s.pos:])
	}
	s.say(s.buf[s.pos:end], s.buf[s.pos:end])
	s.pos = end
	switch {
	case end == len(s.buf):
		return s.final
	case s.buf[end] == '"':
		s.endString()
		s.pos++
		m.token, m.want = noToken, aCommaOrEnd
		return true
	case s.buf[end] != '\\':
		return false // a character that has not come as a whole
	}
	r, size := escaped(s.buf[end:])
	if size == 0 {
		if s.final {
			s.pos = len(s.buf)
		}
		return s.final
	}
	var room [utf8.UTFMax]byte
	s.say(utf8.AppendRune(room[:0], r), s.buf[end:end+size])
	s.pos = end + size
	return true
}

// wholeRunes is how much of a text are characters that have come as a whole.
func wholeRunes(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
}

// escaped reads the escaped character that a text begins with; 0 bytes mean that it has not come as
// a whole.
func escaped(text []byte) (r rune, size int) {
	if len(text) < 2 || !utf8.FullRune(text[1:]) {
		return 0, 0
	}
	switch text[1] {
	case 'n':
		return '\n', 2
	case 't':
		return '\t', 2
	case 'r':
		return '\r', 2
	case 'b', 'f':
		return ' ', 2
	case 'u':
	default:
		r, size = utf8.DecodeRune(text[1:])
		return r, 1 + size
	}
	r, size = hex(text)
	if size < 6 || !utf16.IsSurrogate(r) {
		return r, size
	}
	low, n := hex(text[6:])
	if pair := utf16.DecodeRune(r, low); n == 6 && pair != utf8.RuneError {
		return pair, 12
	}
	if n == 0 {
		return 0, 0
	}
	return utf8.RuneError, 6
}

// hex reads \u and four digits at the beginning of a text; 0 bytes mean that more has to come.
func hex(text []byte) (r rune, size int) {
	for i := range 6 {
		if i == len(text) {
			return 0, 0
		}
		switch c := text[i]; {
		case i == 0 && c == '\\', i == 1 && c == 'u':
		case i < 2:
			return utf8.RuneError, 1
		case c >= '0' && c <= '9':
			r = r<<4 + rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 + rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError, 2
		}
	}
	return r, 6
}

// say takes in text of the string that is under way, which stands as raw in the answer.
func (s *Splitter) say(text, raw []byte) {
	m := &s.json
	if m.token == muteToken || len(text) == 0 {
		return
	}
	if len(text) != len(raw) {
		e := escape{at: m.fed}
		if n := len(m.escapes); n > 0 {
			e.bytes, e.runes = m.escapes[n-1].bytes, m.escapes[n-1].runes
		}
		e.bytes += len(raw) - len(text)
		e.runes += utf8.RuneCount(raw) - utf8.RuneCount(text)
		m.escapes = append(m.escapes, e)
	}
	m.fed += len(text)
	for _, c := range m.text.FeedBytes(text) {
		m.found++
		s.take(&c)
	}
	if len(m.escapes) > manyEscapes {
		m.forget()
	}
}

// forget drops the escapes before the text that no claim was cut from yet, but for the last of them.
func (m *members) forget() {
	pending := m.fed - m.text.Pending()
	n := 0
	for n+1 < len(m.escapes) && m.escapes[n+1].at < pending {
		n++
	}
	m.escapes = m.escapes[:copy(m.escapes, m.escapes[n:])]
}

// endString ends a string, or the text in the middle of one. A few words, or one, are told with
// the name of the member and with what the object is called.
func (s *Splitter) endString() {
	m := &s.json
	if m.token == muteToken {
		return
	}
	list := m.text.Flush()
	l := &m.levels[len(m.levels)-1]
	label := ""
	if m.found == 0 && len(list) == 1 && list[0].Kind == Prose && list[0].Unfinished && !list[0].Window {
		text := strings.TrimSpace(list[0].Text)
		n := len(strings.Fields(text))
		if n == 1 && isWord(text) {
			return
		}
		if n <= fewWords {
			list[0].Kind = Value
			if l.object && l.label == "" && len(text) <= maxLabel {
				label = text
			}
		}
	}
	for i := range list {
		list[i].Unfinished = list[i].Unfinished && s.pos == len(s.buf)
		s.take(&list[i])
	}
	if label != "" {
		l.label = label
	}
}

// isWord reports whether a string of one word is no fact but one of a few that may stand there: in
// small letters or in capitals alone.
func isWord(text string) bool {
	upper, lower := false, false
	for i, r := range text {
		switch {
		case unicode.IsDigit(r), r >= 0x2e80:
			return false
		case i == 0 && unicode.IsUpper(r):
			upper = true
		case unicode.IsLower(r):
			lower = true
		}
	}
	return !upper || !lower || strings.Contains(text, "_")
}

// take hands out a claim of the string that is under way.
func (s *Splitter) take(c *Claim) {
	m := &s.json
	said := c.Text
	from, to := m.shift(c.Bytes.Start), m.shift(c.Bytes.End)
	out := Claim{
		Kind: c.Kind, Context: c.Context, Place: Inside, Window: c.Window, Unfinished: c.Unfinished,
		Bytes: Span{m.at.Start + c.Bytes.Start + from.bytes, m.at.Start + c.Bytes.End + to.bytes},
		Runes: Span{m.at.End + c.Runes.Start + from.runes, m.at.End + c.Runes.End + to.runes},
		Text:  said,
	}
	if from != to {
		out.Text = string(s.buf[out.Bytes.Start-s.base : out.Bytes.End-s.base])
		out.Said = said
	}
	if c.Kind == Value {
		s.told(&out, said)
	}
	s.out = append(s.out, out)
}

// shift is how much further a place of the string stands in the answer, for the escapes before it.
func (m *members) shift(at int) escape {
	for i := len(m.escapes) - 1; i >= 0; i-- {
		if m.escapes[i].at < at {
			return escape{bytes: m.escapes[i].bytes, runes: m.escapes[i].runes}
		}
	}
	return escape{}
}

// told puts before a value what its object is called, and the name of its member.
func (s *Splitter) told(c *Claim, value string) {
	l := &s.json.levels[len(s.json.levels)-1]
	lead := ""
	if l.label != "" {
		lead = l.label + ": "
	}
	if name := plain(l.name); name != "" {
		lead += name + ": "
	}
	if lead != "" {
		c.Said, c.Lead = lead+value, len(lead)
	}
}

// plain is a name of a member in small letters, its words joined by underscores.
func plain(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name[:min(len(name), maxLabel)] {
		if lower && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		if r == '-' || r == '.' {
			r = '_'
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.ToValidUTF8(b.String(), "")
}

// kept is where the text begins that JSON needs yet, in the buffer.
func (s *Splitter) kept() int {
	m := &s.json
	switch m.token {
	case nameToken, wordToken:
		return m.from
	case stringToken:
		from := m.fed - m.text.Pending()
		return m.at.Start + from + m.shift(from).bytes - s.base
	case muteToken, noToken:
	}
	return s.pos
}

// Raw is a place in what a claim says, its Lead apart, as one in its Text; both in code points.
func (c *Claim) Raw(at Span) Span {
	if c.Said == "" || c.Said[c.Lead:] == c.Text {
		return at
	}
	text := []byte(c.Text)
	out, n, raw := at, 0, 0
	for i := 0; i < len(text); n++ {
		if n == at.Start {
			out.Start = raw
		}
		_, size := utf8.DecodeRune(text[i:])
		if text[i] == '\\' {
			if _, size = escaped(text[i:]); size == 0 { // half of a pair, or half of one
				_, size = hex(text[i:])
				size = cmp.Or(size, min(2, len(text)-i))
			}
		}
		raw += utf8.RuneCount(text[i : i+size])
		i += size
		if n+1 == at.End {
			out.End = raw
		}
	}
	return out
}

// Says is what a claim is read as: its Text, or Said where there is one.
func (c *Claim) Says() string {
	if c.Said != "" {
		return c.Said
	}
	return c.Text
}

// isMute reports whether the value of a member is none to judge: how sure the answer is, where it
// was found, or one of a few words for what it is.
func isMute(name string) bool { return anyPart(name, muteNames) }

// besides reports whether the members of a member tell of the answer itself and state nothing.
func besides(name string) bool { return anyPart(name, metaNames) }

// anyPart reports whether a part of a name is one of a set.
func anyPart(name string, of map[string]bool) bool {
	for part := range strings.FieldsFuncSeq(plain(name), func(r rune) bool { return r == '_' || r == ' ' }) {
		if of[part] {
			return true
		}
	}
	return false
}

//nolint:gochecknoglobals // constant tables
var (
	yearNames = set("year", "jahr", "año", "année", "anno", "ano")
	metaNames = set("meta", "metadata", "usage", "debug", "tokens", "bbox", "logprobs")
	muteNames = set(strings.Fields(
		`confidence score scores probability prob certainty relevance similarity id ids uid uuid guid index idx rank
		offset page pages line lines chunk chunks token tokens latency version timestamp created updated generated
		retrieved seed logprob source sources citation citations reference references ref refs footnote url urls uri
		link links href file filename path doc document documents model lang language locale format type kind schema
		hash role title heading headline subject article section paragraph clause
		chapter step category categories label labels class intent sentiment tag tags verdict currency
		konfidenz sicherheit relevanz seite seiten quelle quellen quellenangabe beleg sprache währung typ kategorie
		kategorien dokument datei zeile verweis verweise artikel abschnitt absatz kapitel schritt titel
		confianza puntuación puntuacion certeza página páginas pagina paginas fuente fuentes idioma moneda tipo
		categoría categoria documento archivo etiqueta artículo articulo sección seccion
		capítulo capitulo paso título titulo
		confiance fiabilité fiabilite certitude pertinence catégorie categorie langue devise étiquette fichier
		référence références section chapitre étape titre`)...)
)
