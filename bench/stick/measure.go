package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"signalbox/internal/app"
)

// measure asks the product about second turns.
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

// config has a route and a model a domain.
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

// answer is what every model says.
const answer = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,` +
	`"message":{"role":"assistant","content":"I see."},"finish_reason":"stop"}],` +
	`"usage":{"prompt_tokens":1,"completion_tokens":3,"total_tokens":4}}`

func (m *measure) run(ctx context.Context, all []conversation) error {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	defer up.Close()
	return withApp(ctx, m.config(up.URL+"/v1"), m.log, func(a *app.App) error {
		ctx, stop := context.WithCancel(ctx)
		served := make(chan error, 1) // holds 1: the only send
		ready := make(chan string, 1) // holds 1: the only send
		go func() {
			served <- a.Serve(ctx, nil, func(main, _ net.Addr) { ready <- main.String() })
		}()
		defer m.client.CloseIdleConnections()
		var err error
		select {
		case addr := <-ready:
			m.url = "http://" + addr + "/v1/chat/completions"
			err = m.report(ctx, all)
		case err = <-served:
			stop()
			return err
		}
		stop()
		return errors.Join(err, <-served)
	})
}

// tally counts conversations.
type tally struct {
	n       int
	alone   int // second turns that have the domain of the first by themselves
	domain  int // ... as parts of their conversation
	model   int // ... that go to its model
	changed int // second turns that speak of another domain than the first by themselves
	moved   int // of them, those that go to another model than the first
	there   int // of them, those that go to the model of what they speak of
}

// report measures the second turns, and changes of subject made of the same conversations.
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
	names := make([]string, 0, len(sets))
	for name := range sets {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range append(names, "all") {
		t := sets[name]
		if t == nil {
			t = total
		}
		_, _ = fmt.Fprintf(w, "| %s | %d | %s | %s | %s |\n", name, t.n, share(t.alone, t.n), share(t.domain, t.n), share(t.model, t.n))
	}
	_, _ = fmt.Fprintf(w, "\n| changes of subject | n | to another model, %% | to that of the new subject, %% |\n| --- | --- | --- | --- |\n")
	_, _ = fmt.Fprintf(w, "| first turns of two conversations | %d | %s | %s |\n", shift.changed, share(shift.moved, shift.changed), share(shift.there, shift.changed))
}

// share is k of n in percent, with Wilson's interval of 95 %.
func share(k, n int) string {
	if n == 0 {
		return "-"
	}
	const z = 1.96
	p, x := float64(k)/float64(n), float64(n)
	mid := (p + z*z/(2*x)) / (1 + z*z/x)
	half := z / (1 + z*z/x) * math.Sqrt(p*(1-p)/x+z*z/(4*x*x))
	return fmt.Sprintf("%.1f (%.1f to %.1f)", 100*p, 100*(mid-half), 100*(mid+half))
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
		t.alone += count(same(alone, domain))
		t.domain += count(same(second, domain))
		t.model += count(same(second, model))
		if !same(alone, domain) {
			t.changed++
			t.moved += count(!same(second, model))
			t.there += count(second.Get(model) == alone.Get(model))
		}
	}
	if wrong := same(second, model) == (c.task == "change"); m.show && wrong && !same(alone, domain) {
		_, _ = fmt.Fprintf(m.log, "%s %s: %s -> %s, alone %s\n\t%.100q\n\t%.100q\n", c.set, c.task,
			first.Get(model), second.Get(model), alone.Get(model), c.turns[0], c.turns[1])
	}
	return nil
}

func count(b bool) int { //nolint:revive // a number for a truth
	if b {
		return 1
	}
	return 0
}

// send sends turns as a conversation and returns the headers of its answer.
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
	body, err := json.Marshal(map[string]any{"model": "auto", "messages": messages})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := m.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return resp.Header, err
}
