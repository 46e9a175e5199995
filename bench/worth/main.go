package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "bench/worth: %v\n", err)
		os.Exit(1)
	}
}

// run does everything but exit. The report goes to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/worth", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with outcomes")
	path := flags.String("vectors", "", "file that keeps embeddings between runs")
	limit := flags.Int("limit", 0, "prompts of each set at most, evenly spread; 0 for all")
	pairs := flags.String("pairs", "", "SMALL:LARGE,... beside the built-in pairs")
	resamples := flags.Int("resamples", 200, "bootstrap resamples behind each interval")
	draws := flags.Int("draws", 10, "orders in which feedback comes, over which its figures are means")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *data == "":
		return errors.New("--data: a folder is required")
	case *limit < 0 || *resamples < 1 || *draws < 1:
		return errors.New("--limit is at least 0, --resamples and --draws at least 1")
	}
	r := &report{out: out, resamples: *resamples, draws: *draws, pairs: builtin()}
	for p := range strings.SplitSeq(*pairs, ",") {
		if small, large, ok := strings.Cut(p, ":"); ok {
			r.pairs = append(r.pairs, pair{small, large})
		} else if p != "" {
			return fmt.Errorf("--pairs: %q is not SMALL:LARGE", p)
		}
	}
	sets, err := load(*data, log)
	if err != nil {
		return err
	}
	for _, s := range sets {
		s.prompts = spread(s.prompts, *limit)
	}
	v, err := openVectors(*path)
	if err != nil {
		return err
	}
	if err := embed(ctx, sets, v, log); err != nil {
		return err
	}
	return r.run(ctx, sets)
}

// spread takes n of the items, evenly.
func spread[T any](xs []T, n int) []T {
	if n == 0 || len(xs) <= n {
		return xs
	}
	out := make([]T, n)
	for i := range out {
		out[i] = xs[i*len(xs)/n]
	}
	return out
}
