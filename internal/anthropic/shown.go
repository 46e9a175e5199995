package anthropic

import (
	"bytes"
	"slices"
)

// maxInside limits contents within blocks, because each level is read once for every level around
// it. A document in a tool result is at the second level.
const maxInside = 4

// inner translates a content within a block: absent, a text, or blocks other than results and
// calls.
func (t *translator) inner(v []byte, at string) (pieces []piece, err error) {
	switch {
	case v == nil:
		return nil, nil
	case v[0] == '"':
		return []piece{{text: v[1 : len(v)-1]}}, nil
	case v[0] != '[':
		return nil, bad(at, "must be a string or a list of blocks")
	}
	if t.inside++; t.inside > maxInside {
		return nil, bad(at, "lies within more than %d blocks", maxInside)
	}
	defer func() { t.inside-- }()
	err = elements(v, at, func(at string, v []byte) error {
		b, err := t.block(v, at)
		if err == nil {
			pieces, err = t.piece(pieces, &b, at)
		}
		return err
	})
	return pieces, err
}

// piece translates a block of text, an image or a document.
func (t *translator) piece(to []piece, b *block, at string) ([]piece, error) {
	switch b.kind {
	case "text":
		if b.text == nil {
			return to, bad(join(at, "text"), "is required")
		}
		if b.citations != nil && string(b.citations) != "[]" {
			t.leaveOut("text.citations")
		}
		return append(to, piece{text: b.text}), nil
	case "image":
		part, err := t.image(b.source, join(at, "source"))
		return append(to, piece{part: part}), err
	case "document":
		return t.document(to, b, at)
	case "search_result":
		return t.searchResult(to, b, at)
	}
	return to, bad(join(at, "type"), "%.100q has no counterpart in a chat completion; "+
		"known here are text, image, document, search_result, and in turns tool_result (user), "+
		"tool_use and thinking (assistant)",
		b.kind)
}

// source is the source of an image or a document.
type source struct {
	kind           string
	media          []byte // without quotes
	data, url, raw []byte // data and url without quotes
}

func (t *translator) source(raw []byte, at string) (s source, err error) {
	if raw == nil {
		return s, bad(at, "is required")
	}
	var names []string
	err = members(raw, at, func(name string, v []byte) (err error) {
		in := join(at, name)
		names = append(names, name)
		switch name {
		case "type":
			s.kind, err = word(v, in)
		case "media_type":
			s.media, err = text(v, in)
		case "data":
			s.data, err = text(v, in)
		case "url":
			s.url, err = text(v, in)
		case "content":
			s.raw = v
		}
		return err
	})
	for _, name := range names {
		if name != "type" && !slices.Contains(membersOfSource(s.kind), name) {
			t.unknown("source", name)
		}
	}
	return s, err
}

func membersOfSource(kind string) []string {
	switch kind {
	case "base64", "text":
		return []string{"media_type", "data"}
	case "url":
		return []string{"url"}
	case "content":
		return []string{"content"}
	}
	return nil
}

// citing refuses a block with citations enabled.
func (t *translator) citing(b *block, at string) error {
	if b.citations == nil {
		return nil
	}
	at = join(at, "citations")
	return members(b.citations, at, func(name string, v []byte) error {
		if name != "enabled" {
			t.unknown("citations", name)
			return nil
		}
		cite, err := flag(v, join(at, name))
		if err == nil && cite {
			err = bad(join(at, name), "must be false: models here do not cite")
		}
		return err
	})
}

// dataURL appends a data URL (RFC 2397), without quotes. An invalid media type is refused: it could
// produce a URL of another kind.
func (s *source) dataURL(b []byte, at string) ([]byte, error) {
	switch {
	case len(s.data) == 0:
		return nil, bad(join(at, "data"), "is required")
	case len(s.media) == 0:
		return nil, bad(join(at, "media_type"), "is required")
	case bytes.ContainsAny(s.media, `;,\" `):
		return nil, bad(join(at, "media_type"), "must be a media type, as image/png")
	}
	b = append(append(append(b, "data:"...), s.media...), ";base64,"...)
	return append(b, s.data...), nil
}

func (t *translator) image(raw []byte, at string) ([]byte, error) {
	s, err := t.source(raw, at)
	if err != nil {
		return nil, err
	}
	out := []byte(`{"type":"image_url","image_url":{"url":"`)
	switch s.kind {
	case "base64":
		if out, err = s.dataURL(out, at); err != nil {
			return nil, err
		}
	case "url":
		if len(s.url) == 0 {
			return nil, bad(join(at, "url"), "is required")
		}
		out = append(out, s.url...)
	default:
		return nil, bad(join(at, "type"), "must be base64 or url: files are not kept here")
	}
	return append(out, `"}}`...), nil
}

// fileHead begins a part that is a file.
const fileHead = `{"type":"file","file":{"filename":"`

// document translates a document: text becomes text, preceded by its title and context, and a file
// remains a file.
func (t *translator) document(to []piece, b *block, at string) ([]piece, error) {
	if err := t.citing(b, at); err != nil {
		return to, err
	}
	for _, text := range [][]byte{b.title, b.context} {
		if len(text) > 0 {
			to = append(to, piece{text: text})
		}
	}
	from := join(at, "source")
	s, err := t.source(b.source, from)
	if err != nil {
		return to, err
	}
	switch s.kind {
	case "text":
		switch {
		case s.data == nil:
			return to, bad(join(from, "data"), "is required")
		case s.media != nil && string(s.media) != "text/plain":
			return to, bad(join(from, "media_type"), "must be text/plain")
		}
		return append(to, piece{text: s.data}), nil
	case "content":
		pieces, err := t.inner(s.raw, join(from, "content"))
		return append(to, pieces...), err
	case "base64":
		name := b.title
		if len(name) == 0 {
			name = []byte("document.pdf")
		}
		out := append(append([]byte(fileHead), name...), `","file_data":"`...)
		if out, err = s.dataURL(out, from); err != nil {
			return to, err
		}
		return append(to, piece{part: append(out, `"}}`...)}), nil
	}
	return to, bad(join(from, "type"),
		"must be one of text, content, base64: nothing is fetched, and files are not kept here")
}

// searchResult translates a search result to its title, source and texts.
func (t *translator) searchResult(to []piece, b *block, at string) ([]piece, error) {
	if err := t.citing(b, at); err != nil {
		return to, err
	}
	if len(b.title) > 0 {
		to = append(to, piece{text: b.title})
	}
	if b.source != nil {
		from, err := text(b.source, join(at, "source"))
		if err != nil {
			return to, err
		}
		to = append(to, piece{text: from})
	}
	pieces, err := t.inner(b.content, join(at, "content"))
	return append(to, pieces...), err
}
