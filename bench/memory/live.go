package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
)

// live measures the product as a whole: real proxies over loopback in front of four simulated
// servers.
type live struct {
	seeds   []uint64
	repeats int // of what has no seed; at least 1
	small   int // workloads are divided by this
	log     io.Writer
}

// section is a part of the report of live.
type section struct {
	name string
	run  func(l *live, ctx context.Context, r *report) error
}

// sections in the order of the report. density is first, while the process is small.
func sections() []section {
	return []section{
		{"density", (*live).density},
		{"pointer", (*live).pointer},
		{"lookup", (*live).lookup},
		{"compression", (*live).compression},
		{"paging", (*live).paging},
		{"shared", (*live).shared},
		{"proxies", (*live).proxies},
		{"domains", (*live).domains},
		{"restart", (*live).restart},
	}
}

// talk is agents that read shared contexts and talk for some turns each.
type talk struct {
	contexts, agents, turns int
	contextWords            int
	domain                  bool // each agent of a context has a prompt of its own, after the context
}

// usualTalk is that of the simulated runs: 360 requests over 24 contexts of 4,000 tokens.
func (l *live) usualTalk() talk {
	return talk{contexts: max(2, 24/l.small), agents: 3, turns: 5, contextWords: 4000}
}

// at once is how many requests are under way, as in the simulated runs.
const atOnce = 12

// answerTokens is the length of every answer.
const answerTokens = 40

// prose draws words; each of them is one token of the simulated servers.
func prose(r *rand.Rand, words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(spell([]uint32{r.Uint32N(128000)}))
	}
	return b.String()
}

// session is one agent's conversation.
type session struct {
	number, context int
	domain          string
	questions       []string
	answers         []string
}

// script is the sessions of a talk, whose turn it is when, and the texts of the contexts.
type script struct {
	contexts []string
	sessions []*session
	order    []int
}

func (t talk) write(r *rand.Rand) *script {
	s := &script{}
	for range t.contexts {
		s.contexts = append(s.contexts, prose(r, t.contextWords))
	}
	domains := make([]string, t.agents)
	for i := range domains {
		if t.domain {
			domains[i] = prose(r, 100)
		}
	}
	for i := range t.contexts * t.agents {
		one := &session{number: i, context: i / t.agents, domain: domains[i%t.agents]}
		for range t.turns {
			one.questions = append(one.questions, prose(r, 12))
			s.order = append(s.order, i)
		}
		s.sessions = append(s.sessions, one)
	}
	r.Shuffle(len(s.order), func(i, j int) { s.order[i], s.order[j] = s.order[j], s.order[i] })
	return s
}

// body is the next request of a session: with the context's text, or with its pointer if id is not
// empty.
func (s *session) body(text, id string) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var messages []message
	switch {
	case id == "" && s.domain != "":
		messages = append(messages, message{"system", text + "\n\n" + s.domain})
	case id == "":
		messages = append(messages, message{"system", text})
	case s.domain != "":
		messages = append(messages, message{"system", s.domain})
	}
	for i, answer := range s.answers {
		messages = append(messages, message{"user", s.questions[i]}, message{"assistant", answer})
	}
	request := map[string]any{
		"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"max_tokens": answerTokens, "ignore_eos": true,
		"messages": append(messages, message{"user", s.questions[len(s.answers)]}),
	}
	if id != "" {
		request["signalbox"] = map[string]any{"context": id}
	}
	b, err := json.Marshal(request)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

// way is how requests reach the servers.
type way struct {
	name    string
	proxies int    // 0: clients go to the servers themselves
	options string // of the proxies' section server
	named   bool   // requests name their context instead of sending it
	pick    func(s *session, at *testbed) int
}

// policies are what is compared. Policies without a proxy are clients that pick the server
// themselves.
func policies() []way {
	turnOf := 0
	return []way{
		{name: turn, pick: func(*session, *testbed) int { turnOf++; return turnOf }},
		{name: least, pick: func(_ *session, at *testbed) int { return at.leastLoaded() }},
		{name: sticky, pick: func(s *session, _ *testbed) int { return hashOf("session", s.number) }},
		{name: byContext, pick: func(s *session, _ *testbed) int { return hashOf("context", s.context) }},
		{name: "signalbox, placement off", proxies: 1, options: ", placement: off"},
		{name: text, proxies: 1},
		{name: own, proxies: 1, named: true},
	}
}

func hashOf(what string, n int) int {
	return int(xxhash.Sum64String(fmt.Sprint(what, " ", n)) % 1024)
}

// liveRun is what a run gave.
type liveRun struct {
	outcome
	ideal   float64
	errors  int         // answers of 500 and above
	cut     int         // streams that ended too early, and were asked for again
	wrongly map[int]int // predictions of which less than half was there, after the restart, by context
}

