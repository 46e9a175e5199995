// Command licences checks that every module linked into the product has a licence on the
// allow-list. It reads the licence files in the module cache; nothing is downloaded.
//
// Usage: licences DIR, where DIR holds the product's go.mod.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/google/licensecheck"
)

// Permissive licences that may be linked into an Apache-2.0 program, by SPDX name.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "BSD-3-Clause-NoTrademark"}
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: licences DIR")
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", ".")
	cmd.Dir = args[0]
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list modules: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	sort.Strings(lines)
	lines = slices.Compact(lines)
	var bad []string
	for _, line := range lines {
		module, dir, ok := strings.Cut(line, "\t")
		if !ok {
			continue
		}
		if found := licencesIn(dir); len(found) == 0 || !slices.ContainsFunc(found, permitted) {
			bad = append(bad, fmt.Sprintf("%s: %v", module, found))
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("not on the allow-list:\n  %s", strings.Join(bad, "\n  "))
	}
	fmt.Printf("licences: %d linked modules, all on the allow-list\n", len(lines))
	return nil
}

func permitted(id string) bool { return slices.Contains(allowed(), id) }

// licencesIn returns the SPDX names of the licence files at the top of a module.
func licencesIn(dir string) []string {
	var ids []string
	files, _ := filepath.Glob(filepath.Join(dir, "*")) //nolint:errcheck // the pattern is constant
	for _, f := range files {
		name := strings.ToUpper(filepath.Base(f))
		if !strings.HasPrefix(name, "LICEN") && !strings.HasPrefix(name, "COPYING") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, m := range licensecheck.Scan(text).Match {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
