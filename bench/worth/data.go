package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"signalbox/bench/lab"
)

// result is the result of one model for one prompt.
type result struct {
	score     float64 // in [0,1]
	tokens    float64 // of the response, including reasoning
	reasoning float64 // part of tokens; 0 if unknown
}

// prompt is one line of a file.
type prompt struct {
	id, src, task, text string
	out                 map[string]result
}

// line is a prompt as files have it. A score is a number or a boolean.
type line struct {
	ID   string                       `json:"id"`
	Src  string                       `json:"src"`
	Task string                       `json:"task"`
	Text string                       `json:"text"`
	Out  map[string][]json.RawMessage `json:"out"`
}

// set holds the prompts of one folder, or of one file directly below the root.
type set struct {
	name    string
	prompts []*prompt
	single  *bool // its prompts are from one source; nil until checked
}

// load reads every *.jsonl and *.jsonl.gz below dir whose lines have outcomes. The files of a
// folder form one set. Lines in other formats are left out and counted.
func load(dir string, log io.Writer) ([]*set, error) {
	byName := map[string]*set{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() ||
			!strings.HasSuffix(path, ".jsonl") && !strings.HasSuffix(path, ".jsonl.gz") {
			return err
		}
		ps, other, err := readFile(path)
		if err != nil {
			return err
		}
		if len(ps) == 0 {
			return nil
		}
		if other > 0 {
			_, _ = fmt.Fprintf(log, "%s: %d lines without outcomes\n", path, other)
		}
		name := filepath.Base(path)
		if rel, err := filepath.Rel(dir, filepath.Dir(path)); err == nil && rel != "." {
			name = rel
		}
		s := byName[name]
		if s == nil {
			s = &set{name: name}
			byName[name] = s
		}
		s.prompts = append(s.prompts, ps...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var sets []*set
	for _, s := range byName {
		sets = append(sets, s)
	}
	slices.SortFunc(sets, func(a, b *set) int { return strings.Compare(a.name, b.name) })
	if len(sets) == 0 {
		return nil, fmt.Errorf("%s: no file below it has lines with outcomes", dir)
	}
	return sets, nil
}

// readFile reads the prompts of a file and counts its other lines. If the first line is in another
// format, the rest of the file is skipped.
func readFile(path string) (ps []*prompt, other int, err error) {
	err = lab.Lines(path, func(text []byte) error {
		var l line
		if err := json.Unmarshal(text, &l); err != nil || len(l.Out) == 0 || l.Text == "" {
			if other++; len(ps) == 0 {
				return errOther
			}
			return nil
		}
		p, err := l.prompt()
		ps = append(ps, p)
		return err
	})
	if errors.Is(err, errOther) {
		err = nil
	}
	return ps, other, err
}

// errOther stops reading a file in another format.
var errOther = errors.New("another format")

func (l *line) prompt() (*prompt, error) {
	p := &prompt{id: l.ID, src: l.Src, task: l.Task, text: l.Text, out: make(map[string]result, len(l.Out))}
	for model, fields := range l.Out {
		if len(fields) == 0 {
			return nil, fmt.Errorf("out.%s: a score is required", model)
		}
		var r result
		var err error
		if r.score, err = number(fields[0]); err != nil || !(r.score >= 0 && r.score <= 1) {
			return nil, fmt.Errorf("out.%s: %s is no score between 0 and 1", model, fields[0])
		}
		if len(fields) > 1 {
			if r.tokens, err = number(fields[1]); err != nil || !(r.tokens >= 0) {
				return nil, fmt.Errorf("out.%s: %s is no number of tokens", model, fields[1])
			}
		}
		if len(fields) > 2 {
			if r.reasoning, err = number(fields[2]); err != nil || !(r.reasoning >= 0) {
				return nil, fmt.Errorf("out.%s: %s is no number of tokens", model, fields[2])
			}
		}
		p.out[model] = r
	}
	return p, nil
}

var errNoNumber = errors.New("no number")

// number reads a number or a boolean; null is 0.
func number(raw json.RawMessage) (float64, error) {
	switch string(raw) {
	case "true":
		return 1, nil
	case "false", "null":
		return 0, nil
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0, errNoNumber
	}
	return f, nil
}
