package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
)

// slot is one element of a row template: a special token, or all tokens of one of the texts.
type slot struct {
	text    int8  // 1 or 2 for the first or second text; 0 for a special token
	id      int32 // of the special token
	segment int64 // token_type_ids of the slot
}

// template is the layout of a row of a model.
type template []slot

// specials returns the number of special tokens of a row.
func (p template) specials() int {
	n := 0
	for _, s := range p {
		if s.text == 0 {
			n++
		}
	}
	return n
}

// check reports a template that does not contain the text, or both of two texts, exactly once, or
// that has a token id out of range.
func (p template) check(texts int) error {
	var found [3]int
	for _, s := range p {
		found[s.text]++
		if s.text == 0 && (s.id < 0 || s.id > maxID) {
			return fmt.Errorf("special token id %d", s.id)
		}
	}
	if found[1] != 1 || found[2] != texts-1 {
		return fmt.Errorf("want one Sequence for each of %d texts, found %d", texts, found[1]+found[2])
	}
	return nil
}

// bareSingle and barePair return the rows for a file without a post-processor.
func bareSingle() template { return template{{text: 1}} }

func barePair() template { return template{{text: 1}, {text: 2, segment: 1}} }

// bertRows returns the rows of BertProcessing.
func bertRows(cls, sep int32) (single, pair template) {
	single = template{{id: cls}, {text: 1}, {id: sep}}
	return single, append(single[:3:3], slot{text: 2, segment: 1}, slot{id: sep, segment: 1})
}

// robertaRows returns the rows of RobertaProcessing: two separators between the texts, one segment.
func robertaRows(cls, sep int32) (single, pair template) {
	single = template{{id: cls}, {text: 1}, {id: sep}}
	return single, append(single[:3:3], slot{id: sep}, slot{text: 2}, slot{id: sep})
}

// templateFile is a TemplateProcessing section.
type templateFile struct {
	Single   []templatePiece `json:"single"`
	Pair     []templatePiece `json:"pair"`
	Specials map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

type templatePiece struct {
	SpecialToken *struct {
		ID     string `json:"id"`
		TypeID int64  `json:"type_id"`
	}
	Sequence *struct {
		ID     string `json:"id"`
		TypeID int64  `json:"type_id"`
	}
}

// rows compiles both templates. Without a pair template, a pair is two bare texts.
func (f *templateFile) rows() (single, pair template, err error) {
	if single, err = f.compile(f.Single, 1); err != nil {
		return nil, nil, fmt.Errorf("single%w", err)
	}
	if len(f.Pair) == 0 {
		return single, barePair(), nil
	}
	if pair, err = f.compile(f.Pair, 2); err != nil {
		return nil, nil, fmt.Errorf("pair%w", err)
	}
	return single, pair, nil
}

func (f *templateFile) compile(pieces []templatePiece, texts int) (template, error) {
	var out template
	for i, p := range pieces {
		switch {
		case p.Sequence != nil:
			s := slot{text: 1, segment: p.Sequence.TypeID}
			if p.Sequence.ID == "B" {
				s.text = 2
			}
			out = append(out, s)
		case p.SpecialToken == nil:
			return nil, fmt.Errorf("[%d]: neither Sequence nor SpecialToken", i)
		default:
			token, ok := f.Specials[p.SpecialToken.ID]
			if !ok {
				return nil, fmt.Errorf("[%d]: %q is not in special_tokens", i, p.SpecialToken.ID)
			}
			for _, id := range token.IDs {
				out = append(out, slot{id: id, segment: p.SpecialToken.TypeID})
			}
		}
	}
	if err := out.check(texts); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	return out, nil
}

// addPost reads a post-processor: its rows, and whether it trims offsets.
func (t *Tokenizer) addPost(raw json.RawMessage) error {
	c, err := parse(raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "Sequence":
		for i, r := range c.Processors {
			if err := t.addPost(r); err != nil {
				return fmt.Errorf("processors[%d]: %w", i, err)
			}
		}
		return nil
	case "ByteLevel":
		t.trim = t.trim || or(c.TrimOffsets, true)
		return nil
	case "RobertaProcessing":
		t.trim = t.trim || or(c.TrimOffsets, true)
	}
	single, pair, err := c.rows(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Type, err)
	}
	if t.single != nil {
		return errors.New("two processors that build rows are not supported")
	}
	t.single, t.pair = single, pair
	return nil
}

