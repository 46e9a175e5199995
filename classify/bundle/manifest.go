package bundle

// Format is the version of the manifest that this package reads.
const Format = 1

const (
	minRowTokens = 8
	maxRowTokens = 32768 // attention is quadratic in it
	minSkeleton  = 24    // the smallest readable skeleton, and special tokens
)

// outsideTag labels a token outside of all spans (Ramshaw and Marcus 1995).
const outsideTag = "O"

// The precisions of graphs.
const (
	FP32 = "fp32"
	FP16 = "fp16"
	Int8 = "int8" // weights of 8 bits; the type of activations is up to the graph
)

// Manifest is the content of bundle.yaml.
type Manifest struct {
	// Format is the version of the manifest, 1.
	Format int `yaml:"format"`
	// Name identifies the bundle in metrics, traces and the API.
	Name string `yaml:"name"`
	// Version is the version of the models.
	Version string `yaml:"version"`
	// Description is one sentence for people.
	Description string `yaml:"description"`
	// License is the SPDX identifier of the models.
	License string `yaml:"license"`
	// Languages are the ISO 639-1 codes of the languages that the models were trained for.
	Languages []string `yaml:"languages"`
	// Layout is how tasks share graphs; `shared`: every graph computes every task in one pass.
	Layout string `yaml:"layout"`
	// Graphs are the same model in several precisions, the preferred one first.
	Graphs []Graph `yaml:"graphs"`
	// Tokenizer is the tokenizer.json.
	Tokenizer TokenizerFile `yaml:"tokenizer"`
	// Scan is the scan table for long prompts, optional: without a name there is none.
	Scan File `yaml:"scan"`
	// Turns is the head that estimates from embeddings whether a turn of a conversation follows the
	// previous one, optional: without a name there is none. This package does not read it.
	Turns File `yaml:"turns"`
	// Fusion defines how a guard combines the results of the models and of the comparison of
	// numbers, optional: without a name there is none. This package does not read it.
	Fusion File `yaml:"fusion"`
	// Inputs names the inputs of the graphs.
	Inputs Inputs `yaml:"inputs"`
	// MaxTokens is the maximum row length of the model, special tokens included.
	MaxTokens int `yaml:"max_tokens"`
	// Vocab is the number of token ids in the embedding table, 0 if not known.
	Vocab int `yaml:"vocab"`
	// PadID pads rows that are shorter than others of their batch.
	PadID int64 `yaml:"pad_id"`
	// Tasks are the outputs and their meaning.
	Tasks []Task `yaml:"tasks"`
	// Canary is a text with known labels, classified once before the bundle is used.
	Canary Canary `yaml:"canary"`
	// Provenance lists what the models were made from.
	Provenance []Provenance `yaml:"provenance"`
}

// File is a file of the bundle with its checksum.
type File struct {
	// Name is the path inside the bundle, with slashes.
	Name string `yaml:"file"`
	// SHA256 is the digest in lower-case hexadecimal.
	SHA256 string `yaml:"sha256"`
	// Bytes is the size.
	Bytes int64 `yaml:"bytes"`
}

// TokenizerFile is a tokenizer.json and the engine that reads it.
type TokenizerFile struct {
	File `yaml:",inline"`
	// Engine names the implementation: native, sugarme, or empty for the default.
	Engine string `yaml:"engine"`
}

// Graph is one ONNX file.
type Graph struct {
	File `yaml:",inline"`
	// Precision is FP32, FP16 or Int8.
	Precision string `yaml:"precision"`
	// Weights are the files of external weights next to the graph; usually the graph contains its
	// weights.
	Weights []File `yaml:"weights"`
	// Taps are values inside the graph from which adapters continue, optional. See [Adapter].
	Taps []Tap `yaml:"taps"`
}

// Tap is a float32 value inside a graph from which another graph can continue.
type Tap struct {
	// Name is its name for adapters, such as keys.
	Name string `yaml:"name"`
	// Value is its name in the graph. It need not be an output.
	Value string `yaml:"value"`
	// Shape is its shape, -1 for rows and tokens: [-1, -1, 384] is a vector for every token.
	Shape []int64 `yaml:"shape"`
}

// Inputs names the inputs of a graph; each is int64 of shape [batch, sequence].
type Inputs struct {
	// IDs are the token ids.
	IDs string `yaml:"ids"`
	// Mask is 1 for tokens and 0 for padding.
	Mask string `yaml:"mask"`
	// Types are segment ids, all 0 for single texts. Empty when the graph has no such input.
	Types string `yaml:"types"`
	// Positions count the tokens of a row from 0. Empty when the graph has no such input.
	Positions string `yaml:"positions"`
}

