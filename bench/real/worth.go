package main

import (
	"context"
	_ "embed" // of configurations
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"signalbox/bench/lab"
)

// question is one whose right answer is known: a line of the file of -prompts.
type question struct {
	ID     string `json:"id"`
	Src    string `json:"src"`
	Text   string `json:"text"`
	Answer string `json:"answer"`
	Kind   string `json:"kind"`
}

// taken is a response to a question.
type taken struct {
	id     string  // of the request
	arm    string  // small, direct or steps: what answered
	right  float64 // 1 or 0
	tokens float64 // of the response
	usd    float64 // a million times
}

// The routes that a question is asked by. Those of arms lead to one way to answer, the others leave
// the choice to the product.
//
//nolint:gochecknoglobals // constant tables
var (
	armRoutes    = []string{"small", "direct", "steps"}
	chosenRoutes = []string{"quality", "effort"}
)

func allRoutes() []string { return slices.Concat(armRoutes, chosenRoutes) }

// prices in USD per million tokens, of the prompt and of the response: in proportion to the numbers
// of parameters.
//
//nolint:gochecknoglobals // constant table
var worthPrices = map[string][2]float64{"small": {0.027, 0.27}, "large": {0.154, 1.54}}

// worthConfiguration has both models with the same skill: nothing is known of them. What is drawn
// by weight is learnt from as well; one request in a thousand goes to the other model.
//
//go:embed worth.yaml.tmpl
var worthConfiguration string

// trial is the questions, the product that they are asked, and what came of it.
type trial struct {
	product  *process
	outcomes *json.Encoder // nil where none are kept

	mu   sync.Mutex
	done []map[string]taken // of questions that were not learnt from, by route
	src  []string           // of these
}

