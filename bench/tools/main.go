package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/app"
	"signalbox/internal/config"
)

// offeredTools is how many tools a request of live_multiple names.
const offeredTools = 50

// tasks is how many of each set are measured.
const tasks = 200

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintf(os.Stderr, "bench/tools: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("tools", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with the data of BFCL v4")
	keep := flags.String("keep", "8,12,16", "values of keep")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("--data: a folder is required")
	}
	single, err := readSingle(*data)
	if err != nil {
		return err
	}
	agents, err := readAgents(*data)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "| tasks | keep | all that is needed is kept | calls kept | shorter by |\n| --- | --- | --- | --- | --- |")
	for word := range strings.SplitSeq(*keep, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
		for _, s := range []set{{"live_multiple", single}, {"multi_turn_base", agents}} {
			if err := s.measure(ctx, n, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// function is a tool as BFCL spells it.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// turn is what a user says, and the functions that are needed then.
type turn struct {
	said  string
	needs []string
}

// task is a conversation and the functions that are offered in it.
type task struct {
	offers []function
	turns  []turn
}

type set struct {
	name  string
	tasks []task
}

type said []struct{ Role, Content string }

type question struct {
	ID       string
	Question []said
	Function []function
}

// lines decodes a file of JSON lines.
func lines[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []T
	s := bufio.NewScanner(f)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var v T
		if err := json.Unmarshal(s.Bytes(), &v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, v)
	}
	return out, s.Err()
}

func (s said) user() string {
	var out []string
	for _, m := range s {
		if m.Role == "user" {
			out = append(out, m.Content)
		}
	}
	return strings.Join(out, "\n")
}

// readSingle reads tasks of one turn.
func readSingle(dir string) ([]task, error) {
	questions, err := lines[question](filepath.Join(dir, "BFCL_v4_live_multiple.json"))
	if err != nil {
		return nil, err
	}
	solutions, err := lines[struct {
		ID          string
		GroundTruth []map[string]any `json:"ground_truth"`
	}](filepath.Join(dir, "possible_answer", "BFCL_v4_live_multiple.json"))
	if err != nil {
		return nil, err
	}
	var all []function
	seen := map[string]bool{}
	for _, q := range questions {
		for _, f := range q.Function {
			if !seen[f.Name] {
				seen[f.Name] = true
				all = append(all, f)
			}
		}
	}
	needs := map[string][]string{}
	for _, x := range solutions {
		for name := range x.GroundTruth[0] {
			needs[x.ID] = append(needs[x.ID], name)
		}
	}
	r := rand.New(rand.NewPCG(1, 0)) //nolint:gosec // reproducible, not secret
	var out []task
	for _, i := range r.Perm(len(questions))[:tasks] {
		q := questions[i]
		out = append(out, task{
			offers: amid(q.Function, all, r),
			turns:  []turn{{q.Question[0].user(), needs[q.ID]}},
		})
	}
	return out, nil
}

// amid puts functions among others, in any order.
func amid(own, all []function, r *rand.Rand) []function {
	out := slices.Clone(own)
	for _, k := range r.Perm(len(all)) {
		has := slices.ContainsFunc(own, func(f function) bool { return f.Name == all[k].Name })
		if len(out) < offeredTools && !has {
			out = append(out, all[k])
		}
	}
	r.Shuffle(len(out), func(a, b int) { out[a], out[b] = out[b], out[a] })
	return out
}

// services are the files with the functions of multi_turn_base.
func services() []string {
	return []string{
		"gorilla_file_system", "math_api", "message_api", "posting_api", "ticket_api", "trading_bot",
		"travel_booking", "vehicle_control",
	}
}

// readAgents reads tasks of several turns.
func readAgents(dir string) ([]task, error) {
	var offers []function
	for _, s := range services() {
		fs, err := lines[function](filepath.Join(dir, "multi_turn_func_doc", s+".json"))
		if err != nil {
			return nil, err
		}
		offers = append(offers, fs...)
	}
	questions, err := lines[question](filepath.Join(dir, "BFCL_v4_multi_turn_base.json"))
	if err != nil {
		return nil, err
	}
	solutions, err := lines[struct {
		ID          string
		GroundTruth [][]string `json:"ground_truth"`
	}](filepath.Join(dir, "possible_answer", "BFCL_v4_multi_turn_base.json"))
	if err != nil {
		return nil, err
	}
	var out []task
	for i, q := range questions[:min(tasks, len(questions))] {
		t := task{offers: offers}
		for k, calls := range solutions[i].GroundTruth {
			one := turn{said: q.Question[k].user()}
			for _, c := range calls {
				name, _, _ := strings.Cut(c, "(")
				if slices.ContainsFunc(offers, func(f function) bool { return f.Name == name }) {
					one.needs = append(one.needs, name)
				}
			}
			t.turns = append(t.turns, one)
		}
		out = append(out, t)
	}
	return out, nil
}

// message and tool are what is sent.
type (
	message map[string]any
	tool    struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
)

// measure sends every turn of every task.
func (s set) measure(ctx context.Context, keep int, out io.Writer) error {
	var got []byte
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); err == nil && r.Method == http.MethodPost { // the proxy asks for other things as well
			got = body
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": `+
			`[{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}`)
	}))
	defer model.Close()
	text := fmt.Sprintf(`
server: {listen: 127.0.0.1:0, admin_listen: "[::1]:0"}
models: [{name: m, context_window: 1000000, endpoints: [{name: e, url: %s/v1}]}]
default: {models: [m], tools: {keep: %d}}
`, model.URL, keep)
	env := func(string) (string, bool) { return "", false }
	cfg, _, err := config.Parse("bench.yaml", []byte(text), env, app.Catalog)
	if err != nil {
		return err
	}
	cfg.Telemetry.Log = "error"
	settings := config.Settings{Library: os.Getenv("SIGNALBOX_ONNXRUNTIME")}
	if settings.CacheDir, err = os.UserCacheDir(); err != nil {
		return err
	}
	a, err := app.Build(ctx, cfg, app.Options{
		Version: "bench", Settings: settings, RequireModels: true, Log: io.Discard, Env: env,
	})
	if err != nil {
		return err
	}
	defer func() { _ = a.Close(context.WithoutCancel(ctx)) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served, ready := make(chan error, 1), make(chan string, 1) // each holds the only send
	go func() {
		served <- a.Serve(ctx, nil, func(main, _ net.Addr) { ready <- main.String() })
	}()
	select {
	case err := <-served:
		return err
	case addr := <-ready:
		err = s.ask(ctx, "http://"+addr, keep, &got, out)
	}
	stop()
	return errors.Join(err, <-served)
}

