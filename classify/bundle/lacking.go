package bundle

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// What a folder lacks, in words for the person who put it there, with what to do.

// wholeFolder describes the contents of a folder in the layout of Hugging Face.
const wholeFolder = "a model's folder holds config.json, tokenizer.json and a graph such as model.onnx; " +
	"`signalbox models pull ORG/NAME` fetches them"

// mostNamed is the maximum number of files that a message lists.
const mostNamed = 5

// noGraph returns the error for a folder without a graph in dirs.
func (f *folder) noGraph(dirs []string) error {
	places := make([]string, len(dirs))
	for i, d := range dirs {
		if places[i] = d + "/"; d == "" {
			places[i] = "the folder"
		}
	}
	names := make([]string, len(hubGraphs))
	for i, g := range hubGraphs {
		names[i] = g.Name
	}
	do := wholeFolder
	if others := f.otherGraphs(); len(others) > 0 {
		do = "it has " + strings.Join(others, ", ") + ": rename the one that is meant to model.onnx, in " + places[0]
	} else if export := f.export(); export != "" {
		do = export
	}
	where, what := strings.Join(places, " or "), strings.Join(names, ", ")
	return fmt.Errorf("%w: no graph in %s (%s); %s", ErrLayout, where, what, do)
}

// otherGraphs lists graphs with other names, except those that need the operators of one vendor.
func (f *folder) otherGraphs() []string {
	var found []string
	_ = fs.WalkDir(f.files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(found) > mostNamed:
			return fs.SkipAll
		case d.Type().IsRegular() && path.Ext(name) == ".onnx" && !strings.Contains(path.Base(name), "_fa"):
			found = append(found, name)
		}
		return nil
	})
	if len(found) > mostNamed {
		found = append(found[:mostNamed], "others")
	}
	return found
}

// export explains how to make a graph from PyTorch weights; empty if there are none.
func (f *folder) export() string {
	weights := f.first("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin")
	if weights == "" {
		return ""
	}
	task := "feature-extraction"
	switch f.kind() {
	case Sequence, Pair:
		task = "text-classification"
	case Token:
		task = "token-classification"
	case Embedding:
	}
	return fmt.Sprintf("it has %s alone: export a graph, in the folder: pip install \"optimum[onnxruntime]\" && "+
		"optimum-cli export onnx --model . --task %s .", weights, task)
}

// noTokenizer explains how to get a tokenizer.json, from an older form if the folder has one.
func (f *folder) noTokenizer() string {
	old := f.first("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
	if old == "" {
		return wholeFolder
	}
	return fmt.Sprintf("it has %s alone: convert it, in the folder: pip install transformers sentencepiece && "+
		`python -c "from transformers import AutoTokenizer as A; A.from_pretrained('.').save_pretrained('.')"`, old)
}

// first returns the first of the named files that exists, or an empty string.
func (f *folder) first(names ...string) string {
	for _, name := range names {
		if info, err := fs.Stat(f.files, name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// hollow returns why a file lacks the content that its name promises: it is empty, or a Git LFS
// pointer, which a clone without LFS contains instead of large files. The result is empty if
// neither applies.
func hollow(files fs.FS, name string) string {
	file, err := files.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // only read
	const pointer = "version https://git-lfs.github.com/spec/"
	head := make([]byte, len(pointer))
	switch n, err := io.ReadFull(file, head); {
	case n == 0 && err == io.EOF:
		return "it is empty: fetch it again"
	case string(head[:n]) == pointer:
		return "it is a pointer of Git LFS in place of the file: run `git lfs pull`, or fetch it with `signalbox models pull`"
	}
	return ""
}
