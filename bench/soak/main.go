package main

import (
	"context"
	"flag"
	"os"
	"time"

	"signalbox/bench/lab"
)

func main() { lab.Main("soak", run) }

func run(ctx context.Context) error {
	o := options{log: os.Stderr}
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "how long")
	flag.DurationVar(&o.every, "every", 20*time.Second, "how long the load lasts between two looks at the process")
	flag.StringVar(&o.binary, "signalbox", "", "the program; built from this checkout when empty")
	flag.IntVar(&o.clients, "clients", 8, "how many clients of each kind there are")
	flag.Parse()
	r, err := soak(ctx, o)
	if err != nil {
		return err
	}
	r.print(os.Stdout)
	return r.verdict()
}
