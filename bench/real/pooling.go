package main

import (
	"context"
	_ "embed" // of configurations
	"math"
	"strings"
	"syscall"

	"signalbox/bench/lab"
)

//go:embed pooling.yaml.tmpl
var poolingConfiguration string

// pooling asks a vLLM that classifies, by both of its interfaces. Its weights are random: what is
// looked at is that requests and answers fit.
func (b *bench) pooling(ctx context.Context) error {
	port, err := lab.Port(ctx)
	if err != nil {
		return err
	}
	server, err := vllm(ctx, b.cache, b.dir, "classifier", port, "--runner", "pooling", "--convert", "classify")
	if err != nil {
		return err
	}
	defer server.end(syscall.SIGKILL)
	product, err := b.serveOwn(ctx, "pooling", poolingConfiguration, server.url, tiny)
	if err != nil {
		return err
	}
	defer product.end(syscall.SIGTERM)
	for _, c := range [...]struct{ name, text string }{
		{"a short text", "The train leaves at a quarter to six."},
		{"a text that is longer than its window", strings.Repeat("word 12345 ", window)}, // several tokens a number
	} {
		name, text := c.name, c.text
		got, err := ask(ctx, product, text, "named", "classes", "pooled")
		if err != nil {
			return err
		}
		named, classes, pooled := got["named"], got["classes"], got["pooled"]
		b.holds(named.State == "evaluated" && named.Label != "" && named.Score > 0,
			"%s by /classify, labels of the server: %s %q %.3f %s",
			name, named.State, named.Label, named.Score, named.Reason)
		b.holds(classes.State == "evaluated" && pooled.State == "evaluated" && classes.Label == pooled.Label &&
			math.Abs(classes.Score-pooled.Score) < 0.01,
			"%s by /classify and by /pooling: %s %.3f, %s %.3f %s",
			name, classes.Label, classes.Score, pooled.Label, pooled.Score, pooled.Reason)
	}
	return nil
}
