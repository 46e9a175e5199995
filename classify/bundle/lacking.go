package bundle

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// What a folder lacks, in words for whoever put it there: each says what to do.

// wholeFolder says what a folder in the layout of Hugging Face consists of.
const wholeFolder = "a model's folder holds config.json, tokenizer.json and a graph such as model.onnx; " +
	"`signalbox models pull ORG/NAME` fetches them"

// mostNamed is how many files a message names.
const mostNamed = 5

// noGraph is the error for a folder without a graph in dirs.
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

// otherGraphs lists graphs with other names, but for those that need the operators of one vendor.
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

// export tells how a graph is made of weights of PyTorch; empty where there are none.
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

// noTokenizer tells how a tokenizer.json is had, of an older form where that is there.
func (f *folder) noTokenizer() string {
	old := f.first("vocab.txt", "vocab.json", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model", "spm.model")
	if old == "" {
		return wholeFolder
	}
	return fmt.Sprintf("it has %s alone: convert it, in the folder: pip install transformers sentencepiece && "+
		`python -c "from transformers import AutoTokenizer as A; A.from_pretrained('.').save_pretrained('.')"`, old)
}

// first is the first of the named files that is there, or empty.
func (f *folder) first(names ...string) string {
	for _, name := range names {
		if info, err := fs.Stat(f.files, name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// hollow says why a file holds nothing of what its name promises: it is empty, or a pointer of Git
// LFS, which a clone without LFS has in the place of large files. Empty when neither is so.
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
