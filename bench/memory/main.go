package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"signalbox/bench/lab"
	"signalbox/proxy/affinity"
)

func main() {
	lab.Main("memory", func(ctx context.Context) error { return execute(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// errFailed reports that a requirement was not met.
var errFailed = errors.New("demands were not met")

// tuned is the last of the seeds that options were chosen on.
const tuned = 10

// execute does everything except exit. The report goes to out.
func execute(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/memory", flag.ContinueOnError)
	flags.SetOutput(log)
	list := flags.String("seeds", "11,12,13,14,15", "seeds, separated by commas")
	only := flags.String("only", "", "what to measure, separated by commas; empty for all")
	connected := flags.Bool("live", false, "measure real proxies over HTTP, a real Redis and real texts, in real time")
	whole := flags.Bool("all", false, "measure what --live does, and before that what is simulated")
	repeats := flags.Int("repeats", 5, "with --live, how often to measure what has no seed")
	tuning := flags.Bool("tuning", false, "allow the seeds on which options were chosen, and only those")
	small := flags.Int("small", 1, "divide the number of contexts by this, to see that everything works")
	o := affinity.DefaultOptions()
	flags.Float64Var(&o.Prior, "prior", o.Prior, "share of a prompt that its home is taken to have")
	flags.Float64Var(&o.Burden, "burden", o.Burden, "what a second of computing a prompt counts")
	if err := flags.Parse(args); err != nil {
		return err
	}
	seeds, err := parseSeeds(*list, *tuning)
	if err != nil {
		return err
	}
	if *small < 1 {
		return fmt.Errorf("--small: %d is less than 1", *small)
	}
	r := &report{}
	var parts []part
	if !*connected || *whole {
		parts = (&bench{seeds: seeds, o: o, small: *small}).parts(r)
	}
	if *connected || *whole {
		parts = append(parts, (&live{seeds: seeds, repeats: max(1, *repeats), small: *small, log: log}).parts(ctx, r)...)
	}
	if err := runAll(parts, *only, log); err != nil {
		return err
	}
	if err := r.write(out, seeds); err != nil {
		return err
	}
	if r.failed > 0 {
		return fmt.Errorf("%d %w", r.failed, errFailed)
	}
	return nil
}

// part is a part of the report.
type part struct {
	name string
	run  func() error
}

// runAll runs the named parts, or all of them if the list is empty.
func runAll(parts []part, only string, log io.Writer) error {
	if only != "" {
		names := strings.Split(only, ",")
		var known []string
		var wanted []part
		for _, p := range parts {
			known = append(known, p.name)
			if slices.Contains(names, p.name) {
				wanted = append(wanted, p)
			}
		}
		for _, name := range names {
			if !slices.Contains(known, name) {
				return fmt.Errorf("--only: %q is none of %s", name, strings.Join(known, ", "))
			}
		}
		parts = wanted
	}
	for _, p := range parts {
		_, _ = fmt.Fprintln(log, p.name)
		if err := p.run(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// parts returns the simulated experiments.
func (b *bench) parts(r *report) []part {
	var out []part
	for _, e := range experiments() {
		out = append(out, part{e.name, func() error { return e.run(b, r) }})
	}
	return out
}

// parts returns the sections over real connections.
func (l *live) parts(ctx context.Context, r *report) []part {
	var out []part
	for _, s := range sections() {
		out = append(out, part{s.name, func() error { return s.run(l, ctx, r) }})
	}
	return out
}

// parseSeeds reads seeds: those for tuning or those to report, never both.
func parseSeeds(list string, tuning bool) ([]uint64, error) { //nolint:revive // it is a flag
	var seeds []uint64
	for s := range strings.SplitSeq(list, ",") {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--seeds: %w", err)
		}
		if (n <= tuned) != tuning {
			return nil, fmt.Errorf("--seeds: options were chosen on seeds up to %d: those go with --tuning, others without", tuned)
		}
		seeds = append(seeds, n)
	}
	return seeds, nil
}