// Kind is what a task computes.
type Kind string

// The kinds of tasks.
const (
	Sequence  Kind = "sequence"  // logits of a label, float32 [batch, len(Labels)]
	Token     Kind = "token"     // logits of a label for each token, float32 [batch, sequence, len(Labels)]
	Pair      Kind = "pair"      // logits of a label for two texts in one row, float32 [batch, len(Labels)]
	Embedding Kind = "embedding" // a vector, float32 [batch, Width], or [batch, sequence, Width] before pooling
)

// Pooling is how the vectors of a row's tokens become one vector.
type Pooling string

// The ways to pool. An empty value means NoPooling.
const (
	NoPooling        Pooling = "none"       // the graph pools: its output has no token dimension
	MeanPooling      Pooling = "mean"       // average of the tokens whose mask is 1, special tokens included
	CLSPooling       Pooling = "cls"        // the first token
	LastTokenPooling Pooling = "last_token" // the last token whose mask is 1
)

// Combine is how the windows of a long text become one value.
type Combine string

// The ways to combine windows.
const (
	Mean Combine = "mean" // average of the probabilities or vectors
	Max  Combine = "max"  // the window with the highest probability of the positive label
)

// Long is how a text is read that does not fit into one row.
type Long string

// The ways to read long texts. An empty value means Skeleton.
const (
	Skeleton Long = "skeleton" // one row with the most informative parts of the text
	Windows  Long = "windows"  // all of it, in overlapping rows, up to Window.Max
)

// Template is the layout of evidence and question before an answer whose tokens are judged.
type Template string

// The templates. An empty value means Passages.
const (
	// Passages is the instruction with which the answers of RAGTruth (arXiv 2401.00396) were
	// generated, with the evidence as numbered passages. The models of LettuceDetect (arXiv
	// 2502.17125) were trained on it, in English whatever the language of the texts.
	Passages Template = "passages"
	// Separated is the evidence, the separator of the tokenizer's pair rows, and the question.
	Separated Template = "separated"
)

// Task is one output of the graphs and its meaning.
type Task struct {
	// Name is the signal that the task provides.
	Name string `yaml:"name"`
	// Kind is sequence, token, pair or embedding.
	Kind Kind `yaml:"kind"`
	// Output is the name of the graph's output.
	Output string `yaml:"output"`
	// Labels are the labels in the order of the logits. Those of token tasks without a positive
	// label are in BIO form: O, B-PERSON, I-PERSON; models of other makers may have two with the
	// same name. Empty for embedding tasks.
	Labels []string `yaml:"labels"`
	// Positive is the positive label of a yes-or-no task. Empty for other tasks. A token task with
	// one judges an answer by evidence: its row is a pair of texts, and the label means that the
	// evidence does not support the token.
	Positive string `yaml:"positive"`
	// Latin states that the task only knows the Latin script: names in other scripts are accepted
	// only if their form confirms them, and private intents compare such texts by n-grams. Only for
	// tasks that find personal data and embedding tasks. Default false.
	Latin bool `yaml:"latin"`
	// Template is the beginning of such a row. Only for token tasks with a positive label.
	Template Template `yaml:"template"`
	// Temperature divides the logits before the softmax; it was fitted on held-out data.
	Temperature float64 `yaml:"temperature"`
	// Threshold is the probability from which the task's answer counts, in (0,1].
	Threshold float64 `yaml:"threshold"`
	// Dims is the length of the task's vector: the first Dims numbers of the pooled vector,
	// L2-normalised after truncation (Matryoshka representation learning, arXiv 2205.13147). Only
	// for embedding tasks.
	Dims int `yaml:"dims"`
	// Width is the length of the graph's vectors, 0 for Dims. Only for embedding tasks.
	Width int `yaml:"width"`
	// Pooling is how the vectors of tokens become one. Only for embedding tasks.
	Pooling Pooling `yaml:"pooling"`
	// Prefix is put before every text. Only for embedding tasks.
	Prefix string `yaml:"prefix"`
	// AppendID is a token added after the tokens of the text, before the special tokens that the
	// tokenizer adds; 0 for none. Only for embedding tasks.
	AppendID int64 `yaml:"append_id"`
	// Window is how long texts are read.
	Window Window `yaml:"window"`
	// Document is how the windows of a text become one probability. Only for sequence tasks with a
	// positive label, optional: without it the probability of the text is that of the highest
	// window.
	Document *Document `yaml:"document"`
}