// play lets a talk run over a way. restart is after how many requests the first server is
// restarted; 0: never.
func (l *live) play(ctx context.Context, t talk, w way, seed uint64, restart int) (out *liveRun, err error) {
	at, err := openStand(ctx, w, l.log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	defer func() { err = errors.Join(err, at.close(ctx)) }()
	p := &player{log: l.log, stand: at, way: w, script: t.write(source(seed, 1)), restart: restart, rand: source(seed, 2)}
	p.out = &liveRun{outcome: outcome{requests: make([]int, len(at.servers))}, wrongly: map[int]int{}}
	p.left, p.busy = slices.Clone(p.script.order), make([]bool, len(p.script.sessions))
	if w.named {
		for _, text := range p.script.contexts {
			id, err := at.create(ctx, text)
			if err != nil {
				return nil, fmt.Errorf("%s: create context: %w", w.name, err)
			}
			p.ids = append(p.ids, id)
		}
	}
	p.freed.L = &p.mu
	g, ctx := errgroup.WithContext(ctx)
	for range atOnce {
		g.Go(func() error { return p.work(ctx) })
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	p.out.ideal, err = at.ideal()
	return p.out, err
}

// player is a run under way.
type player struct {
	log     io.Writer
	stand   *testbed
	way     way
	script  *script
	ids     []string // of the contexts, when they are named
	restart int

	mu    sync.Mutex // guards what follows
	rand  *rand.Rand
	freed sync.Cond // a session, or all of it failed
	left  []int
	busy  []bool
	sent  int
	over  bool // the restart is over
	out   *liveRun
}

// work asks until nothing is left.
func (p *player) work(ctx context.Context) error {
	for {
		s, base, server := p.next()
		if s == nil {
			return nil
		}
		a, err := p.stand.ask(ctx, base, s.body(p.script.contexts[s.context], p.id(s)))
		if p.way.proxies == 0 {
			p.stand.servers[server].asked.Add(-1)
			a.server = server
		}
		if err = p.done(s, a, err); err != nil {
			return err
		}
	}
}

func (p *player) id(s *session) string {
	if p.ids == nil {
		return ""
	}
	return p.ids[s.context]
}

// next takes the next request whose session is not waiting for an answer; nil when none is left.
func (p *player) next() (s *session, base string, server int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if len(p.left) == 0 {
			return nil, "", 0
		}
		for i, n := range p.left {
			if p.busy[n] {
				continue
			}
			p.left, p.busy[n] = slices.Delete(p.left, i, i+1), true
			s = p.script.sessions[n]
			if p.sent++; p.sent == p.restart {
				p.stand.servers[0].sim.Restart()
				p.over = true
			}
			if p.way.proxies > 0 {
				return s, p.stand.proxies[p.rand.IntN(len(p.stand.proxies))].URL, -1
			}
			server = p.way.pick(s, p.stand) % len(p.stand.servers)
			p.stand.servers[server].asked.Add(1)
			return s, p.stand.servers[server].url, server
		}
		p.freed.Wait()
	}
}

// done takes in an answer.
func (p *player) done(s *session, a answer, err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.freed.Broadcast()
	p.busy[s.number] = false
	switch {
	case err != nil && a.status >= http.StatusInternalServerError:
		if p.out.errors++; p.out.errors == 1 {
			_, _ = fmt.Fprintf(p.log, "    %v\n", err)
		}
		p.left = append(p.left, s.number)
		return nil
	case errors.Is(err, errCut) && p.restart > 0:
		p.out.cut++
		p.left = append(p.left, s.number)
		return nil
	case err != nil:
		return err
	}
	s.answers = append(s.answers, a.text)
	p.out.cached, p.out.prompt = p.out.cached+a.cached, p.out.prompt+a.prompt
	p.out.ttft = append(p.out.ttft, a.first)
	p.out.requests[a.server]++
	if p.over && a.predicted > 0 && a.cached < a.predicted/2 {
		p.out.wrongly[s.context]++
	}
	return nil
}

// errCut says that a stream ended too early.
var errCut = errors.New("the stream ended without [DONE]")

// answer is what a client sees of one.
type answer struct {
	status         int
	server         int // by x-signalbox-endpoint
	text           string
	prompt, cached int
	predicted      int
	first          time.Duration // until the first token
}

// ask sends a body and reads the stream.
func (at *testbed) ask(ctx context.Context, base string, body []byte) (answer, error) {
	var a answer
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return a, fmt.Errorf("request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := at.client.Do(req)
	if err != nil {
		return a, fmt.Errorf("%w: %w", errCut, err)
	}
	defer func() { _ = res.Body.Close() }()
	a.status = res.StatusCode
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return a, fmt.Errorf("answered with %s: %s", res.Status, text)
	}
	_, _ = fmt.Sscanf(res.Header.Get("X-Signalbox-Endpoint"), "server-%d", &a.server)
	_, _ = fmt.Sscan(res.Header.Get("X-Signalbox-Context-Predicted-Tokens"), &a.predicted)
	return a, a.read(res.Body, began)
}
