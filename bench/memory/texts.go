package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// contractBytes is the length of the texts that are measured: about 100,000 words.
const contractBytes = 600 << 10

// corpus is a text of one kind, with where it came from.
type corpus struct {
	name, from string
	text       []byte
}

// corpora are texts of several kinds that are on every machine which builds this: of the Go
// distribution, of the modules that the build downloads, and of this repository. The working
// directory is its root.
func corpora() ([]corpus, error) {
	root, err := goEnv("GOROOT")
	if err != nil {
		return nil, err
	}
	modules, err := goEnv("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	opticks, err := os.ReadFile(filepath.Join(root, "src/testdata/Isaac.Newton-Opticks.txt"))
	if err != nil {
		return nil, fmt.Errorf("prose: %w", err)
	}
	list := []corpus{{"prose", "Newton's Opticks, of the Go distribution", opticks[:min(len(opticks), contractBytes)]}}
	for _, c := range []struct {
		name, from, dir string
		fits            func(name string) bool
	}{
		{"documentation", "Markdown files of the module cache, each once", modules, ends(".md")},
		{"licences", "LICENSE files of the module cache, each once", modules, func(name string) bool { return strings.HasPrefix(name, "LICENSE") }},
		{"code", "Go sources of package net of the Go distribution", filepath.Join(root, "src/net"), ends(".go")},
		{"code of this repository", "Go sources of proxy", "proxy", ends(".go")},
		{"JSON", "JSON files of the module cache, each once", modules, ends(".json")},
		{"JSON of the Go distribution", "its JSON files", root, ends(".json")},
	} {
		text, err := gather(c.dir, c.fits)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		list = append(list, corpus{c.name, c.from, text})
	}
	return list, nil
}

func ends(suffix string) func(string) bool {
	return func(name string) bool { return strings.HasSuffix(name, suffix) }
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output() //nolint:noctx,gosec // takes milliseconds; the name is ours
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// gather joins files of 2 to 200 KB below dir in the order of their paths, equal ones once, up to
// contractBytes.
func gather(dir string, fits func(name string) bool) ([]byte, error) {
	seen := map[[sha256.Size]byte]bool{}
	var all []byte
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !fits(d.Name()) {
			return err
		}
		b, err := os.ReadFile(path) //nolint:gosec // folders of the Go tool
		if err != nil || len(b) < 2000 || len(b) > 200_000 || seen[sha256.Sum256(b)] {
			return err
		}
		seen[sha256.Sum256(b)] = true
		if all = append(all, b...); len(all) >= contractBytes {
			return fs.SkipAll
		}
		return nil
	})
	return all[:min(len(all), contractBytes)], err //nolint:wrapcheck // the caller says what was read
}

// shuffled is the paragraphs of a text in another order: as long, as hard to compress, and another
// text.
func shuffled(text []byte, r *rand.Rand) []byte {
	paragraphs := slices.Clone(bytes.SplitAfter(text, []byte("\n\n")))
	r.Shuffle(len(paragraphs), func(i, j int) { paragraphs[i], paragraphs[j] = paragraphs[j], paragraphs[i] })
	return bytes.Join(paragraphs, nil)
}
