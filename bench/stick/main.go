package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"

	"signalbox/bench/lab"
)

func main() {
	lab.Main("stick", func(ctx context.Context) error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) })
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("stick", flag.ContinueOnError)
	flags.SetOutput(log)
	data := flags.String("data", "", "folder with conversations")
	limit := flags.Int("limit", 0, "second turns and changes that are measured at most, 0 for all")
	seed := flags.Uint64("seed", 1, "of the changes of subject that are made")
	stick := flags.Bool("stick", true, "let conversations stick to their model")
	show := flags.Bool("show", false, "print the turns that went wrong")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *data == "" {
		return errors.New("--data: a folder is required")
	}
	all, err := load(*data)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // reproducible, not secret
	m := measure{log: log, out: out, stick: *stick, limit: *limit, show: *show, rand: r}
	return m.run(ctx, part(all, false))
}
