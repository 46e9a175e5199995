package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"signalbox/bench/lab"
)

func main() {
	lab.Main("routing", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// run does everything except exit. The report goes to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/routing", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder of the data sets")
	limit := flags.Int("limit", 0, "use at most this many questions of each set, evenly spread; 0 uses all")
	resamples := flags.Int("resamples", 2000, "bootstrap resamples behind each interval")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *data == "":
		return errors.New("--data is required: the folder that holds router_mmlu_pro, router_routellm, mmlu_pro, mmlu and dev")
	case *limit < 0, *resamples < 1:
		return errors.New("--limit must not be negative and --resamples must be at least 1")
	}
	d, err := readData(*data)
	if err != nil {
		return err
	}
	experiments, err := d.experiments(*limit)
	if err != nil {
		return err
	}
	c, done, err := openClassifier(ctx, log)
	if err != nil {
		return err
	}
	defer done()
	r := reporter{w: out, resamples: *resamples}
	r.head(*limit)
	for i := range experiments {
		e := &experiments[i]
		if err := e.decide(ctx, c, log); err != nil {
			return fmt.Errorf("%s: %w", e.title, err)
		}
		r.experiment(e)
	}
	mix, err := decideEfforts(ctx, c, lab.Spread(d.efforts, *limit), log)
	if err != nil {
		return fmt.Errorf("reasoning effort: %w", err)
	}
	r.efforts(mix)
	return r.err
}
