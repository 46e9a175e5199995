package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"signalbox/bench/lab"
)

// conversation holds the turns of a user.
type conversation struct {
	set   string // its file
	task  string
	turns []string
	taken bool // used in the fit of classify/lean
}

// line is a conversation in a file.
type line struct {
	ID      json.RawMessage `json:"id"`
	Task    string          `json:"task"`
	Turns   []string        `json:"turns"`
	History []struct {
		User string `json:"user"`
	} `json:"history"`
}

// shifts is the task whose second turns change the subject: topic shift, of MT-Bench-101.
const shifts = "TS"

// vague reports the tasks whose first turn says little about the subject, or whose second changes
// it by design: separate input and content confusion of MT-Bench-101.
func vague(task string) bool { return task == "SI" || task == "CC" }

// follows reports whether the second turn of the conversation continues the first.
func (c *conversation) follows() bool { return c.task != shifts && !vague(c.task) }

// load reads the conversations below a folder.
func load(dir string) ([]conversation, error) {
	var out []conversation
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		read := map[string]func(string, string) ([]conversation, error){".jsonl": readLines, ".txt": readTopics}[filepath.Ext(path)]
		if read == nil {
			return nil
		}
		found, err := read(path, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
		out = append(out, found...)
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no conversation in any *.jsonl or *.txt", dir)
	}
	return out, err
}

func readLines(path, set string) ([]conversation, error) {
	lines, err := lab.Rows[line](path)
	var out []conversation
	for _, l := range lines {
		for _, h := range l.History {
			l.Turns = append(l.Turns, h.User)
		}
		n, err := strconv.Atoi(string(l.ID))
		// lines without a number were not used when the weights were fitted
		taken := err == nil && n%2 == 0
		out = append(out, conversation{set: set, task: l.Task, turns: l.Turns, taken: taken})
	}
	return out, err
}

// lastTaken is the last topic of CAsT used for training.
const lastTaken = 30

var turnLine = regexp.MustCompile(`^\d+\s*\t(.+)$`)

func readTopics(path, _ string) ([]conversation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out []conversation
	for l := range strings.Lines(strings.ToValidUTF8(string(text), "'")) {
		l = strings.TrimSpace(l)
		if number, ok := strings.CutPrefix(l, "Number:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(number))
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no number of a topic", path, number)
			}
			out = append(out, conversation{set: "cast", task: "cast", taken: n <= lastTaken})
		} else if m := turnLine.FindStringSubmatch(l); m != nil && len(out) > 0 {
			c := &out[len(out)-1]
			c.turns = append(c.turns, strings.TrimSpace(m[1]))
		}
	}
	return out, nil
}

// changes returns conversations whose second turn is the first one of another, which is a change of
// subject: as many as there are conversations, from those whose first turn states its subject.
func changes(all []conversation, r *rand.Rand) []conversation {
	var from []*conversation
	for i := range all {
		if c := &all[i]; !vague(c.task) && c.task != "IC" && len(c.turns) > 0 {
			from = append(from, c)
		}
	}
	out := make([]conversation, 0, len(from))
	for _, c := range from {
		other := from[r.IntN(len(from))]
		if other == c || other.turns[0] == c.turns[0] {
			continue
		}
		out = append(out, conversation{
			set: c.set, task: "change", turns: []string{c.turns[0], other.turns[0]}, taken: c.taken,
		})
	}
	return out
}

// part returns those that were used in the fit, or the others.
func part(all []conversation, taken bool) []conversation {
	return slices.DeleteFunc(slices.Clone(all), func(c conversation) bool {
		return c.taken != taken || len(c.turns) < 2
	})
}
