package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/text/unicode/norm"
)

// maxID bounds token ids: the largest vocabularies have some hundred thousand.
const maxID = 1 << 24

// file is the part of a tokenizer.json that this engine uses.
type file struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         modelFile       `json:"model"`
}

type modelFile struct {
	Type         string          `json:"type"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
	UnkToken     *string         `json:"unk_token"`
	UnkID        *int            `json:"unk_id"`
	ByteFallback bool            `json:"byte_fallback"`
	FuseUnk      bool            `json:"fuse_unk"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Dropout      *float64        `json:"dropout"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	MaxWordRunes *int            `json:"max_input_chars_per_word"`
}

// vocabMap decodes a vocabulary that maps tokens to ids and checks the ids.
func (f *modelFile) vocabMap() (map[string]int32, error) {
	var v map[string]int32
	if err := json.Unmarshal(f.Vocab, &v); err != nil {
		return nil, fmt.Errorf("model.vocab: %w", err)
	}
	if len(v) == 0 {
		return nil, errors.New("model.vocab: empty")
	}
	for k, id := range v {
		if id < 0 || id > maxID {
			return nil, fmt.Errorf("model.vocab: token %q has id %d", k, id)
		}
	}
	return v, nil
}

// component is any normalizer, pre-tokenizer or post-processor; Type says which fields count.
type component struct {
	Type          string            `json:"type"`
	Normalizers   []json.RawMessage `json:"normalizers"`
	Pretokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`

	CleanText    *bool           `json:"clean_text"`
	ChineseChars *bool           `json:"handle_chinese_chars"`
	StripAccents *bool           `json:"strip_accents"`
	Lowercase    *bool           `json:"lowercase"`
	StripLeft    *bool           `json:"strip_left"`
	StripRight   *bool           `json:"strip_right"`
	Prepend      string          `json:"prepend"`
	CharsMap     string          `json:"precompiled_charsmap"`
	Pattern      json.RawMessage `json:"pattern"`
	Content      string          `json:"content"`

	PrefixSpace   *bool    `json:"add_prefix_space"`
	UseRegex      *bool    `json:"use_regex"`
	Replacement   *string  `json:"replacement"`
	PrependScheme string   `json:"prepend_scheme"`
	Split         *bool    `json:"split"`
	Behavior      behavior `json:"behavior"`
	Invert        bool     `json:"invert"`

	TrimOffsets *bool           `json:"trim_offsets"`
	Sep         json.RawMessage `json:"sep"`
	Cls         json.RawMessage `json:"cls"`
	Single      json.RawMessage `json:"single"`
	Specials    json.RawMessage `json:"special_tokens"`
}

