package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"golang.org/x/crypto/blake2b"

	"signalbox/bench/lab"
)

// dataset is the data of the report.
type dataset struct {
	matrix  []outcome // of MMLU-Pro, in the order of the file
	held    []labelled
	trained map[string]bool // ids of MMLU-Pro questions that the classifier was trained on
	dev     []labelled
	pairs   []pair // of RouteLLM whose question the classifier was not trained on
	known   []pair // the other pairs
	efforts []labelled
}

// outcome lists the models that answered a question of MMLU-Pro correctly.
type outcome struct {
	ID       string         `json:"qid"`
	Category string         `json:"category"`
	Correct  map[string]int `json:"correct"`
}

// labelled is a text with a label, and the id of its question if there is one.
type labelled struct {
	Text  string      `json:"text"`
	Label string      `json:"label"`
	ID    json.Number `json:"qid"`
}

// pair is a question with the outcome of a small and a large model.
type pair struct {
	Text     string `json:"text"`
	Category string `json:"category"`
	Mixtral  bool   `json:"mixtral_ok"`
	GPT4     bool   `json:"gpt4_ok"`
}

// readData reads every set, and separates the rows that the classifier was trained on.
func readData(dir string) (*dataset, error) {
	if _, err := os.Stat(filepath.Join(dir, "router_mmlu_pro")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no routing data in %s: the report needs the data sets that the models were trained on, which are not part of the repository", dir)
	}
	var (
		d        = &dataset{trained: map[string]bool{}}
		pro, old []labelled
		pairs    []pair
		errs     []error
	)
	errs = append(errs, read(dir, "router_mmlu_pro/matrix.jsonl.gz", &d.matrix))
	errs = append(errs, read(dir, "mmlu_pro/train.jsonl.gz", &pro))
	errs = append(errs, read(dir, "mmlu/train.jsonl.gz", &old))
	errs = append(errs, read(dir, "router_routellm/train.jsonl.gz", &pairs))
	errs = append(errs, read(dir, "dev/domain_mmlu_pro.jsonl", &d.dev))
	errs = append(errs, read(dir, "dev/complexity.jsonl", &d.efforts))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	seen := map[string]bool{} // questions used in training
	for _, q := range pro {
		if heldOut(q.Text) && !withOptions(q.Text) {
			d.held = append(d.held, q)
			continue
		}
		seen[key(q.Text)] = true
		d.trained[q.ID.String()] = true
	}
	for _, q := range old {
		if !heldOut(q.Text) {
			seen[key(q.Text)] = true
		}
	}
	for _, p := range pairs {
		question, _, _ := strings.Cut(p.Text, "\nA. ")
		if seen[key(question)] {
			d.known = append(d.known, p)
		} else {
			d.pairs = append(d.pairs, p)
		}
	}
	return d, nil
}

// The split of the embedded models' training: texts whose bucket of 14 is the first were held out.
// Questions of MMLU-Pro whose bucket of 8 is the first were also used in training with their
// options, under a separate bucket, so they never count as held out here. See
// training/signalbox_training/data.py.
const (
	heldOutOneIn = 14
	optionsOneIn = 8
)

func heldOut(text string) bool     { return bucket(text, heldOutOneIn) == 0 }
func withOptions(text string) bool { return bucket(text, optionsOneIn) == 0 }

// bucket returns the bucket of a text among the given number, by its BLAKE2b-64 digest.
func bucket(text string, parts uint64) uint64 {
	h, err := blake2b.New(8, nil)
	if err != nil {
		panic(err) // cannot happen: the size is constant
	}
	_, _ = h.Write([]byte(key(text)))
	return binary.BigEndian.Uint64(h.Sum(nil)) % parts
}

// key returns a text's lower-case letters and digits, with one space for everything between them.
func key(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r)
	}), " ")
}

// read reads a file of rows below dir.
func read[T any](dir, name string, rows *[]T) (err error) {
	*rows, err = lab.Rows[T](filepath.Join(dir, name))
	return err
}
