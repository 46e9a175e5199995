package main

import (
	"context"
	"math"
	"strings"
	"syscall"

	"signalbox/bench/lab"
)

const poolingConfiguration = `
server: {listen: "%s", admin_listen: "%s", drain_timeout: 1s}
models: [{name: none, endpoints: [{name: a, url: "http://127.0.0.1:9/v1"}], health: {path: "off"}}]
classify:
  tasks: []
  timeout: 60s
  classifiers:
    - name: named
      http: {url: %[3]s/v1, api: classify, model: %[4]s, timeout: 30s, max_bytes: 1MiB}
    - name: classes
      http: {url: %[3]s, api: classify, model: %[4]s, labels: [one, two], timeout: 30s, max_bytes: 1MiB}
    - name: pooled
      http: {url: %[3]s, api: pooling, model: %[4]s, labels: [one, two], timeout: 30s, max_bytes: 1MiB}
default: {models: [none]}
`

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
