package bundle

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxConfigBytes is the maximum size of the JSON files of a folder, except tokenizer.json.
const maxConfigBytes = 16 << 20

// Files of Hugging Face folders.
const (
	configFile   = "config.json"
	vocabFile    = "tokenizer.json"
	limitsFile   = "tokenizer_config.json"
	exportConfig = "model_config.json"
	pullRecord   = ".signalbox.json"
)

// modelConfig is the content of config.json.
type modelConfig struct {
	Architectures []string       `json:"architectures"`
	ModelType     string         `json:"model_type"`
	ProblemType   string         `json:"problem_type"`
	NumLabels     int            `json:"num_labels"`
	MaxPositions  int            `json:"max_position_embeddings"`
	HiddenSize    int            `json:"hidden_size"`
	VocabSize     int            `json:"vocab_size"`
	PadID         *int64         `json:"pad_token_id"`
	EndID         jsontext.Value `json:"eos_token_id"` // a number, a list or null
}

// tokenizerConfig is the content of tokenizer_config.json. The length is a number larger than any
// integer if there is no limit.
type tokenizerConfig struct {
	MaxLength float64 `json:"model_max_length"`
}

// sentenceModule is one element of modules.json.
type sentenceModule struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// poolingConfig is the config.json of a pooling module, in the older form, a boolean for each way,
// or the newer one.
type poolingConfig struct {
	Mode          string `json:"pooling_mode"`
	CLS           bool   `json:"pooling_mode_cls_token"`
	Mean          bool   `json:"pooling_mode_mean_tokens"`
	MeanSqrt      bool   `json:"pooling_mode_mean_sqrt_len_tokens"`
	Last          bool   `json:"pooling_mode_lasttoken"`
	Max           bool   `json:"pooling_mode_max_tokens"`
	Weighted      bool   `json:"pooling_mode_weightedmean_tokens"`
	IncludePrompt *bool  `json:"include_prompt"`
}

// folder is a Hugging Face folder.
type folder struct {
	files  fs.FS
	config modelConfig
	labels []string // in the order of the logits, nil if there are none

	sentences bool // a sentence-transformers model
	dense     bool // with layers behind the pooling
	pooling   Pooling
	noPrompt  bool // the prompt's tokens are excluded from pooling
	prompts   map[string]string
	prompt    string // name of the default prompt
	positions int    // the maximum row length of the model, in tokens, 0 if not known
	limits    []int  // the row lengths requested by the files, in tokens
	layers    []int  // exits of a two-dimensional Matryoshka model
	record    map[string]File
	revision  string
	license   string
}