// or returns *p, or d when the file leaves the field out.
func or[T any](p *T, d T) T {
	if p == nil {
		return d
	}
	return *p
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// New reads a tokenizer.json. Its errors name the part of the file that cannot be used. data is
// not retained.
func New(data []byte) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t := new(Tokenizer)
	if err := t.build(&f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return t, nil
}

func (t *Tokenizer) build(f *file) error {
	if present(f.Normalizer) {
		if err := t.addNormalizer(f.Normalizer); err != nil {
			return fmt.Errorf("normalizer: %w", err)
		}
	}
	byteLevel := false
	if present(f.PreTokenizer) {
		var err error
		if byteLevel, err = t.addSplitter(f.PreTokenizer); err != nil {
			return fmt.Errorf("pre_tokenizer: %w", err)
		}
	}
	if present(f.PostProcessor) {
		if err := t.addPost(f.PostProcessor); err != nil {
			return fmt.Errorf("post_processor: %w", err)
		}
	}
	if err := t.addModel(&f.Model, byteLevel); err != nil {
		return err
	}
	if err := t.addTokens(f.AddedTokens); err != nil {
		return fmt.Errorf("added_tokens%w", err)
	}
	for _, id := range append(append([]int32(nil), t.prefix...), t.suffix...) {
		if id < 0 || id > maxID {
			return fmt.Errorf("post_processor: special token id %d", id)
		}
		t.vocab = max(t.vocab, int(id)+1)
	}
	return nil
}

func (t *Tokenizer) addTokens(tokens []addedToken) error {
	var literal, folded []addedToken
	for i, a := range tokens {
		if a.ID < 0 || a.ID > maxID {
			return fmt.Errorf("[%d]: id %d", i, a.ID)
		}
		t.vocab = max(t.vocab, int(a.ID)+1)
		if !a.Normalized {
			literal = append(literal, a)
			continue
		}
		w := new(work)
		w.text.load(a.Content, 0)
		for _, f := range t.normalizers {
			f(w)
		}
		a.Content = string(w.text.b)
		folded = append(folded, a)
	}
	t.literal, t.folded = newAddedTokens(literal), newAddedTokens(folded)
	return nil
}

func (t *Tokenizer) addModel(f *modelFile, byteLevel bool) error {
	kind := f.Type
	if kind == "" { // files older than the field
		kind = "WordPiece"
		if present(f.Merges) {
			kind = "BPE"
		}
	}
	var err error
	switch kind {
	case "WordPiece":
		var m *wordPiece
		if m, err = newWordPiece(f); err == nil {
			t.model, t.vocab = m, maxOf(m.words)
		}
	case "BPE":
		var m *bpe
		if m, err = newBPE(f, byteLevel); err == nil {
			t.model, t.vocab = m, m.size
		}
	case "Unigram":
		var m *unigram
		if m, err = newUnigram(f); err == nil {
			t.model, t.vocab = m, len(m.scores)
		}
	default:
		err = fmt.Errorf("model.type: %q is not supported", kind)
	}
	return err
}

// maxOf is one more than the highest id.
func maxOf(vocab map[string]int32) int {
	n := 0
	for _, id := range vocab {
		n = max(n, int(id)+1)
	}
	return n
}

func parse(raw json.RawMessage) (*component, error) {
	c := new(component)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	return c, nil
}

func (t *Tokenizer) addNormalizer(raw json.RawMessage) error {
	c, err := parse(raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "Sequence":
		for i, r := range c.Normalizers {
			if err := t.addNormalizer(r); err != nil {
				return fmt.Errorf("normalizers[%d]: %w", i, err)
			}
		}
		return nil
	case "Strip":
		if or(c.StripLeft, true) {
			t.normalizers = append(t.normalizers, stripLeft)
		}
		if or(c.StripRight, true) {
			t.normalizers = append(t.normalizers, stripRight)
		}
		return nil
	}
	f, err := c.normalizer()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Type, err)
	}
	t.normalizers = append(t.normalizers, f)
	return nil
}

var errUnsupported = errors.New("not supported")

func (c *component) normalizer() (step, error) {
	switch c.Type {
	case "BertNormalizer":
		low := or(c.Lowercase, true)
		return bert(bertOptions{
			clean: or(c.CleanText, true), cjk: or(c.ChineseChars, true),
			accents: or(c.StripAccents, low), lower: low,
		}), nil
	case "NFC":
		return decompose(norm.NFC), nil
	case "NFD":
		return decompose(norm.NFD), nil
	case "NFKC":
		return decompose(norm.NFKC), nil
	case "NFKD":
		return decompose(norm.NFKD), nil
	case "Lowercase":
		return lower, nil
	case "StripAccents":
		return stripAccents, nil
	case "Prepend":
		return prepend(c.Prepend), nil
	case "Precompiled":
		m, err := newCharsMap(c.CharsMap)
		if err != nil {
			return nil, err
		}
		return m.step, nil
	case "Replace":
		literal, re, err := c.pattern()
		if err != nil {
			return nil, err
		}
		if re.re == nil {
			return replaceString(literal, c.Content), nil
		}
		if re.giveBack {
			return nil, errUnsupported
		}
		return replaceRegexp(re.re, c.Content), nil
	}
	return nil, errUnsupported
}

// pattern returns the literal or the compiled expression of a pattern.
func (c *component) pattern() (literal string, re pattern, err error) {
	var p struct{ String, Regex *string }
	if err := json.Unmarshal(c.Pattern, &p); err != nil {
		return "", re, fmt.Errorf("pattern: %w", err)
	}
	switch {
	case p.String != nil:
		return *p.String, re, nil
	case p.Regex != nil:
		re, err = compile(*p.Regex)
		return *p.Regex, re, err
	}
	return "", re, errors.New("pattern: want String or Regex")
}