// rows returns the templates of a post-processor that builds rows; raw is its text.
func (c *component) rows(raw json.RawMessage) (single, pair template, err error) {
	switch c.Type {
	case "BertProcessing", "RobertaProcessing":
		cls, err := specialID(c.Cls)
		if err != nil {
			return nil, nil, fmt.Errorf("cls: %w", err)
		}
		sep, err := specialID(c.Sep)
		if err != nil {
			return nil, nil, fmt.Errorf("sep: %w", err)
		}
		if single, pair = bertRows(cls, sep); c.Type == "RobertaProcessing" {
			single, pair = robertaRows(cls, sep)
		}
		return single, pair, single.check(1)
	case "TemplateProcessing":
		var f templateFile
		if err := json.Unmarshal(raw, &f); err != nil {
			return nil, nil, err
		}
		return f.rows()
	}
	return nil, nil, errUnsupported
}

// specialID decodes ["[CLS]", 101].
func specialID(raw json.RawMessage) (int32, error) {
	var name string
	id := int32(-1)
	row := [2]any{&name, &id}
	if err := json.Unmarshal(raw, &row); err != nil {
		return 0, err
	}
	return id, nil
}

// Specials returns the number of special tokens that AppendRow adds.
func (t *Tokenizer) Specials() int { return t.singleSpecials }

// PairSpecials returns the number of special tokens that AppendPair adds.
func (t *Tokenizer) PairSpecials() int { return t.pairSpecials }

// AppendRow appends one model row to dst: ids surrounded by the special tokens of the file's
// post-processor. The row has len(ids)+Specials() tokens; all its segment ids are those of the
// first text.
func (t *Tokenizer) AppendRow(dst []int64, ids []int32) []int64 {
	for _, s := range t.single {
		if s.text == 0 {
			dst = append(dst, int64(s.id))
			continue
		}
		for _, id := range ids {
			dst = append(dst, int64(id))
		}
	}
	return dst
}

// AppendPair appends one model row for two texts, laid out by the pair template of the file's
// post-processor, to ids, and the segment id (token_type_ids) of each of its tokens to types. Both
// grow by len(a)+len(b)+PairSpecials(). A file without a template gives a, segment 0, then b,
// segment 1.
func (t *Tokenizer) AppendPair(ids, types []int64, a, b []int32) (rowIDs, rowTypes []int64) {
	for _, s := range t.pair {
		text := a
		switch s.text {
		case 0:
			ids, types = append(ids, int64(s.id)), append(types, s.segment)
			continue
		case 2:
			text = b
		}
		for _, id := range text {
			ids, types = append(ids, int64(id)), append(types, s.segment)
		}
	}
	return ids, types
}

// Windows returns the ranges [from,to) of n text tokens that rows of at most size tokens, special
// tokens included, must hold to cover all of them. Each range starts stride tokens after the
// previous one, and the last is the first that reaches the end. There is always at least one, empty
// if n is 0. A size too small for one text token counts as Specials()+1, and a stride outside [1,
// size-Specials()] as the widest without a gap. Truncation is the first window.
func (t *Tokenizer) Windows(n, size, stride int) Windows {
	return NewWindows(n, size-t.Specials(), stride)
}

// NewWindows returns the ranges that cover n tokens with windows of at most room tokens, see
// Tokenizer.Windows; a room below 1 counts as 1.
func NewWindows(n, room, stride int) Windows {
	room = max(room, 1)
	if stride < 1 || stride > room {
		stride = room
	}
	return Windows{n: n, room: room, stride: stride}
}

// Windows describes how rows cover a text. See Tokenizer.Windows.
type Windows struct{ n, room, stride int }

// Len returns the number of windows.
func (w Windows) Len() int {
	if w.n <= w.room {
		return 1
	}
	return 1 + (w.n-w.room+w.stride-1)/w.stride
}

// At returns the token range of window i, with 0 <= i < Len().
func (w Windows) At(i int) (from, to int) {
	from = i * w.stride
	return from, min(from+w.room, w.n)
}