// readFolder reads everything except graphs and tokenizer.
func readFolder(files fs.FS) (*folder, error) {
	f := &folder{files: files}
	steps := []func() error{f.readConfig, f.readLabels, f.readSentences, f.readLimits, f.readLayers, f.readRecord, f.readCard}
	var errs []error
	for _, step := range steps {
		errs = append(errs, step())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// readJSON decodes a file, and reports whether it exists.
func (f *folder) readJSON(name string, to any) (bool, error) {
	data, err := readBounded(f.files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &Error{File: name, Err: err}
	}
	if err := json.Unmarshal(data, to); err != nil {
		return false, &Error{File: name, Err: err}
	}
	return true, nil
}

func readBounded(files fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxConfigBytes {
		return nil, fmt.Errorf("%d bytes, at most %d are read", info.Size(), maxConfigBytes)
	}
	return fs.ReadFile(files, name)
}

func (f *folder) readConfig() error {
	ok, err := f.readJSON(configFile, &f.config)
	if err == nil && !ok {
		err = &Error{File: configFile, Err: fs.ErrNotExist}
	}
	if err != nil {
		return err
	}
	if p := f.config.ProblemType; p != "" && p != "single_label_classification" {
		return &Error{File: configFile, Key: "problem_type", Err: fmt.Errorf("%q is not supported, only one label for a text", p)}
	}
	return nil
}

// readLabels reads the labels from every file that may have them, and merges them.
func (f *folder) readLabels() error {
	var all []labelSource
	for _, name := range append([]string{configFile}, mappingFiles...) {
		data, err := readBounded(f.files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return &Error{File: name, Err: err}
		}
		read := readMappingFile
		if name == configFile {
			read = readMappings
		}
		sources, err := read(name, data)
		if err != nil {
			return err
		}
		all = append(all, sources...)
	}
	var err error
	f.labels, err = mergeLabels(all)
	return err
}

// readSentences reads the files of the sentence-transformers library.
func (f *folder) readSentences() error {
	var modules []sentenceModule
	ok, err := f.readJSON("modules.json", &modules)
	if err != nil {
		return err
	}
	poolings := []string{"1_Pooling"}
	if f.sentences = ok; ok {
		poolings = nil
	}
	for _, m := range modules {
		switch m.Type[strings.LastIndexByte(m.Type, '.')+1:] {
		case "Pooling":
			poolings = append(poolings, m.Path)
		case "Transformer", "Normalize", "Dropout": // nothing between the tokens and the normalised vector
		default: // Dense and whatever else comes
			f.dense = true
		}
	}
	for _, p := range poolings {
		if err := f.readPooling(path.Join(p, configFile)); err != nil {
			return err
		}
	}
	var config struct {
		Prompts map[string]string `json:"prompts"`
		Default string            `json:"default_prompt_name"`
	}
	if ok, err = f.readJSON("config_sentence_transformers.json", &config); err != nil {
		return err
	}
	f.sentences = f.sentences || ok
	f.prompts, f.prompt = config.Prompts, config.Default
	return nil
}

func (f *folder) readPooling(name string) error {
	if !fs.ValidPath(name) {
		return &Error{File: "modules.json", Err: fmt.Errorf("%q is not a path inside the folder", name)}
	}
	var c poolingConfig
	ok, err := f.readJSON(name, &c)
	if err != nil || !ok {
		return err
	}
	f.sentences = true
	f.noPrompt = c.IncludePrompt != nil && !*c.IncludePrompt
	var modes []Pooling
	add := func(mode string, p Pooling, old bool) {
		if old || c.Mode == mode {
			modes = append(modes, p)
		}
	}
	add("cls", CLSPooling, c.CLS)
	add("lasttoken", LastTokenPooling, c.Last)
	add("mean", MeanPooling, c.Mean)
	add("mean_sqrt_len_tokens", MeanPooling, c.MeanSqrt) // another length, and the length is normalised
	if len(modes) != 1 || c.Max || c.Weighted {
		return &Error{File: name, Err: errors.New("want one pooling mode of cls, mean and lasttoken")}
	}
	f.pooling = modes[0]
	return nil
}

// readLimits collects the row lengths in the files.
func (f *folder) readLimits() error {
	var tokenizer tokenizerConfig
	if _, err := f.readJSON(limitsFile, &tokenizer); err != nil {
		return err
	}
	var sentence struct {
		MaxLength int `json:"max_seq_length"`
	}
	if _, err := f.readJSON("sentence_bert_config.json", &sentence); err != nil {
		return err
	}
	positions := f.config.MaxPositions
	if slices.Contains([]string{"roberta", "xlm-roberta", "camembert"}, f.config.ModelType) {
		positions -= 2 // their positions start behind the padding id, 1
	}
	length := 0
	if tokenizer.MaxLength > 0 && tokenizer.MaxLength < 1<<30 {
		length = int(tokenizer.MaxLength)
	}
	for _, n := range []int{length, sentence.MaxLength} {
		if n > 0 {
			f.limits = append(f.limits, n)
		}
	}
	f.positions = max(positions, 0)
	return nil
}

// readLayers reads the list of exits that a two-dimensional Matryoshka export keeps.
func (f *folder) readLayers() error {
	for _, dir := range []string{"", "onnx"} {
		var c struct {
			Layers []int `json:"available_layers"`
		}
		name := path.Join(dir, exportConfig)
		if _, err := f.readJSON(name, &c); err != nil {
			return err
		}
		for _, l := range c.Layers {
			if l < 1 {
				return &Error{File: name, Key: "available_layers", Err: fmt.Errorf("%d is no layer", l)}
			}
		}
		if len(c.Layers) > 0 {
			f.layers = c.Layers
			return nil
		}
	}
	return nil
}

// readRecord reads what `signalbox models pull` recorded about the files.
func (f *folder) readRecord() error {
	record, err := readRecord(f.files)
	if record != nil {
		f.revision, f.license = record.Commit, record.License
	}
	f.record = record.sums()
	return err
}

// readCard reads the licence from the head of the model card, if the record has none.
func (f *folder) readCard() error {
	if f.license != "" {
		return nil
	}
	f.license = "unknown"
	data, err := readBounded(f.files, "README.md")
	if err != nil {
		return nil //nolint:nilerr // the card is optional
	}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "---" && i > 0 {
			break
		}
		if value, ok := strings.CutPrefix(line, "license:"); ok {
			if value = strings.Trim(strings.TrimSpace(value), `"'`); value != "" {
				f.license = value
			}
			break
		}
	}
	return nil
}

// kind returns what the model computes, from its architecture and the files next to it; empty if
// they do not determine it.
func (f *folder) kind() Kind {
	for _, a := range f.config.Architectures {
		switch {
		case strings.HasSuffix(a, "ForSequenceClassification") && givesPairs(f.labels):
			return Pair
		case strings.HasSuffix(a, "ForSequenceClassification"):
			return Sequence
		case strings.HasSuffix(a, "ForTokenClassification"):
			return Token
		case strings.HasSuffix(a, "Model") || f.sentences:
			return Embedding
		}
	}
	if f.sentences {
		return Embedding
	}
	return ""
}

// poolingOf returns how the model's tokens are pooled. Without a file that defines it, it is only
// known for model types with a single usual way.
func (f *folder) poolingOf() Pooling {
	if f.pooling != "" {
		return f.pooling
	}
	switch f.config.ModelType {
	case "qwen3":
		return LastTokenPooling // Qwen3-Embedding (arXiv 2506.05176, section 2)
	case "gemma3_text", "modernbert":
		return MeanPooling // EmbeddingGemma (arXiv 2509.20354, section 2) and the mmBERT embedding models
	}
	return ""
}

// prefix returns the text that the model needs before a request: its default prompt, else the one
// for queries, because every text that signalbox compares is a request.
func (f *folder) prefix() string {
	if p, ok := f.prompts[f.prompt]; ok {
		return p
	}
	return f.prompts["query"]
}
