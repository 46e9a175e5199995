package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"signalbox/bench/lab"
)

func main() {
	lab.Main("guard", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// effort is the extent of the measurement.
type effort struct {
	rounds int           // per comparison, in turn
	chunks int           // of each stream of the pass-through, per round
	tokens int           // of each of the eight streams whose gaps are compared, per round
	claims int           // timed claims of each kind
	load   time.Duration // of each run under load
	crowd  [2]int        // streams of the two runs under load
	seeds  uint64        // sheets of facts with planted numbers: 67 claims each
	data   string        // folder of labelled answers, empty for none
	limit  int           // rows of each of its files, 0 for all
	out    string        // folder for the results of each answer, empty for none
}

func usual() effort {
	return effort{rounds: 5, chunks: 2000, tokens: 300, claims: 300, load: 10 * time.Second, crowd: [2]int{200, 1000}, seeds: 20}
}

// quick is enough to test that everything runs; its figures are not meaningful.
func quick() effort {
	return effort{rounds: 1, chunks: 50, tokens: 20, claims: 10, load: time.Second, crowd: [2]int{8, 16}, seeds: 1}
}

// section measures one thing and reports it.
type section struct {
	name string
	run  func(b *bench, ctx context.Context, r *report) error
}

func sections() []section {
	return []section{
		{"passthrough", (*bench).passthrough},
		{"gaps", (*bench).gaps},
		{"verdicts", (*bench).verdicts},
		{"load", (*bench).load},
		{"planted", (*bench).planted},
		{"meaning", (*bench).meaning},
		{"answers", (*bench).answers},
		{"documents", (*bench).documents},
		{"languages", (*bench).languages},
		{"numbers", (*bench).numbers},
		{"grounding", (*bench).grounding},
	}
}

// run does everything except exit. The report goes to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/guard", flag.ContinueOnError)
	flags.SetOutput(log)
	names := make([]string, 0, len(sections()))
	for _, s := range sections() {
		names = append(names, s.name)
	}
	only := flags.String("only", strings.Join(names, ","), "what to measure, separated by commas")
	data := flags.String("data", "", "`folder` of labelled answers: dev/grounding_*.jsonl, grounding_*/rows.jsonl.gz, real_benign/long_prose.jsonl.gz")
	limit := flags.Int("limit", 0, "rows of each file of --data; 0: all")
	dump := flags.String("dump", "", "`folder` for what was said of each labelled answer")
	short := flags.Bool("quick", false, "a short run, to see that everything works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted := strings.Split(*only, ",")
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			return fmt.Errorf("--only: %q is none of %s", name, strings.Join(names, ", "))
		}
	}
	e := usual()
	if *short {
		e = quick()
	}
	e.data, e.limit, e.out = *data, *limit, *dump
	b, err := open(ctx, e, log)
	if err != nil {
		return err
	}
	r := &report{}
	for _, s := range sections() {
		if !slices.Contains(wanted, s.name) {
			continue
		}
		_, _ = fmt.Fprintln(log, s.name)
		if err = s.run(b, ctx, r); err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			break
		}
	}
	if err = errors.Join(err, b.close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return r.write(out)
}
