package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"signalbox/bench/lab"
)

func main() { lab.Main("proxy", run) }

func run(ctx context.Context) error {
	role := flag.String("role", "", "what a process of the benchmark is; for its own use")
	to := flag.String("to", "", "where the role forwards to")
	rounds := flag.Int("rounds", 5, "rounds; the medians count")
	length := flag.Duration("time", 3*time.Second, "time of each workload on each way")
	binary := flag.String("signalbox", "", "the program to measure; built from this checkout when empty; several, separated by commas, are measured beside each other, and compared with the first")
	add := flag.String("add", "", "files of configuration, separated by commas, each put behind that of the first program and measured beside it")
	key := flag.String("key", "", "key that requests through signalbox show")
	only := flag.String("only", "", "workloads whose names contain this")
	ways := flag.String("ways", "", "ways to measure beside the bare proxy, separated by commas: direct, nginx, signalbox; all when empty")
	promises := flag.Bool("promises", false, "count what must not be lost and measure what faults cost, instead of comparing")
	streams := flag.Int("streams", 100_000, "with -promises, how many fast streams")
	flag.Parse()
	switch *role {
	case "model":
		return serveModel(ctx)
	case "bare":
		return serveBare(ctx, *to)
	case "":
	default:
		return errors.New("no such role: " + *role)
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: %d is less than 1", *rounds)
	}
	b, err := newBench(ctx, *binary)
	if err == nil {
		err = b.addConfigurations(ctx, *add, *key)
	}
	if err != nil {
		return errors.Join(err, b.close())
	}
	if *promises {
		return errors.Join(b.promises(ctx, os.Stdout, *streams), b.close())
	}
	if err := b.keep(*ways); err != nil {
		return errors.Join(err, b.close())
	}
	results, err := b.measure(ctx, *only, *rounds, *length)
	if err == nil {
		results.print(os.Stdout)
	}
	return errors.Join(err, b.close())
}