// tally is what came of tasks.
type tally struct{ whole, calls, kept, before, after int }

// ask sends every turn of every task to the product, and prints a row.
func (s set) ask(ctx context.Context, url string, keep int, got *[]byte, out io.Writer) error {
	var n tally
	for _, t := range s.tasks {
		if err := n.add(ctx, url, t, got); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "| %s, %d | %d | %.1f %% | %.1f %% of %d | %.2f |\n", s.name, len(s.tasks), keep,
		100*float64(n.whole)/float64(len(s.tasks)), 100*float64(n.kept)/float64(n.calls), n.calls,
		float64(n.before)/float64(n.after))
	return err
}

// add sends the turns of a task.
func (n *tally) add(ctx context.Context, url string, t task, got *[]byte) error {
	named := make([]tool, len(t.offers))
	for i, f := range t.offers {
		named[i] = tool{"function", f}
	}
	all, err := json.Marshal(named)
	if err != nil {
		return err
	}
	complete := 1
	var history []message
	for _, one := range t.turns {
		history = append(history, message{"role": "user", "content": one.said})
		body, err := json.Marshal(map[string]any{"model": "auto", "messages": history, "tools": named})
		if err != nil {
			return err
		}
		offered, err := send(ctx, url, body, got)
		if err != nil {
			return err
		}
		n.before, n.after, n.calls = n.before+len(all), n.after+len(offered), n.calls+len(one.needs)
		for _, need := range one.needs {
			if bytes.Contains(offered, []byte(`"name":"`+need+`"`)) {
				n.kept++
			} else {
				complete = 0
			}
		}
		history = append(history, answered(one.needs)...)
	}
	n.whole += complete
	return nil
}

// answered are the messages of a model that makes the calls of a turn, and their results.
func answered(calls []string) []message {
	if len(calls) == 0 {
		return []message{{"role": "assistant", "content": "Done."}}
	}
	var made, results []message
	for i, name := range calls {
		id := fmt.Sprintf("call_%s_%d", name, i)
		made = append(made, message{"id": id, "type": "function", "function": message{"name": name, "arguments": "{}"}})
		results = append(results, message{"role": "tool", "tool_call_id": id, "content": "done"})
	}
	return append([]message{{"role": "assistant", "content": nil, "tool_calls": made}}, results...)
}

// send sends a request and returns the tools that the model server was offered.
func send(ctx context.Context, url string, body []byte, got *[]byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d: %s: %w", res.StatusCode, answer, err)
	}
	var sent struct{ Tools json.RawMessage }
	if err := json.Unmarshal(*got, &sent); err != nil {
		return nil, err
	}
	return sent.Tools, nil
}
