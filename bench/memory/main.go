package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"

	"signalbox/proxy/affinity"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench/memory: %v\n", err)
		os.Exit(1)
	}
}

// errFailed says that a demand was not met.
var errFailed = errors.New("demands were not met")

// tuned are the seeds on which options were chosen.
const tuned = 10

// execute does everything but exit. The report goes to out.
func execute(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/memory", flag.ContinueOnError)
	flags.SetOutput(log)
	list := flags.String("seeds", "11,12,13,14,15", "seeds, separated by commas")
	only := flags.String("only", "", "what to measure, separated by commas; empty for all")
	connected := flags.Bool("live", false, "measure real proxies over HTTP, a real Redis and real texts, in real time")
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
	names, run := (&bench{seeds: seeds, o: o, small: *small}).parts(r)
	if *connected {
		names, run = (&live{seeds: seeds, repeats: max(1, *repeats), small: *small, log: log}).parts(ctx, r)
	}
	wanted := names
	if *only != "" {
		wanted = strings.Split(*only, ",")
	}
	for _, name := range wanted {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("--only: %q is none of %s", name, strings.Join(names, ", "))
		}
		_, _ = fmt.Fprintln(log, name)
		if err := run(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := r.write(out, seeds); err != nil {
		return err
	}
	if r.failed > 0 {
		return fmt.Errorf("%d %w", r.failed, errFailed)
	}
	return nil
}

// parts are the names of the simulated experiments, and what runs one of them.
func (b *bench) parts(r *report) (names []string, run func(i int) error) {
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	return names, func(i int) error { return experiments()[i].run(b, r) }
}

// parts are the names of the sections over real connections, and what runs one of them.
func (l *live) parts(ctx context.Context, r *report) (names []string, run func(i int) error) {
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names, func(i int) error { return sections()[i].run(l, ctx, r) }
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
