package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onTheWay is how many files the page says are the way of a chat request.
const onTheWay = 15

// The functions that docs/ARCHITECTURE.md names in the way of a request are in the files that it
// names, and the way itself takes few files.
func TestDocArchitectureNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tree, _ := strings.Cut(string(page), "| step | function |")
	tree, _, _ = strings.Cut(tree, "\n\n")
	row := regexp.MustCompile("(?m)^\\|[^|]*\\| (`[A-Z`a-z0-9_, .]+`) \\| (\\*\\*)?`([a-z0-9/_]+\\.go)`(?:\\*\\*)? \\|")
	declared := map[string]map[string]bool{}
	steps, way := 0, 0
	for _, m := range row.FindAllStringSubmatch(tree, -1) {
		steps++
		file := m[3]
		if m[2] != "" {
			way++
		}
		if declared[file] == nil {
			declared[file] = functionsOf(t, file)
		}
		for name := range strings.SplitSeq(m[1], ", ") {
			if name = strings.Trim(name, "`"); !declared[file][name] {
				t.Errorf("%s declares no function %s", file, name)
			}
		}
	}
	if rows := strings.Count(tree, "\n| ") - 1; steps != rows {
		t.Errorf("%d of %d rows name functions and a file", steps, rows)
	}
	if way != onTheWay || !strings.Contains(string(page), "The fifteen files in bold are the way.") {
		t.Errorf("%d files are in bold, %d are the way", way, onTheWay)
	}
}

// functionsOf lists the functions of a file, methods as Type.Method.
func functionsOf(t *testing.T, file string) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.FromSlash(file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := fn.Name.Name
		if fn.Recv != nil {
			of := fn.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			if id, ok := of.(*ast.Ident); ok {
				name = id.Name + "." + name
			}
		}
		out[name] = true
	}
	return out
}