// addSplitter reports whether the model's symbols are bytes.
func (t *Tokenizer) addSplitter(raw json.RawMessage) (byteLevel bool, err error) {
	c, err := parse(raw)
	if err != nil {
		return false, err
	}
	switch c.Type {
	case "Sequence":
		for i, r := range c.Pretokenizers {
			b, err := t.addSplitter(r)
			if err != nil {
				return false, fmt.Errorf("pretokenizers[%d]: %w", i, err)
			}
			byteLevel = byteLevel || b
		}
		return byteLevel, nil
	case "ByteLevel":
		if or(c.PrefixSpace, true) {
			t.splitters = append(t.splitters, prefixSpace)
		}
		if or(c.UseRegex, true) {
			t.splitters = append(t.splitters, each(splitGPT2))
		}
		return true, nil
	}
	f, err := c.splitter()
	if err != nil {
		return false, fmt.Errorf("%s: %w", c.Type, err)
	}
	t.splitters = append(t.splitters, f)
	return false, nil
}

func (c *component) splitter() (step, error) {
	switch c.Type {
	case "BertPreTokenizer":
		return each(splitBert), nil
	case "WhitespaceSplit":
		return each(splitSpace), nil
	case "Metaspace":
		scheme := c.PrependScheme
		if scheme == "" && or(c.PrefixSpace, true) {
			scheme = "always"
		}
		m := metaspace{
			mark: or(c.Replacement, "\u2581"), always: scheme == "always", first: scheme == "first",
			split: or(c.Split, true),
		}
		if m.mark == "" {
			return nil, errors.New("replacement: empty")
		}
		return m.step, nil
	case "Split":
		literal, re, err := c.pattern()
		if err != nil {
			return nil, err
		}
		if !c.Behavior.valid() {
			return nil, fmt.Errorf("behavior: %q is not supported", c.Behavior)
		}
		if literal == gpt2Pattern && c.Behavior == isolated && !c.Invert && re.re != nil {
			return each(splitGPT2), nil
		}
		if re.re == nil {
			re.re = regexp.MustCompile(regexp.QuoteMeta(literal))
		}
		return each(splitPattern(re, cutter{behavior: c.Behavior, invert: c.Invert})), nil
	}
	return nil, errUnsupported
}

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
	case "ByteLevel":
		t.trim = t.trim || or(c.TrimOffsets, true)
	case "BertProcessing", "RobertaProcessing":
		cls, err := specialID(c.Cls)
		if err != nil {
			return fmt.Errorf("%s.cls: %w", c.Type, err)
		}
		sep, err := specialID(c.Sep)
		if err != nil {
			return fmt.Errorf("%s.sep: %w", c.Type, err)
		}
		t.prefix, t.suffix = append([]int32{cls}, t.prefix...), append(t.suffix, sep)
		t.trim = t.trim || c.Type == "RobertaProcessing" && or(c.TrimOffsets, true)
	case "TemplateProcessing":
		if err := t.addTemplate(c); err != nil {
			return fmt.Errorf("TemplateProcessing: %w", err)
		}
	default:
		return fmt.Errorf("%s: %w", c.Type, errUnsupported)
	}
	return nil
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

func (t *Tokenizer) addTemplate(c *component) error {
	var single []struct {
		SpecialToken *struct {
			ID string `json:"id"`
		}
		Sequence *struct{}
	}
	if err := json.Unmarshal(c.Single, &single); err != nil {
		return fmt.Errorf("single: %w", err)
	}
	var specials map[string]struct {
		IDs []int32 `json:"ids"`
	}
	if err := json.Unmarshal(c.Specials, &specials); err != nil {
		return fmt.Errorf("special_tokens: %w", err)
	}
	var before, after []int32
	sequences := 0
	for i, p := range single {
		switch {
		case p.Sequence != nil:
			sequences++
		case p.SpecialToken == nil:
			return fmt.Errorf("single[%d]: neither Sequence nor SpecialToken", i)
		default:
			s, ok := specials[p.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("single[%d]: %q is not in special_tokens", i, p.SpecialToken.ID)
			}
			if sequences == 0 {
				before = append(before, s.IDs...)
			} else {
				after = append(after, s.IDs...)
			}
		}
	}
	if sequences != 1 {
		return fmt.Errorf("single: want one Sequence, found %d", sequences)
	}
	t.prefix, t.suffix = append(before, t.prefix...), append(t.suffix, after...)
	return nil
}
