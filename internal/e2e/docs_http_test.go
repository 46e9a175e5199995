package e2e

import (
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/http.md lists the headers that the code writes, and the statuses of the one table of errors;
// it and the pages that it names list the codes.
func TestDocHTTPListsHeadersStatusesAndCodes(t *testing.T) {
	overview := page(t, "http.md")
	codes := overview + page(t, "memory.md") + page(t, "keys.md") + page(t, "contexts.md")
	header := regexp.MustCompile(`"(X-Signalbox-[A-Za-z-]+|X-Should-Retry|X-Accel-Buffering)"`)
	part := regexp.MustCompile(`name ?\+ ?"(-[A-Z][a-z]+)"`)
	code := regexp.MustCompile(`(?:[cC]ode\w*(?::| :?=) +|(?:[iI]nvalid|serverError)\(\w+(?:\.\w+)?, |` +
		`http\.Status\w+, (?:openai\.\w+, |type\w+, )?)"([a-z_]+)"`)
	headers, told := 0, 0
	for _, text := range sources(t, "proxy") {
		for _, m := range header.FindAllStringSubmatch(text, -1) {
			headers++
			name := strings.ToLower(m[1])
			short := strings.TrimPrefix(name, "x-signalbox")
			if !strings.Contains(overview, "`"+name) && !strings.Contains(overview, "`"+short+"`") {
				t.Errorf("docs/http.md lacks the header %s", name)
			}
			for _, p := range part.FindAllStringSubmatch(text, -1) {
				if !strings.Contains(overview, "`"+short+strings.ToLower(p[1])+"`") {
					t.Errorf("docs/http.md lacks the header %s%s", name, strings.ToLower(p[1]))
				}
			}
		}
		for _, m := range code.FindAllStringSubmatch(text, -1) {
			told++
			if !strings.Contains(codes, "`"+m[1]+"`") {
				t.Errorf("docs/http.md lacks the code %s", m[1])
			}
		}
	}
	if headers < 20 || told < 30 {
		t.Errorf("found %d headers and %d codes: the code is written in another way now", headers, told)
	}
	table := sources(t, filepath.Join("proxy", "fault"))[filepath.Join("proxy", "fault", "wire.go")]
	for n := http.StatusBadRequest; n < 600; n++ {
		name := "http.Status" + strings.ReplaceAll(http.StatusText(n), " ", "")
		if !regexp.MustCompile(regexp.QuoteMeta(name) + `\b`).MatchString(table) {
			continue
		}
		if !regexp.MustCompile(fmt.Sprintf(`(?m)^\| (\d+, )?%d[ ,]`, n)).MatchString(overview) {
			t.Errorf("docs/http.md lacks the status %d, %s", n, name)
		}
	}
}

func page(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sources are the Go files below a folder but for tests, by their paths.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
