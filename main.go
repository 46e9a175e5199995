// Command signalbox is an OpenAI-compatible reverse proxy that decides for every request which
// model answers and how hard it thinks. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"signalbox/internal/cli"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return cli.Main(ctx, version, os.Args[1:], cli.System())
}
