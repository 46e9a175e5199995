package main

import (
	"bytes"
	"context"
	_ "embed" // of configurations
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"signalbox/bench/lab"
)

func main() { lab.Main("real", run) }

// errBroken ends the program when the report has said why.
var errBroken = errors.New("something does not hold: see the report")

func run(ctx context.Context) error {
	home, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the cache: %w", err)
	}
	cache := flag.String("cache", filepath.Join(home, "signalbox/real"), "where install.sh put the servers")
	only := flag.String("only", "", "sections to run, separated by commas; all when empty")
	out := flag.String("out", "", "a file that the report is written to as well")
	prompts := flag.String("prompts", "", "questions of section worth, as prompts.py writes them")
	outcomes := flag.String("outcomes", "", "a file for what each way to answer made of them, as bench/worth reads it")
	flag.Parse()
	var report bytes.Buffer
	b := &bench{
		cache: *cache, out: io.MultiWriter(os.Stdout, &report), prompts: *prompts, outcomes: *outcomes,
	}
	err = b.run(ctx, strings.FieldsFunc(*only, func(r rune) bool { return r == ',' }))
	b.close()
	if *out != "" {
		err = errors.Join(err, os.WriteFile(*out, report.Bytes(), 0o600))
	}
	return err
}

// bench is the servers, the product in front of them, and the report.
type bench struct {
	cache   string
	dir     string // of logs and the binary
	program string // the product
	out     io.Writer

	prompts  string // file of questions; empty for none
	outcomes string // file for outcomes; empty for none

	a, b    *process // two vLLMs; b is started when it is needed
	llama   *process
	product *process

	broken int
}

// section is a part of the report.
type section struct {
	name, title string
	run         func(b *bench, ctx context.Context) error
	alone       bool // it brings the servers that it needs
}

func sections() []section {
	return []section{
		{"differences", "Differences to vLLM, direct against through", (*bench).differences, false},
		{"cached", "Predicted and real cached tokens", (*bench).cached, false},
		{"salt", "Tenants share no prefix", (*bench).salt, false},
		{"warm", "Reading ahead", (*bench).warm, false},
		{"window", "Prompts near the context window", (*bench).window, false},
		{"tokens", "Tokens in streams of several tokens an event", (*bench).tokens, false},
		{"first", "Time to the first byte", (*bench).first, false},
		{"cancel", "A client that leaves", (*bench).cancel, false},
		{"sleep", "A server that sleeps or is paused", (*bench).sleep, false},
		{"kill", "kill -9, and a restart", (*bench).kill, false},
		{"llama", "Differences to llama.cpp's server", (*bench).differencesLlama, false},
		{"classifier", "A model elsewhere as a classifier", (*bench).classifier, true},
		{"pooling", "vLLM as a classifier", (*bench).pooling, true},
		{"worth", "What choosing by outcomes is worth, with two real models", (*bench).worth, true},
	}
}

func (b *bench) run(ctx context.Context, only []string) (err error) {
	if b.dir, err = os.MkdirTemp("", "signalbox-real"); err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	if b.program, err = lab.Binary(ctx, "", b.dir); err != nil {
		return err
	}
	if slices.ContainsFunc(sections(), func(s section) bool { return !s.alone && s.asked(only) }) {
		if err := b.servers(ctx); err != nil {
			return err
		}
	}
	for _, s := range sections() {
		if !s.asked(only) {
			continue
		}
		b.sayf("\n## %s\n\n", s.title)
		if err := s.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w (logs in %s)", s.name, err, b.dir)
		}
	}
	if b.broken > 0 {
		return fmt.Errorf("%w (logs in %s)", errBroken, b.dir)
	}
	return os.RemoveAll(b.dir)
}

// asked reports whether a section is one of those to run.
func (s *section) asked(only []string) bool { return len(only) == 0 || slices.Contains(only, s.name) }

// servers starts the vLLMs and the product in front of them.
func (b *bench) servers(ctx context.Context) (err error) {
	port, err := lab.Port(ctx)
	if err != nil {
		return err
	}
	if b.a, err = vllm(ctx, b.cache, b.dir, "a", port, chats()...); err != nil {
		return err
	}
	if port, err = lab.Port(ctx); err != nil {
		return err
	}
	if b.b, err = vllm(ctx, b.cache, b.dir, "b", port, chats()...); err != nil {
		return err
	}
	if err := b.serve(ctx); err != nil {
		return err
	}
	b.sayf("signalbox %s before %s.\n", revision(ctx), b.versions(ctx))
	return nil
}

// keys of two tenants.
const (
	keyOne = "key-of-tenant-one"
	keyTwo = "key-of-tenant-two"
)

// serve starts the product. Model tiny-real is server a alone, both is a and b.
func (b *bench) serve(ctx context.Context) (err error) {
	llama, first := "", ""
	if b.llama != nil {
		llama = fmt.Sprintf("  - {name: %s, context_window: %d, endpoints: [{name: l, url: %s/v1}]}\n",
			gemma, llamaWindow, b.llama.url)
		first = gemma + ", "
	}
	b.product, err = b.serveOwn(ctx, "signalbox", configuration,
		sum(keyOne), sum(keyTwo), first, b.a.url, b.a.url, b.b.url, llama)
	return err
}

// configuration of the product. The limits on time are those of a machine that does other things.
//
//go:embed keys.yaml.tmpl
var configuration string

func (b *bench) close() {
	for _, p := range []*process{b.product, b.a, b.b, b.llama} {
		if p != nil {
			p.end(syscall.SIGTERM)
		}
	}
}

func (b *bench) sayf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }

// holds reports a promise.
func (b *bench) holds(ok bool, format string, args ...any) { //nolint:revive // the fact reported
	word := "holds"
	if !ok {
		word = "**does not hold**"
		b.broken++
	}
	b.sayf("- %s: %s\n", fmt.Sprintf(format, args...), word)
}
