package redact

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
)

// ErrIncomplete is returned when a span could not be replaced.
var ErrIncomplete = errors.New("personal data could not be replaced")

// Finder is a classifier that finds personal data by its characters alone, such as addresses and
// numbers. Spans are offsets in text; their segment is not used. The error is that of ctx.
type Finder interface {
	FindPersonal(ctx context.Context, text string) ([]signal.Span, error)
}

// Hide returns a parsed request in which placeholders replace the spans, and the vault that
// restores a response to it. spans refer to the segments of req.Text(), in any order; overlapping
// spans are merged. by searches members that no model reads but servers store, such as user and
// metadata; with nil, only values found elsewhere are replaced there. takes reports whether data of
// a type is replaced; nil means all types. If there is nothing to replace, Hide returns req itself
// and a nil vault. An error wraps ErrIncomplete, contains none of the text, and means that nothing
// may be sent.
func Hide(
	ctx context.Context, req *openai.Request, spans []signal.Span, by Finder, takes func(kind string) bool,
) (*openai.Request, *Vault, error) {
	kept, err := foundInKept(ctx, req, by)
	if err != nil {
		return nil, nil, err
	}
	if takes != nil {
		spans = slices.DeleteFunc(slices.Clone(spans), func(s signal.Span) bool { return !takes(s.Type) })
		kept = slices.DeleteFunc(kept, func(k keptSpan) bool { return !takes(k.Type) })
	}
	if len(spans)+len(kept) == 0 {
		return req, nil, nil
	}
	h := hider{
		req: req, keeper: newKeeper(req), texts: make(map[string]*found),
		renamed: make(map[string]string), results: make(map[string]bool),
	}
	h.keeper.vault.api = req.API
	if err := h.collect(req.Text().Segments, spans); err != nil {
		return nil, nil, err
	}
	for _, k := range kept {
		h.in(k.text).add(piece{start: k.Start, end: k.End, kind: k.Type})
	}
	body, err := h.rewrite(ctx)
	if err != nil {
		return nil, nil, err
	}
	out, err := req.Reparse(body)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the rewritten body does not parse", ErrIncomplete)
	}
	if err := h.verify(ctx, out); err != nil {
		return nil, nil, err
	}
	return out, h.keeper.vault, nil
}

// keptSpan is personal data in a string that a server stores.
type keptSpan struct {
	text string
	signal.Span
}