// worth teaches the product with one half of the questions what two models are worth, one of which
// answers at once or step by step, and asks it the other half.
func (b *bench) worth(ctx context.Context) (err error) {
	lacking := b.prompts == ""
	for _, file := range []string{llamaServer, "gemma.gguf", qwenFile} {
		_, err := os.Stat(filepath.Join(b.cache, file))
		lacking = lacking || errors.Is(err, fs.ErrNotExist)
	}
	if lacking {
		b.sayf("Not run: it needs questions (-prompts) and a second model (QWEN=1 install.sh).\n")
		return nil
	}
	qs, err := lab.Rows[question](b.prompts)
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	var servers [2]*process
	for i, m := range [...][]string{
		{"gemma.gguf"},
		{qwenFile, "--jinja", "--chat-template-file", "bench/real/template.jinja"},
	} {
		port, err := lab.Port(ctx)
		if err != nil {
			return err
		}
		// One thread each: two would wait for each other in a loop wherever a third is at work.
		name, args := []string{"small", "large"}[i], slices.Concat(m[1:], []string{"-np", "2", "-t", "1"})
		servers[i], err = llamaOf(ctx, b.cache, b.dir, name, port, m[0], args...)
		if err != nil {
			return err
		}
		defer servers[i].end(syscall.SIGKILL)
	}
	t := &trial{}
	cheap, dear := worthPrices["small"], worthPrices["large"]
	t.product, err = b.serveOwn(ctx, "worth", worthConfiguration,
		cheap[0], cheap[1], servers[0].url, dear[0], dear[1], servers[1].url)
	if err != nil {
		return err
	}
	defer t.product.end(syscall.SIGTERM)
	if b.outcomes != "" {
		f, e := os.Create(b.outcomes)
		if e != nil {
			return fmt.Errorf("keep outcomes: %w", e)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		t.outcomes = json.NewEncoder(f)
	}
	if err := t.run(ctx, qs); err != nil {
		return err
	}
	if len(t.done) == 0 {
		return errors.New("two questions at least are required")
	}
	b.worthReport(t, len(qs)-len(t.done))
	return nil
}

// run asks every second question in each way and tells the product how good the responses were;
// then it asks the others, by all routes.
func (t *trial) run(ctx context.Context, qs []question) error {
	for _, teach := range []bool{true, false} {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(2) // as many as the servers have slots
		for i := range qs {
			if (i%2 == 0) != teach {
				continue
			}
			g.Go(func() error { return t.put(ctx, &qs[i], teach) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// put asks a question in all ways.
func (t *trial) put(ctx context.Context, q *question, teach bool) error { //nolint:revive // which half
	routes := armRoutes
	if !teach {
		routes = append(slices.Clip(routes), chosenRoutes...)
	}
	got := make(map[string]taken, len(routes))
	for _, route := range routes {
		a, err := t.ask(ctx, q, route)
		if err != nil {
			return fmt.Errorf("%s by %s: %w", q.ID, route, err)
		}
		got[route] = a
		if teach {
			if err := t.rate(ctx, a); err != nil {
				return err
			}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !teach {
		t.done, t.src = append(t.done, got), append(t.src, q.Src)
	}
	if t.outcomes == nil {
		return nil
	}
	out := map[string][2]float64{}
	for _, route := range armRoutes {
		if got[route].arm == route { // one request in a thousand is drawn to another
			out[route] = [2]float64{got[route].right, got[route].tokens}
		}
	}
	return t.outcomes.Encode(map[string]any{"id": q.ID, "src": q.Src, "task": q.Src, "text": q.Text, "out": out})
}

func (t *trial) ask(ctx context.Context, q *question, route string) (a taken, err error) {
	body, err := json.Marshal(map[string]any{
		"model": "auto", "temperature": 0, "max_tokens": 250,
		"messages": []any{map[string]any{"role": "user", "content": q.Text}},
	})
	if err != nil {
		return a, fmt.Errorf("write: %w", err)
	}
	res, err := send(ctx, t.product.url, testCase{
		path: chatPath, body: string(body), header: [2]string{"x-ask", route},
	})
	if err != nil {
		return a, err
	}
	var got struct {
		Choices []struct {
			Message struct{ Content string }
		}
		Usage struct {
			Prompt     float64 `json:"prompt_tokens"`
			Completion float64 `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(res.body, &got); err != nil {
		return a, fmt.Errorf("read %d %s: %w", res.status, brief(string(res.body)), err)
	}
	if res.status != http.StatusOK || len(got.Choices) != 1 {
		return a, fmt.Errorf("%d %s", res.status, brief(string(res.body)))
	}
	model := res.header.Get("X-Signalbox-Model")
	a.id, a.arm, a.tokens = res.header.Get("X-Request-Id"), model, got.Usage.Completion
	if model == "large" {
		a.arm = "direct"
		if res.header.Get("X-Signalbox-Reasoning") == "high" {
			a.arm = "steps"
		}
	}
	if right(got.Choices[0].Message.Content, q.Answer, q.Kind) {
		a.right = 1
	}
	price := worthPrices[model]
	a.usd = got.Usage.Prompt*price[0] + got.Usage.Completion*price[1]
	return a, nil
}

// rate tells the product how good a response was.
func (t *trial) rate(ctx context.Context, a taken) error {
	res, err := send(ctx, t.product.url, testCase{
		path: "/signalbox/v1/feedback", body: fmt.Sprintf(`{"request_id":%q,"outcome":%v}`, a.id, a.right),
	})
	if err != nil {
		return err
	}
	if res.status != http.StatusOK {
		return fmt.Errorf("feedback: %d %s", res.status, brief(string(res.body)))
	}
	return nil
}

// worthReport prints what each route gave on the questions that were not learnt from.
func (b *bench) worthReport(t *trial, learnt int) {
	b.sayf("Learnt from the answers to %d questions, each in three ways; asked %d others.\n\n", learnt, len(t.done))
	b.sayf("| route | right | over always step by step, points | tokens of a response | USD for 1,000 questions | " +
		"small / direct / step by step |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, route := range allRoutes() {
		right := t.of(func(got map[string]taken) float64 { return 100 * got[route].right })
		over := t.of(func(got map[string]taken) float64 { return 100 * (got[route].right - got["steps"].right) })
		tokens := t.of(func(got map[string]taken) float64 { return got[route].tokens })
		usd := t.of(func(got map[string]taken) float64 { return got[route].usd / 1000 })
		b.sayf("| %s | %v %% | %v | %.0f | %.3f | %s |\n", route, right, over, tokens.mean, usd.mean, t.shares(route))
	}
	b.sayf("\n| source | questions |")
	for _, route := range allRoutes() {
		b.sayf(" %s: right, tokens |", route)
	}
	b.sayf("\n| --- | --- |%s\n", strings.Repeat(" --- |", len(armRoutes)+len(chosenRoutes)))
	for _, src := range slices.Compact(slices.Sorted(slices.Values(t.src))) {
		part := &trial{}
		for i := range t.done {
			if t.src[i] == src {
				part.done = append(part.done, t.done[i])
			}
		}
		b.sayf("| %s | %d |", src, len(part.done))
		for _, route := range allRoutes() {
			b.sayf(" %.0f %%, %.0f |",
				part.of(func(got map[string]taken) float64 { return 100 * got[route].right }).mean,
				part.of(func(got map[string]taken) float64 { return got[route].tokens }).mean)
		}
		b.sayf("\n")
	}
}

// shares are how many of the questions of a route were answered in each way.
func (t *trial) shares(route string) string {
	var out []string
	for _, arm := range armRoutes {
		n := t.of(func(got map[string]taken) float64 {
			if got[route].arm == arm {
				return 100
			}
			return 0
		})
		out = append(out, fmt.Sprintf("%.0f", n.mean))
	}
	return strings.Join(out, " / ") + " %"
}

// estimate is a mean with half of its 95 % interval, by the normal distribution.
type estimate struct{ mean, half float64 }

func (e estimate) String() string { return fmt.Sprintf("%.1f ± %.1f", e.mean, e.half) }

// of is the mean of a figure over the questions that were not learnt from.
func (t *trial) of(figure func(map[string]taken) float64) estimate {
	sum, squares, n := 0.0, 0.0, float64(len(t.done))
	for _, got := range t.done {
		x := figure(got)
		sum, squares = sum+x, squares+x*x
	}
	mean := sum / n
	return estimate{mean, 1.96 * math.Sqrt(max(0, squares/n-mean*mean)/n)}
}
