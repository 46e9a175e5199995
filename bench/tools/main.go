package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"signalbox/bench/lab"
	"signalbox/classify/tokenize"
)

// offeredTools is how many tools a request of live_multiple names.
const offeredTools = 50

// tasks is how many of each set are measured.
const tasks = 200

func main() {
	lab.Main("tools", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("tools", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with the data of BFCL v4")
	keep := flags.String("keep", "8,12,16", "values of keep")
	share := flags.Float64("share", 0, "share of the tokens of a list; 0: none is set")
	talks := flags.String("conversations", "", "conversations that bench/tools/agents.py wrote, instead of --data; beside them NAME.tools.json")
	vocabulary := flags.String("tokenizer", "", "tokenizer.json that counts what is saved; without it bytes are counted")
	misses := flags.Bool("misses", false, "list the calls whose tools were left out")
	if err := flags.Parse(args); err != nil {
		return err
	}
	o := options{share: *share, misses: *misses, log: log}
	if *vocabulary != "" {
		file, err := os.ReadFile(*vocabulary)
		if err != nil {
			return err
		}
		if o.tokens, err = tokenize.New(file); err != nil {
			return err
		}
	}
	sets, err := readSets(*data, *talks)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(out, "| tasks | keep | all that is needed is kept | calls kept | whole | shorter by |\n| --- | --- | --- | --- | --- | --- |")
	for word := range strings.SplitSeq(*keep, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return fmt.Errorf("--keep: %w", err)
		}
		for _, s := range sets {
			if err := s.measure(ctx, n, &o, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// options are how the product is asked, and how what it does is counted.
type options struct {
	share  float64
	tokens *tokenize.Tokenizer // nil: bytes are counted
	misses bool
	log    io.Writer
}

// size is how long a list of tools is, spelled as templates of chats spell it.
func (o *options) size(list []byte) int {
	if o.tokens == nil {
		return len(list)
	}
	var e tokenize.Encoding
	o.tokens.Encode(strings.NewReplacer(`":`, `": `, `,"`, `, "`).Replace(string(list)), &e)
	return e.Len()
}

func readSets(data, talks string) ([]set, error) {
	switch {
	case talks != "":
		t, err := readTalks(talks)
		return []set{{filepath.Base(talks), t}}, err
	case data == "":
		return nil, errors.New("--data or --conversations: one is required")
	}
	single, err := readSingle(data)
	if err != nil {
		return nil, err
	}
	agents, err := readAgents(data)
	return []set{{"live_multiple", single}, {"multi_turn_base", agents}}, err
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

// task is a conversation and the functions that are offered in it. Either turns are known, or each
// message with what it calls.
type task struct {
	offers []function
	turns  []turn
	steps  []message
}

// readTalks reads conversations, and the functions of a file beside them.
func readTalks(path string) ([]task, error) {
	file, err := os.ReadFile(strings.TrimSuffix(path, ".jsonl") + ".tools.json")
	if err != nil {
		return nil, err
	}
	var offers []tool
	if err := json.Unmarshal(file, &offers); err != nil {
		return nil, err
	}
	talks, err := lab.Rows[struct{ Messages []message }](path)
	out := make([]task, len(talks))
	for i := range talks {
		out[i].steps = talks[i].Messages
		for _, f := range offers {
			out[i].offers = append(out[i].offers, f.Function)
		}
	}
	return out, err
}

func called(m message) (names []string) {
	calls, _ := m["tool_calls"].([]any)
	for _, c := range calls {
		call, _ := c.(map[string]any)
		f, _ := call["function"].(map[string]any)
		name, _ := f["name"].(string)
		names = append(names, name)
	}
	return names
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

func (s said) user() string {
	var out []string
	for _, m := range s {
		if m.Role == "user" {
			out = append(out, m.Content)
		}
	}
	return strings.Join(out, "\n")
}

func readSingle(dir string) ([]task, error) {
	questions, err := lab.Rows[question](filepath.Join(dir, "BFCL_v4_live_multiple.json"))
	if err != nil {
		return nil, err
	}
	solutions, err := lab.Rows[struct {
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
		fs, err := lab.Rows[function](filepath.Join(dir, "multi_turn_func_doc", s+".json"))
		if err != nil {
			return nil, err
		}
		offers = append(offers, fs...)
	}
	questions, err := lab.Rows[question](filepath.Join(dir, "BFCL_v4_multi_turn_base.json"))
	if err != nil {
		return nil, err
	}
	solutions, err := lab.Rows[struct {
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
func (s set) measure(ctx context.Context, keep int, o *options, out io.Writer) error {
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
	tools := fmt.Sprintf("keep: %d", keep)
	if o.share > 0 {
		tools += fmt.Sprintf(", share: %g", o.share)
	}
	a, err := lab.Build(ctx, fmt.Sprintf(`
server: {listen: 127.0.0.1:0, admin_listen: "[::1]:0"}
models: [{name: m, context_window: 1000000, endpoints: [{name: e, url: %s/v1}]}]
default: {models: [m], tools: {%s}}
`, model.URL, tools), io.Discard)
	if err != nil {
		return err
	}
	server, err := lab.Serve(ctx, a)
	if err != nil {
		return err
	}
	return errors.Join(s.ask(ctx, server.URL, keep, o, &got, out), server.Close(ctx))
}

// tally is what came of tasks.
type tally struct {
	*options

	done               int // tasks of which every call found its tool
	calls, kept, whole int // calls; those whose tool is offered; and with its description
	before, after      int
}

// ask sends every turn of every task to the product, and prints a row.
func (s set) ask(ctx context.Context, url string, keep int, o *options, got *[]byte, out io.Writer) error {
	n := tally{options: o}
	for _, t := range s.tasks {
		if err := n.add(ctx, url, t, got); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "| %s, %d | %d | %.1f %% | %.1f %% of %d | %.1f %% | %.2f |\n", s.name, len(s.tasks), keep,
		100*float64(n.done)/float64(len(s.tasks)), 100*float64(n.kept)/float64(n.calls), n.calls,
		100*float64(n.whole)/float64(n.calls),
		float64(n.before)/float64(n.after))
	return err
}

// talk is a conversation as the product is asked in it.
type talk struct {
	*tally

	url     string
	tools   []tool
	all     []byte // their JSON
	history []message
	got     *[]byte
	lost    bool // a tool was missing
}

// add sends the requests of a task.
func (n *tally) add(ctx context.Context, url string, t task, got *[]byte) error {
	k := talk{tally: n, url: url, got: got, tools: make([]tool, len(t.offers))}
	for i, f := range t.offers {
		k.tools[i] = tool{"function", f}
	}
	var err error
	if k.all, err = json.Marshal(k.tools); err != nil {
		return err
	}
	for _, one := range t.turns {
		k.history = append(k.history, message{"role": "user", "content": one.said})
		if err := k.request(ctx, one.needs); err != nil {
			return err
		}
		k.history = append(k.history, answered(one.needs)...)
	}
	for _, m := range t.steps {
		if needs := called(m); needs != nil {
			if err := k.request(ctx, needs); err != nil {
				return err
			}
		}
		k.history = append(k.history, m)
	}
	if !k.lost {
		n.done++
	}
	return nil
}

// request sends the conversation and looks for the tools that its next calls need.
func (k *talk) request(ctx context.Context, needs []string) error {
	body, err := json.Marshal(map[string]any{"model": "auto", "messages": k.history, "tools": k.tools})
	if err != nil {
		return err
	}
	offered, err := send(ctx, k.url, body, k.got)
	if err != nil {
		return err
	}
	var list []tool
	if err := json.Unmarshal(offered, &list); err != nil {
		return err
	}
	k.before, k.after, k.calls = k.before+k.size(k.all), k.after+k.size(offered), k.calls+len(needs)
	for _, need := range needs {
		i := slices.IndexFunc(list, func(t tool) bool { return t.Function.Name == need })
		switch {
		case i >= 0 && list[i].Function.Description != "":
			k.whole++
			fallthrough
		case i >= 0:
			k.kept++
		default:
			k.lost = true
			if k.misses {
				_, _ = fmt.Fprintf(k.log, "%s is missing after: %.300v\n", need, k.history[len(k.history)-1]["content"])
			}
		}
	}
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
	if _, _, err := lab.Post(ctx, http.DefaultClient, url+"/v1/chat/completions", json.RawMessage(body)); err != nil {
		return nil, err
	}
	var sent struct{ Tools json.RawMessage }
	if err := json.Unmarshal(*got, &sent); err != nil {
		return nil, err
	}
	return sent.Tools, nil
}