// foundInKept searches for personal data in the strings of members for which openai.Kept is true.
func foundInKept(ctx context.Context, req *openai.Request, by Finder) (out []keptSpan, err error) {
	if by == nil || !openai.HasKept(req) {
		return nil, nil
	}
	var failed error
	err = walk(ctx, req.Raw, func(s *str) {
		if failed != nil || s.isName || !openai.Kept(s.path) || stays(s) {
			return
		}
		var spans []signal.Span
		text := string(s.text)
		spans, failed = by.FindPersonal(ctx, text)
		for _, x := range spans {
			out = append(out, keptSpan{text, x})
		}
	})
	if failed != nil {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return out, nil
}

// hider replaces the spans of one request.
type hider struct {
	req     *openai.Request
	keeper  *keeper
	texts   map[string]*found // findings by text
	order   []*found          // the same in the order of the segments
	content int               // number of messages already walked
	edits   []edit
	agreed  map[string]use    // where the texts with findings occur
	results map[string]bool   // texts of tool results: whether they are JSON
	renamed map[string]string // member names, by their replacement and place
}

// found is what was found in one text.
type found struct {
	text     string
	spans    []piece // sorted, without overlaps
	replaced bool    // in at least one place
	covered  int     // bytes of text covered by content parts so far
	passed   int     // spans that end within them
}

// piece is a range of a text and its replacement.
type piece struct {
	start, end int
	kind       string
	inQuotes   bool // quote the placeholder: it replaces a JSON number inside a string
	*secret
}

// edit replaces a range of the body.
type edit struct {
	start, end int
	text       []byte
}

// collect groups the spans by text and merges overlapping ones.
func (h *hider) collect(segments []signal.Segment, spans []signal.Span) error {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b signal.Span) int {
		return cmp.Or(cmp.Compare(a.Segment, b.Segment), cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	for _, s := range spans {
		if s.Segment < 0 || s.Segment >= len(segments) {
			return fmt.Errorf("%w: a span is of no segment", ErrIncomplete)
		}
		text := segments[s.Segment].Text
		if s.Start < 0 || s.End > len(text) || s.Start >= s.End || !onBoundary(text, s.Start) || !onBoundary(text, s.End) {
			return fmt.Errorf("%w: a span is outside its segment", ErrIncomplete)
		}
		if segments[s.Segment].List {
			h.inLines(text, s)
			continue
		}
		h.in(text).add(piece{start: s.Start, end: s.End, kind: s.Type})
	}
	return nil
}

// in returns what was found in a text.
func (h *hider) in(text string) *found {
	f := h.texts[text]
	if f == nil {
		f = &found{text: text}
		h.texts[text] = f
		h.order = append(h.order, f)
	}
	return f
}

// inLines adds a span of a text in which each line is a string of its own. A span over several
// lines becomes one value per line.
func (h *hider) inLines(text string, s signal.Span) {
	for at := strings.LastIndexByte(text[:s.Start], '\n') + 1; at < s.End; {
		end := len(text)
		if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		if from, to := max(s.Start, at), min(s.End, end); from < to {
			h.in(text[at:end]).add(piece{start: from - at, end: to - at, kind: s.Type})
		}
		at = end + 1
	}
}

func onBoundary(text string, i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }

// add inserts a piece. Of overlapping pieces the first one determines the type. A text that occurs
// twice may add its spans twice.
func (f *found) add(p piece) {
	at, _ := slices.BinarySearchFunc(f.spans, p, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	if at > 0 && f.spans[at-1].end > p.start {
		at--
		f.spans[at].end = max(f.spans[at].end, p.end)
	} else {
		f.spans = slices.Insert(f.spans, at, p)
	}
	for at+1 < len(f.spans) && f.spans[at+1].start < f.spans[at].end {
		f.spans[at].end = max(f.spans[at].end, f.spans[at+1].end)
		f.spans = slices.Delete(f.spans, at+1, at+2)
	}
}

// rewrite returns the body with all mentions replaced.
func (h *hider) rewrite(ctx context.Context) ([]byte, error) {
	nested := make(map[string]bool) // texts that are call arguments, or tool results in JSON
	h.agreed = make(map[string]use)
	h.keeper.vault.json = structuredJSON(h.req)
	reserve := func(s *str) {
		h.keeper.reserve(s.text)
		h.keeper.vault.json = h.keeper.vault.json || s.asksJSON()
		h.note(s)
		if s.name == argumentsName && !s.isName {
			nested[string(s.text)] = true
		}
	}
	if err := walk(ctx, h.req.Raw, reserve); err != nil {
		return nil, err
	}
	for i := range h.req.Messages {
		if m := &h.req.Messages[i]; h.texts[m.Text] != nil && h.isData(m) {
			nested[m.Text] = true
		}
	}
	for _, f := range h.order {
		if h.agreed[f.text] == asContract {
			f.keepGiven()
		}
		h.name(f, nested[f.text])
	}
	h.keeper.vault.mentions.ready()
	h.mentionedOverParts(ctx)
	if err := walk(ctx, h.req.Raw, func(s *str) { h.visit(ctx, s) }); err != nil {
		return nil, err
	}
	return splice(h.req.Raw, h.edits), nil
}

// name assigns a placeholder to each value found in a text. nested means that the text is JSON,
// such as the arguments of a call.
func (h *hider) name(f *found, nested bool) { //nolint:revive // a property of the text
	v := h.keeper.vault
	if nested {
		f.unescape()
	}
	for i := range f.spans {
		p := &f.spans[i]
		value := f.text[p.start:p.end]
		spoken := value
		if nested {
			if plain, ok := unquote(value); ok {
				spoken = plain
			}
		}
		p.secret = h.keeper.intern(p.kind, spoken)
		if worth(p.kind, value) {
			v.mentions.add(p.secret, value)
			v.mentions.addSpellings(p.secret, spoken)
		}
	}
}

// unescape moves the ends of spans in a JSON text out of its escapes. Otherwise a lone backslash
// could remain, and the text would no longer parse.
func (f *found) unescape() {
	kept, i := f.spans[:0], 0
	for _, p := range f.spans {
		p.start = max(p.start, i) // the escape that ended the previous piece may reach here
		from, to := i, i          // the current character
		for ; to < p.start; i = to {
			from, to = i, f.escapeEnd(i)
		}
		switch {
		case to == p.start || from == p.start:
		case to-from == numbered:
			p.start = from // a letter, written as its code
		default:
			p.start = to // a line break or similar
		}
		for i = from; i < p.end; i = to {
			to = f.escapeEnd(i)
		}
		if p.end = max(p.end, i); p.start < p.end {
			kept = append(kept, p)
		}
	}
	f.spans = kept
	f.replaced = f.replaced || len(kept) == 0
}

// numbered is the length of an escape such as \u00e9.
const numbered = 6

// escapeEnd returns the end of the character of a JSON string at i.
func (f *found) escapeEnd(i int) int {
	size := 1
	if f.text[i] == '\\' {
		if size = 2; strings.HasPrefix(f.text[i+1:], "u") {
			size = numbered
		}
	}
	return min(i+size, len(f.text))
}

// visit rewrites one string of the body.
func (h *hider) visit(ctx context.Context, s *str) {
	if stays(s) {
		return
	}
	text := string(s.text)
	pieces := h.known(s, text)
	pieces = h.mentioned(ctx, text, pieces)
	if h.contract(s) {
		pieces = slices.DeleteFunc(pieces, func(p piece) bool { return !given(p.secret.kind) })
	}
	if len(pieces) > 0 && h.isNested(s) {
		pieces = h.within(ctx, text, pieces)
	}
	h.inIdentifiers(text, pieces)
	if s.isName {
		h.apart(s, pieces)
	}
	if len(pieces) > 0 {
		h.edits = append(h.edits, edit{s.start, s.end, rewriteString(h.req.Raw[s.start:s.end], pieces)})
	}
}

// stays reports whether a string controls the API rather than being text, or must not change for
// another reason.
func stays(s *str) bool {
	switch {
	case s.isName:
		return openai.IsWord(s.text) || s.field == "signalbox" ||
			openai.Stays(s.path[:len(s.path)-1])
	case openai.Stays(s.path):
		return true
	case isMedia(s.name) && bytes.HasPrefix(s.text, []byte("data:")) && len(s.text) > maxLiteral:
		return true
	case s.free:
		return false
	}
	switch s.name {
	case "role":
		const ofMessage = 3 // path depth: messages, its list, role
		return len(s.path) == ofMessage && (s.field == "messages" || s.field == "input")
	case "type", "object", "tool_choice", "reasoning_effort", "service_tier", "detail", "format",
		"encoding_format", "effort", "status", "truncation":
		return openai.IsWord(s.text)
	case "data", "file_data", "result":
		return openai.IsFile(s.text)
	}
	return false
}

// inIdentifiers gives pieces of paths, addresses and the like placeholders that restore the exact
// spelling: /home/jane would not be a folder if the tool were called with /home/Jane.
func (h *hider) inIdentifiers(text string, pieces []piece) {
	const joints = `/\._-~@`
	for i := range pieces {
		p := &pieces[i]
		as := text[p.start:p.end]
		if as == p.value || !strings.EqualFold(as, p.value) {
			continue
		}
		joined := p.start > 0 && strings.IndexByte(joints, text[p.start-1]) >= 0
		if !joined && p.end < len(text) && strings.IndexByte(joints, text[p.end]) >= 0 {
			next, _ := utf8.DecodeRuneInString(text[p.end+1:])
			joined = inWord(next)
		}
		if joined {
			p.secret = h.keeper.internAs(p.secret.kind, "_ID", as)
		}
	}
}

// isMedia reports whether a member of this name holds an image, a sound or a file.
func isMedia(name string) bool {
	switch name {
	case "url", "image_url", "audio_url", "video_url", "file_url", "file_data":
		return true
	}
	return false
}

// known returns what was found in the string, as a text of its own or as a part of a content list.
func (h *hider) known(s *str, text string) []piece {
	if m := h.messageAt(s.start); m != nil && h.req.Raw[m.Content.Start] == '[' && s.part {
		f := h.texts[m.Text]
		if f == nil || text == "" {
			return nil
		}
		return f.part(text)
	}
	f := h.texts[text]
	if f == nil {
		return nil
	}
	f.replaced = true
	return slices.Clone(f.spans)
}

// messageAt returns the message whose content contains the offset, or nil. Offsets must increase
// from call to call.
func (h *hider) messageAt(offset int) *openai.Message {
	for h.content < len(h.req.Messages) {
		m := &h.req.Messages[h.content]
		if offset < m.Span.End {
			if m.Content.Present() && offset > m.Content.Start && offset < m.Content.End {
				return m
			}
			return nil
		}
		h.content++
		if h.content < len(h.req.Messages) {
			if f := h.texts[h.req.Messages[h.content].Text]; f != nil {
				f.covered, f.passed = 0, 0
			}
		}
	}
	return nil
}

// part returns the pieces in the next part of a text that is joined from its parts with line
// breaks. A piece that crosses a break is replaced in the part where it begins and cut from the
// others.
func (f *found) part(text string) []piece {
	at := f.covered
	if at > 0 {
		at++ // the line break
	}
	end := at + len(text)
	if end > len(f.text) || f.text[at:end] != text {
		return nil // replaced stays false
	}
	f.covered = end
	f.replaced = f.replaced || end == len(f.text)
	var out []piece
	for f.passed < len(f.spans) && f.spans[f.passed].end <= at {
		f.passed++
	}
	for _, p := range f.spans[f.passed:] {
		if p.start >= end {
			break
		}
		q := p
		switch {
		case q.start < at:
			q.secret = &secret{}
		case q.end > end: // the line break comes from joining the parts
			q.respell(f.text[q.start:end] + " " + f.text[end+1:q.end])
		}
		q.start, q.end = max(q.start, at)-at, min(q.end, end)-at
		out = append(out, q)
	}
	return out
}

// mentionedOverParts adds mentions in texts joined from parts. A mention may cross a break, where
// no single part shows it.
func (h *hider) mentionedOverParts(ctx context.Context) {
	done := make(map[string]bool)
	for i := range h.req.Messages {
		m := &h.req.Messages[i]
		if !m.Content.Present() || h.req.Raw[m.Content.Start] != '[' || done[m.Text] {
			continue
		}
		done[m.Text] = true
		f := h.texts[m.Text]
		if f == nil {
			f = &found{text: m.Text} // it has no findings of its own, so it is not in the order
			h.texts[m.Text] = f
		}
		f.spans = h.mentioned(ctx, f.text, f.spans)
	}
}

// mentioned adds the mentions of known values between the pieces of a text. Text next to a piece
// becomes a separate word once the piece is replaced, so each gap is searched separately.
func (h *hider) mentioned(ctx context.Context, text string, pieces []piece) []piece {
	pieces = h.widened(ctx, text, pieces)
	out := slices.Clip(pieces)
	at := 0
	for _, p := range pieces {
		out = h.mentionedIn(ctx, text[at:p.start], at, out)
		at = p.end
	}
	out = h.mentionedIn(ctx, text[at:], at, out)
	slices.SortFunc(out, func(a, b piece) int { return cmp.Compare(a.start, b.start) })
	return out
}

// widened returns the pieces, in which a longer mention replaces the pieces that it contains. When
// a name occurs twice, only half of it may have been found in one place.
func (h *hider) widened(ctx context.Context, text string, pieces []piece) []piece {
	var out []piece
	for from := 0; len(pieces) > 0; {
		start, end, s := h.keeper.vault.mentions.find(ctx, text, from)
		if s == nil {
			break
		}
		passed := slices.IndexFunc(pieces, func(p piece) bool { return p.end > start })
		if passed < 0 {
			break
		}
		out, pieces = append(out, pieces[:passed]...), pieces[passed:]
		n := slices.IndexFunc(pieces, func(p piece) bool { return p.end > end })
		if n < 0 {
			n = len(pieces)
		}
		same := n == 1 && pieces[0].start == start && pieces[0].end == end
		if n > 0 && !same && pieces[0].start >= start && (n == len(pieces) || pieces[n].start >= end) {
			s.respell(text[start:end])
			out, pieces = append(out, piece{start: start, end: end, secret: s}), pieces[n:]
		}
		from = end
	}
	return append(out, pieces...)
}

// mentionedIn appends the mentions in a gap that begins at offset in its text.
func (h *hider) mentionedIn(ctx context.Context, gap string, offset int, out []piece) []piece {
	for from := 0; ; {
		start, end, s := h.keeper.vault.mentions.find(ctx, gap, from)
		if s == nil {
			return out
		}
		s.respell(gap[start:end])
		out = append(out, piece{start: offset + start, end: offset + end, secret: s})
		from = end
	}
}

// verify checks the rewritten request: every text was visited, no value remains in any, and ctx did
// not end before all were checked.
func (h *hider) verify(ctx context.Context, out *openai.Request) error {
	for _, f := range h.order {
		if !f.replaced {
			return fmt.Errorf("%w: a text was not found in the body", ErrIncomplete)
		}
	}
	before, after := h.req.Text().Segments, out.Text().Segments
	if texts(before) < texts(after) || len(out.Messages) != len(h.req.Messages) {
		return fmt.Errorf("%w: the rewritten body has other texts", ErrIncomplete)
	}
	to, err := agreementOf(ctx, out)
	if err != nil {
		return err
	}
	for _, s := range after {
		if h.left(ctx, &s, to) {
			if err := ended(ctx); err != nil {
				return err
			}
			return fmt.Errorf("%w: a value is left in the body", ErrIncomplete)
		}
	}
	return ended(ctx)
}

// ended returns an error once ctx has ended.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrIncomplete, err)
	}
	return nil
}

// texts counts the segments that are one text. The number of the others may have grown when an API
// word was a value, too.
func texts(segments []signal.Segment) (n int) {
	for i := range segments {
		if !segments[i].List {
			n++
		}
	}
	return n
}
