package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"signalbox/bench/lab"
)

func main() {
	o := options{}
	flag.IntVar(&o.requests, "requests", 400, "requests for each set of features")
	flag.DurationVar(&o.idle, "idle", 10*time.Second, "how long a set of features is watched without requests")
	flag.StringVar(&o.binary, "signalbox", "", "the program; built from this checkout when empty")
	flag.Parse()
	lab.Main("replicas", func(ctx context.Context) error { return run(ctx, o) })
}

type options struct {
	requests int
	idle     time.Duration
	binary   string
}

// key is the key of requests if keys are required.
const key = "sk-bench-replicas"

// features are combinations of features that use Redis, with the sections that enable them.
func features() []struct{ name, text string } {
	callers := fmt.Sprintf("auth: {mode: keys, keys: [{name: caller, sha256: %x, %%s}]}\n", sha256.Sum256([]byte(key)))
	const rate = "rate: {rpm: 1000000, tpm: 1000000000, concurrency: 1000}"
	return []struct{ name, text string }{
		{"conversations and placement", ""},
		{"and rates of a key", fmt.Sprintf(callers, rate)},
		{"and a budget of a key", fmt.Sprintf(callers, rate+", budget: {usd: 1000000}")},
		{"and shared answers, exact", fmt.Sprintf(callers, rate+", budget: {usd: 1000000}") + "cache: {mode: exact, shared: true}\n"},
		{"and virtual keys", strings.Replace(fmt.Sprintf(callers, rate+", budget: {usd: 1000000}"),
			"mode: keys,", "mode: keys, virtual: {redis: true},", 1) + "cache: {mode: exact, shared: true}\n"},
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "bench-replicas")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.binary, err = lab.Binary(ctx, o.binary, dir); err != nil {
		return err
	}
	fmt.Printf("%d requests for each row, half of them second turns; per request unless it says otherwise\n\n", o.requests)
	fmt.Printf("%-30s %9s %9s %9s %9s %9s %9s   %s\n", "features, each with those above", "commands", "to, B", "from, B",
		"Redis, us", "proxy, us", "kept, B", "commands by name")
	for _, f := range features() {
		if err := one(ctx, o, dir, f.name, f.text); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

// one measures a combination of features with separate processes.
func one(ctx context.Context, o options, dir, name, text string) (err error) {
	s, err := newStand(ctx, o.binary, dir, text)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	if err := s.ask(ctx, 8); err != nil { // opens connections and loads scripts
		return err
	}
	from, err := s.look(ctx)
	if err != nil {
		return err
	}
	if err := s.ask(ctx, o.requests); err != nil {
		return err
	}
	to, err := s.settled(ctx)
	if err != nil {
		return err
	}
	n := float64(o.requests)
	fmt.Printf("%-30s %9.2f %9.0f %9.0f %9.1f %9.0f %9.0f   %s\n", name, (to.total()-from.total())/n, (to.in-from.in)/n, (to.out-from.out)/n,
		(to.cpu-from.cpu)/n*1e6, (to.proxies-from.proxies)/n*1e6, (to.memory-from.memory)/n, names(from, to, n))
	// Without requests, only the replicas' own activity remains.
	began := time.Now()
	time.Sleep(o.idle)
	idle, err := s.look(ctx)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds() * float64(len(s.replicas))
	fmt.Printf("%-30s %9.2f %9.0f %9.0f %9.1f %9.0f           %s\n", "  idle, a replica and second", (idle.total()-to.total())/seconds, (idle.in-to.in)/seconds,
		(idle.out-to.out)/seconds, (idle.cpu-to.cpu)/seconds*1e6, (idle.proxies-to.proxies)/seconds*1e6, names(to, idle, seconds))
	fmt.Printf("%-30s %s\n", "  of model servers, the same", s.polled(to, idle, seconds))
	fmt.Printf("%-30s /metrics of a replica %d bytes, of a simulated server %d\n\n", "", idle.page, s.pageOf(ctx))
	return nil
}

// names lists the commands between two observations, the most frequent first.
func names(from, to *seen, n float64) string {
	type count struct {
		name string
		n    float64
	}
	var all []count
	for name, x := range to.commands {
		if d := x - from.commands[name]; d > 0 {
			all = append(all, count{name, d / n})
		}
	}
	slices.SortFunc(all, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, c := range all {
		out = append(out, fmt.Sprintf("%s %.2f", c.name, c.n))
	}
	return strings.Join(out, ", ")
}
