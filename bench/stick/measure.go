package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"signalbox/bench/lab"
)

// measure measures second turns with the product.
type measure struct {
	out   io.Writer
	log   io.Writer
	stick bool
	limit int
	show  bool
	rand  *rand.Rand

	url    string
	client http.Client
}

// domains are those of the embedded model.
//
//nolint:gochecknoglobals // constant table
var domains = strings.Fields("biology business chemistry computer_science economics engineering" +
	" health history law math other philosophy physics psychology")

// config has a route and a model for each domain.
func (m *measure) config(upstream string) string {
	var models, routes strings.Builder
	for _, d := range domains {
		fmt.Fprintf(&models, "  - {name: %s, endpoints: [{name: e, url: %q}], health: {path: off}}\n", d, upstream)
		fmt.Fprintf(&routes, "  - {name: %s, when: {domain: %q}, use: {models: [%s]}}\n",
			d, strings.ReplaceAll(d, "_", " "), d)
	}
	stick := ""
	if !m.stick {
		stick = "stick: {max_age: 0s}\n"
	}
	return "server: {listen: 127.0.0.1:0, admin_listen: \"[::1]:0\"}\n" + stick +
		"models:\n" + models.String() + "routes:\n" + routes.String() + "default: {models: [other]}\n"
}

// answer is the response of every model.
const answer = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"I see."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4}}`

func (m *measure) run(ctx context.Context, all []conversation) error {
	up := lab.Answering(answer)
	defer up.Close()
	a, err := lab.Build(ctx, m.config(up.URL+"/v1"), m.log)
	if err != nil {
		return err
	}
	server, err := lab.Serve(ctx, a)
	if err != nil {
		return err
	}
	m.url = server.URL + "/v1/chat/completions"
	err = m.report(ctx, all)
	m.client.CloseIdleConnections()
	return errors.Join(err, server.Close(ctx))
}

// tally counts conversations.
type tally struct {
	n       int
	alone   int // second turns that by themselves have the domain of the first
	domain  int // second turns that have it in their conversation
	model   int // second turns that go to its model
	changed int // second turns that by themselves have another domain than the first
	moved   int // of these, those that go to another model than the first
	there   int // of these, those that go to the model of their own domain
}

// report measures the second turns, and changes of subject made from the same conversations.
func (m *measure) report(ctx context.Context, all []conversation) error {
	sets := map[string]*tally{}
	total, shift := &tally{}, &tally{}
	made := changes(all, m.rand)
	m.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	m.rand.Shuffle(len(made), func(i, j int) { made[i], made[j] = made[j], made[i] })
	follow := slices.DeleteFunc(slices.Clone(all), func(c conversation) bool { return !c.follows() })
	for _, c := range m.some(follow) {
		name := c.set
		if c.task != "" && c.task != c.set {
			name += " " + c.task
		}
		if sets[name] == nil {
			sets[name] = &tally{}
		}
		if err := m.ask(ctx, &c, sets[name], total); err != nil {
			return err
		}
	}
	for _, c := range m.some(made) {
		if err := m.ask(ctx, &c, shift); err != nil {
			return err
		}
	}
	m.print(sets, total, shift)
	return nil
}

func (m *measure) some(all []conversation) []conversation {
	if m.limit > 0 {
		return all[:min(len(all), m.limit)]
	}
	return all
}

func (m *measure) print(sets map[string]*tally, total, shift *tally) {
	w := m.out
	_, _ = fmt.Fprintf(w, "| second turns that go on | n | same domain alone, %% | in the conversation, %% | same model, %% |\n| --- | --- | --- | --- | --- |\n")
	for _, name := range append(slices.Sorted(maps.Keys(sets)), "all") {
		t := sets[name]
		if t == nil {
			t = total
		}
		_, _ = fmt.Fprintf(w, "| %s | %d | %s | %s | %s |\n", name, t.n, share(t.alone, t.n), share(t.domain, t.n), share(t.model, t.n))
	}
	_, _ = fmt.Fprintf(w, "\n| changes of subject | n | to another model, %% | to that of the new subject, %% |\n| --- | --- | --- | --- |\n")
	_, _ = fmt.Fprintf(w, "| first turns of two conversations | %d | %s | %s |\n", shift.changed, share(shift.moved, shift.changed), share(shift.there, shift.changed))
}

// share returns k of n in percent, with Wilson's 95 % interval.
func share(k, n int) string {
	if n == 0 {
		return "-"
	}
	at, low, high := lab.Wilson(k, n)
	return fmt.Sprintf("%.1f (%.1f to %.1f)", 100*at, 100*low, 100*high)
}

// ask sends the first turn, the second after it, and the second alone.
func (m *measure) ask(ctx context.Context, c *conversation, into ...*tally) error {
	first, err := m.send(ctx, c.turns[:1])
	if err != nil {
		return err
	}
	second, err := m.send(ctx, c.turns[:2])
	if err != nil {
		return err
	}
	alone, err := m.send(ctx, c.turns[1:2])
	if err != nil {
		return err
	}
	same := func(h http.Header, name string) bool { return h.Get(name) == first.Get(name) }
	const domain, model = "X-Signalbox-Domain", "X-Signalbox-Model"
	for _, t := range into {
		t.n++
		t.alone += lab.One[int](same(alone, domain))
		t.domain += lab.One[int](same(second, domain))
		t.model += lab.One[int](same(second, model))
		if !same(alone, domain) {
			t.changed++
			t.moved += lab.One[int](!same(second, model))
			t.there += lab.One[int](second.Get(model) == alone.Get(model))
		}
	}
	if wrong := same(second, model) == (c.task == "change"); m.show && wrong && !same(alone, domain) {
		_, _ = fmt.Fprintf(m.log, "%s %s: %s -> %s, alone %s\n\t%.100q\n\t%.100q\n", c.set, c.task,
			first.Get(model), second.Get(model), alone.Get(model), c.turns[0], c.turns[1])
	}
	return nil
}

// send sends turns as a conversation and returns the headers of the response.
func (m *measure) send(ctx context.Context, turns []string) (http.Header, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	for i, t := range turns {
		if i > 0 {
			messages = append(messages, message{"assistant", "I see."})
		}
		messages = append(messages, message{"user", strings.ToValidUTF8(t, "")})
	}
	h, _, err := lab.Post(ctx, &m.client, m.url, map[string]any{"model": "auto", "messages": messages})
	return h, err
}
