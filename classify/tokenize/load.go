package tokenize

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// maxID is the maximum token id: the largest vocabularies have some hundred thousand.
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
}

// or returns *p, or d when the file leaves the field out.
func or[T any](p *T, d T) T {
	if p == nil {
		return d
	}
	return *p
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// Options change how a tokenizer reads text. The zero value is for untrusted text.
type Options struct {
	// SpecialTokens makes Encode convert special tokens spelled out in the text ("[SEP]", "</s>",
	// "<|im_end|>") to their ids, as the reference implementation does by default. A prompt could
	// then imitate the end of a row, so this is for trusted text only. Without it no text produces
	// the id of a special token, except the unknown token; added tokens that are not special are
	// always recognised.
	SpecialTokens bool
	// Splitter, if not nil, splits words instead of the file's model, which must be WordPiece.
	Splitter Splitter
}

// New reads a tokenizer.json for untrusted text: see Options. Its errors name the unusable part of
// the file. data is not retained.
func New(data []byte) (*Tokenizer, error) { return NewWith(data, Options{}) }

// NewWith is New with options.
func NewWith(data []byte, o Options) (*Tokenizer, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t := &Tokenizer{options: o}
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
	if err := t.addModel(&f.Model, byteLevel, t.hidden(f.AddedTokens)); err != nil {
		return err
	}
	if err := t.addTokens(f.AddedTokens); err != nil {
		return fmt.Errorf("added_tokens%w", err)
	}
	if t.single == nil {
		t.single, t.pair = bareSingle(), barePair()
	}
	t.singleSpecials, t.pairSpecials = t.single.specials(), t.pair.specials()
	for _, s := range slices.Concat(t.single, t.pair) {
		t.vocab = max(t.vocab, int(s.id)+1)
	}
	return nil
}

// hidden returns the tokens that the model must not find in a text: a normalizer or a Unigram
// vocabulary can produce a special token that no added token matched.
func (t *Tokenizer) hidden(tokens []addedToken) map[int32]bool {
	ids := make(map[int32]bool)
	if t.options.SpecialTokens {
		return ids
	}
	for _, a := range tokens {
		if a.Special {
			ids[a.ID] = true
		}
	}
	for _, s := range slices.Concat(t.single, t.pair) {
		if s.text == 0 {
			ids[s.id] = true
		}
	}
	return ids
}

func (t *Tokenizer) addTokens(tokens []addedToken) error {
	var literal, folded []addedToken
	for i, a := range tokens {
		if a.ID < 0 || a.ID > maxID {
			return fmt.Errorf("[%d]: id %d", i, a.ID)
		}
		if a.Special && !t.options.SpecialTokens {
			// no text produces it: Gemma 3's tokens for images are beyond the embedding table
			continue
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

func (t *Tokenizer) addModel(f *modelFile, byteLevel bool, hidden map[int32]bool) error {
	kind := f.Type
	if kind == "" { // files older than the field
		kind = "WordPiece"
		if present(f.Merges) {
			kind = "BPE"
		}
	}
	if t.options.Splitter != nil && kind != "WordPiece" {
		return fmt.Errorf("model.type: %q cannot be split by another engine", kind)
	}
	var err error
	switch kind {
	case "WordPiece":
		var m *wordPiece
		if m, err = newWordPiece(f, hidden); err == nil {
			t.model, t.vocab = m, maxOf(m.words)
			if t.options.Splitter != nil {
				t.model = &foreign{t.options.Splitter, hidden, m.unknown}
			}
		}
	case "BPE":
		var m *bpe
		if m, err = newBPE(f, byteLevel, hidden); err == nil {
			t.model, t.vocab = m, m.size
		}
	case "Unigram":
		var m *unigram
		if m, err = newUnigram(f, hidden); err == nil {
			t.model, t.vocab = m, len(m.scores)
		}
	default:
		err = fmt.Errorf(
			"model.type: %q is not supported, only WordPiece, BPE and Unigram are: take a model with such a tokenizer", kind,
		)
	}
	return err
}

// maxOf returns one more than the highest id.
func maxOf(vocab map[string]int32) int {
	n := 0
	for _, id := range vocab {
		n = max(n, int(id)+1)
	}
	return n
}

func parse(raw json.RawMessage) (*component, error) {
	c := new(component)
	return c, json.Unmarshal(raw, c)
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

var errUnsupported = errors.New("not supported: take a model with a usual tokenizer")

func (c *component) normalizer() (step, error) {
	switch c.Type {
	case "BertNormalizer":
		low := or(c.Lowercase, true)
		return bert(bertOptions{
			clean: or(c.CleanText, true), cjk: or(c.ChineseChars, true),
			accents: or(c.StripAccents, low), lower: low,
		}), nil
	case "NFC":
		return newNormalForm(norm.NFC).step, nil
	case "NFD":
		return newNormalForm(norm.NFD).step, nil
	case "NFKC":
		return newNormalForm(norm.NFKC).step, nil
	case "NFKD":
		return newNormalForm(norm.NFKD).step, nil
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
		if literal == spaceRuns {
			return replaceSpaceRuns(c.Content), nil
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

// addSplitter adds a pre-tokenizer, and reports whether the model's symbols are bytes.
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
			mark: or(c.Replacement, spaceMark), always: scheme == "always", first: scheme == "first",
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
		if c.Behavior == isolated && !c.Invert && re.re != nil {
			switch literal {
			case gpt2Pattern:
				return each(splitGPT2), nil
			case llama3Pattern:
				return each(splitGPT4(3)), nil
			case qwenPattern:
				return each(splitGPT4(1)), nil
			}
		}
		if re.re == nil {
			re.literal = []byte(literal)
		}
		return each(splitPattern(re, cutter{behavior: c.Behavior, invert: c.Invert})), nil
	}
	return nil, errUnsupported
}
