// Command conversation measures whether the domain of a conversation persists in its follow-ups and
// changes with the subject, as decided by the product: each turn is a separate request with the
// previous turns as its history, and App.Explain returns its domain.
//
//	go run ./bench/conversation [-dialogues mtbench101.jsonl] [-mtbench question.jsonl] [-pairs FILE]
//
// Dialogues are those of MT-Bench-101, {"id", "task", "history": [{"user", "bot"}]}. Dialogues with
// an even id were used to fit the weights of package classify/lean and are not counted. Questions
// are those of MT-bench, {"turns": [first, second]}. The project's own sentences and those of other
// authors are in testdata; -pairs names a file with additional ones in the same format.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"signalbox/bench/lab"
	"signalbox/internal/app"
)

//go:embed testdata/own.jsonl
var own []byte

// writer holds sentences of another author, which were not used for fitting or changes.
//
//go:embed testdata/writer.jsonl
var writer []byte

// others holds sentences of two more authors in fifteen languages, which were not used for fitting.
//
//go:embed testdata/others.jsonl
var others []byte

func main() { lab.Main("conversation", run) }

type turn struct {
	User string `json:"user"`
	Bot  string `json:"bot"`
}

// bench queries the product.
type bench struct {
	app   *app.App
	alone map[string]string // the domain of a text by itself
}

func run(ctx context.Context) error {
	dialogues := flag.String("dialogues", "", "a file of MT-Bench-101")
	questions := flag.String("mtbench", "", "a file of MT-bench")
	pairs := flag.String("pairs", "", "a file of two turns a line, as in testdata")
	flag.Parse()
	// A route reads the domain, so that Explain includes it.
	const text = lab.Plain + "routes: [{name: r, when: {domain: {in: [math], min_score: 0.99}}, use: {models: [m]}}]\n"
	a, err := lab.Build(ctx, text, io.Discard)
	if err != nil {
		return err
	}
	b := &bench{a, map[string]string{}}
	defer func() { _ = b.app.Close(context.WithoutCancel(ctx)) }()
	fmt.Println("| set | turns | now | last turn alone |\n| --- | --- | --- | --- |")
	if err := b.ours(ctx, "our own sentences", own); err != nil {
		return err
	}
	if err := b.ours(ctx, "another writer's", writer); err != nil {
		return err
	}
	if err := b.ours(ctx, "two more writers'", others); err != nil {
		return err
	}
	if *pairs != "" {
		data, err := os.ReadFile(*pairs)
		if err != nil {
			return fmt.Errorf("pairs: %w", err)
		}
		if err := b.ours(ctx, *pairs, data); err != nil {
			return err
		}
	}
	if *dialogues != "" {
		if err := b.dialogues(ctx, *dialogues); err != nil {
			return err
		}
	}
	if *questions != "" {
		return b.questions(ctx, *questions)
	}
	return nil
}

// domain returns the domain of the last user turn of a dialogue, whose last answer is not sent.
func (b *bench) domain(ctx context.Context, turns []turn) (string, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var list []message
	for i, t := range turns {
		list = append(list, message{"user", t.User})
		if i < len(turns)-1 {
			list = append(list, message{"assistant", t.Bot})
		}
	}
	body, err := json.Marshal(map[string]any{"model": "auto", "messages": list})
	if err != nil {
		return "", fmt.Errorf("write a request: %w", err)
	}
	e, err := b.app.Explain(ctx, body, "", "", nil)
	if err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	return e.Signals["domain"].Value, nil
}

// of returns the domain of a text by itself.
func (b *bench) of(ctx context.Context, text string) (string, error) {
	if d, ok := b.alone[text]; ok {
		return d, nil
	}
	d, err := b.domain(ctx, []turn{{User: text}})
	b.alone[text] = d
	return d, err
}

// count is the number of turns, and of those decided as expected.
type count struct{ all, now, alone int }

// add counts a turn with its expected domain, the decided one, and the one that the text has by
// itself.
func (c *count) add(want, got, alone string) {
	c.all++
	if got == want {
		c.now++
	}
	if alone == want {
		c.alone++
	}
}

func (c *count) print(name string) {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(c.all, 1)) }
	fmt.Printf("| %s | %d | %.1f %% | %.1f %% |\n", name, c.all, share(c.now), share(c.alone))
}

