package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"signalbox/proxy/affinity"
)

func main() {
	err := execute(os.Args[1:], os.Stdout, os.Stderr)
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
func execute(args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/memory", flag.ContinueOnError)
	flags.SetOutput(log)
	names := make([]string, 0, len(experiments()))
	for _, e := range experiments() {
		names = append(names, e.name)
	}
	list := flags.String("seeds", "11,12,13,14,15", "seeds, separated by commas")
	only := flags.String("only", strings.Join(names, ","), "what to measure, separated by commas")
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
	b, r := &bench{seeds: seeds, o: o, small: *small}, &report{}
	for name := range strings.SplitSeq(*only, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return fmt.Errorf("--only: %q is none of %s", name, strings.Join(names, ", "))
		}
		if err := experiments()[i].run(b, r); err != nil {
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
