package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"signalbox/bench/lab"
)

func main() {
	lab.Main("worth", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

// run does everything except exit. The report goes to out, progress to log.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("bench/worth", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with outcomes")
	path := flags.String("vectors", "", "file that keeps embeddings between runs")
	limit := flags.Int("limit", 2000, "prompts of each set at most, evenly spread; 0 for all")
	pairs := flags.String("pairs", "", "SMALL:LARGE,... beside the built-in pairs")
	efforts := flags.String("efforts", "", "DIRECT:STEPS,... that are one model at two efforts of reasoning")
	losses := flags.String("losses", "0.005", "outcomes.max_quality_loss,... that --efforts are tried with")
	usd := flags.String("prices", "", "MODEL=USD,... per million tokens of an answer; 1 for all others")
	resamples := flags.Int("resamples", 200, "bootstrap resamples behind each interval")
	draws := flags.Int("draws", 5, "orders in which feedback comes, over which its figures are means")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *data == "":
		return errors.New("--data: a folder is required")
	case *limit < 0 || *resamples < 1 || *draws < 1:
		return errors.New("--limit is at least 0, --resamples and --draws at least 1")
	}
	r := &report{out: out, resamples: *resamples, draws: *draws}
	more, err := readPairs(*pairs)
	if err != nil {
		return fmt.Errorf("--pairs: %w", err)
	}
	r.pairs = append(builtin(), more...)
	if r.efforts, err = readPairs(*efforts); err != nil {
		return fmt.Errorf("--efforts: %w", err)
	}
	if r.losses, err = readLosses(*losses); err != nil {
		return fmt.Errorf("--losses: %w", err)
	}
	if r.prices, err = readPrices(*usd); err != nil {
		return err
	}
	sets, err := load(*data, log)
	if err != nil {
		return err
	}
	for _, s := range sets {
		s.prompts = lab.Spread(s.prompts, *limit)
	}
	a, err := lab.Build(ctx, lab.Plain, log)
	if err != nil {
		return err
	}
	r.read = newReader(a.Extract)
	err = r.read.load(*path)
	if err == nil {
		err = errors.Join(r.read.read(ctx, sets, log), r.read.save(*path))
	}
	if err == nil {
		err = r.run(ctx, sets)
	}
	return errors.Join(err, a.Close(context.WithoutCancel(ctx)))
}

// list splits a text at commas; none for an empty text.
func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func readPairs(s string) (out []pair, err error) {
	for _, p := range list(s) {
		small, large, ok := strings.Cut(p, ":")
		if !ok {
			return nil, fmt.Errorf("%q is not two models with a colon between them", p)
		}
		out = append(out, pair{small, large})
	}
	return out, nil
}

func readLosses(s string) (out []float64, err error) {
	for _, x := range list(s) {
		loss, err := strconv.ParseFloat(x, 64)
		if err != nil || !(loss > 0 && loss <= 1) {
			return nil, fmt.Errorf("%q is not above 0 and at most 1", x)
		}
		out = append(out, loss)
	}
	return out, nil
}

func readPrices(s string) (prices, error) {
	out := prices{}
	for _, x := range list(s) {
		model, price, ok := strings.Cut(x, "=")
		usd, err := strconv.ParseFloat(price, 64)
		if !ok || err != nil || !(usd > 0) {
			return nil, fmt.Errorf("--prices: %q is not MODEL=USD", x)
		}
		out[model] = usd
	}
	return out, nil
}