// The two kinds of turns.
const (
	follows = "follows" // the turn has the domain of the first turn
	changes = "changes" // the turn has its own domain; changes between texts of the same domain do not count
)

// pair counts the last turn of a conversation.
func (b *bench) pair(ctx context.Context, before []turn, last, kind string, c *count) error {
	first, err := b.of(ctx, before[0].User)
	if err != nil {
		return err
	}
	alone, err := b.of(ctx, last)
	if err != nil {
		return err
	}
	want := first
	if kind == changes {
		if want = alone; alone == first {
			return nil
		}
	}
	got, err := b.domain(ctx, append(slices.Clip(before), turn{User: last}))
	if err != nil {
		return err
	}
	c.add(want, got, alone)
	return nil
}

func (b *bench) ours(ctx context.Context, whose string, data []byte) error {
	type row struct{ Kind, Language, First, Second string }
	list, err := lab.Decode[row](bytes.NewReader(data))
	if err != nil {
		return err
	}
	for _, kind := range []string{follows, changes} {
		for _, english := range []bool{true, false} {
			var c count
			for _, r := range list {
				if r.Kind != kind || (r.Language == "en") != english {
					continue
				}
				before := []turn{{User: r.First, Bot: "Here is the answer."}}
				if err := b.pair(ctx, before, r.Second, kind, &c); err != nil {
					return err
				}
			}
			language := "English"
			if !english {
				language = "other languages"
			}
			c.print(fmt.Sprintf("%s, %s, second turn %s", whose, language, kind))
		}
	}
	return nil
}

// shifting reports whether the turns of a task of MT-Bench-101 change the subject.
func shifting(task string) bool { return task == "TS" || task == "CC" }

func (b *bench) dialogues(ctx context.Context, file string) error {
	type dialogue struct {
		ID      int
		Task    string
		History []turn
	}
	list, err := lab.Rows[dialogue](file)
	if err != nil {
		return fmt.Errorf("dialogues: %w", err)
	}
	var second, later count
	var firsts [][]turn
	for _, d := range list {
		if d.ID%2 == 0 || shifting(d.Task) {
			continue
		}
		if d.Task != "SI" { // its first turn only announces the next ones
			firsts = append(firsts, d.History)
		}
		for n := 1; n < len(d.History); n++ {
			c := &later
			if n == 1 {
				c = &second
			}
			if err := b.pair(ctx, d.History[:n], d.History[n].User, follows, c); err != nil {
				return err
			}
		}
	}
	second.print("MT-Bench-101, held-out half, second turns, the domain of the first")
	later.print("the same, later turns")
	return b.shifts(ctx, firsts)
}

// shifts appends first turns of dialogues to other dialogues.
func (b *bench) shifts(ctx context.Context, firsts [][]turn) error {
	var soon, late count
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a sample
	for range 600 {
		a, o := firsts[r.IntN(len(firsts))], firsts[r.IntN(len(firsts))]
		if err := b.pair(ctx, a[:1], o[0].User, changes, &soon); err != nil {
			return err
		}
		if err := b.moved(ctx, a, o[0].User, &late); err != nil {
			return err
		}
	}
	soon.print("the same, a first turn of another dialogue follows the first, its own domain")
	late.print("the same, it follows the whole dialogue")
	return nil
}

// moved counts a change of subject after a complete dialogue, as decided there.
func (b *bench) moved(ctx context.Context, before []turn, last string, c *count) error {
	was, err := b.domain(ctx, before)
	if err != nil {
		return err
	}
	want, err := b.of(ctx, last)
	if err != nil || want == was {
		return err
	}
	got, err := b.domain(ctx, append(slices.Clip(before), turn{User: last}))
	if err != nil {
		return err
	}
	c.add(want, got, want)
	return nil
}

func (b *bench) questions(ctx context.Context, file string) error {
	type question struct{ Turns []string }
	list, err := lab.Rows[question](file)
	if err != nil {
		return fmt.Errorf("questions: %w", err)
	}
	var c count
	for _, q := range list {
		if len(q.Turns) < 2 {
			return errors.New("a question of one turn")
		}
		first := []turn{{User: q.Turns[0], Bot: strings.Repeat("An answer. ", 8)}}
		if err := b.pair(ctx, first, q.Turns[1], follows, &c); err != nil {
			return err
		}
	}
	c.print("MT-bench, second turns, the domain of the first")
	return nil
}
