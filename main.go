// Command signalbox is an OpenAI-compatible reverse proxy that decides for every request which
// model answers and how hard it thinks. See README.md.
package main

import (
	"os"

	"signalbox/internal/cli"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(cli.Run(version)) }