// Document computes the log-odds of a text from those of its windows, so that the probability has
// the same meaning for texts of any length: bias + top[0]*z1 + top[1]*z2 + ... - length*ln(n). z1,
// z2, ... are the greatest log-odds of the windows that were read, each after the temperature; if
// there are fewer, the last one is repeated. n is the number of windows that cover the text. With
// weights that add up to 1 and no bias, a text of one window has the probability of the window.
type Document struct {
	// Bias is added to the log-odds.
	Bias float64 `yaml:"bias"`
	// Top are the weights of the greatest log-odds, one to three, none negative, the first
	// positive.
	Top []float64 `yaml:"top"`
	// Length is the decrease of the log-odds per factor e in the number of windows, at least 0.
	Length float64 `yaml:"length"`
	// Close defines which window is read a second time, sentence by sentence; nil for none.
	Close *Close `yaml:"close"`
	// Scan adds the scan's evidence on the window with the greatest log-odds; nil for none.
	Scan *Say `yaml:"scan"`
	// Single is added to the log-odds of a text covered by one window, at least 0: one of many
	// windows may make a long harmless text look like an attack, which cannot happen with a single
	// window.
	Single float64 `yaml:"single"`
}

// Say adds Weight*e to the log-odds of a text, where e is the evidence of the scan, a logit,
// limited to -Bound to Bound: the scan only knows n-grams, and must not decide alone. Without a
// scan nothing is added.
type Say struct {
	// Weight is more than 0.
	Weight float64 `yaml:"weight"`
	// Bound is more than 0.
	Bound float64 `yaml:"bound"`
}

// Close is a second look at the window with the greatest log-odds z1, if these are at least From:
// its sentences are read alone, and in pairs of neighbours. With s, the greatest log-odds of these,
// z1 is replaced by (1-Weight)*z1 + Weight*s. An instruction of one sentence is diluted by the text
// around it in a window, but not alone.
type Close struct {
	// From is the log-odds from which a window is read again.
	From float64 `yaml:"from"`
	// Weight is the weight of the sentences, more than 0 and at most 1.
	Weight float64 `yaml:"weight"`
	// Sentences is the maximum number of sentences that are read, those that the scan ranks first,
	// 1 to 16.
	Sentences int `yaml:"sentences"`
	// Tokens is the maximum length in tokens of two neighbours that are read together, special
	// tokens included; 0 for none.
	Tokens int `yaml:"tokens"`
}

// MaxClose is the maximum number of sentences of a Close.
const MaxClose = 16

// MaxTop is the maximum number of weights of a Document.
const MaxTop = 3

// Judges reports whether the task finds the parts of an answer that evidence does not support,
// token by token.
func (t *Task) Judges() bool { return t.Kind == Token && t.Positive != "" }

// Window is how a text that is longer than one row is read.
type Window struct {
	// Tokens is the row length, special tokens included.
	Tokens int `yaml:"tokens"`
	// Stride is the distance between the starts of neighbouring rows in tokens.
	Stride int `yaml:"stride"`
	// Skeleton is the maximum row length, special tokens included, for the skeleton of a text that
	// does not fit into Tokens, see package compress. 0 for Tokens; at least 24. It is for tasks
	// that describe a request.
	Skeleton int `yaml:"skeleton"`
	// Long is how a task that describes a request reads a text that does not fit into one row: by
	// its skeleton, which is the default, or window by window. Tasks that read every text of a
	// request always read windows.
	Long Long `yaml:"long"`
	// Max is the maximum number of rows that are read, 0 for all: the first Max-1 and the last.
	Max int `yaml:"max"`
	// Combine is mean or max.
	Combine Combine `yaml:"combine"`
}

// Canary is a text with known labels.
type Canary struct {
	// Text is the prompt, and the first text of a pair.
	Text string `yaml:"text"`
	// Second is the second text of a pair, Text where it is empty.
	Second string `yaml:"second"`
	// Expect maps names of tasks over single texts or pairs to labels.
	Expect map[string]string `yaml:"expect"`
}

// Provenance describes one source of the models.
type Provenance struct {
	// Name says what it is.
	Name string `yaml:"name"`
	// License is its licence.
	License string `yaml:"license"`
}

// Task returns the task with the given name, or false if the bundle has none.
func (m *Manifest) Task(name string) (*Task, bool) {
	for i := range m.Tasks {
		if m.Tasks[i].Name == name {
			return &m.Tasks[i], true
		}
	}
	return nil, false
}
