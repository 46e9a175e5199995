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

// mostOnTheWay is how many files a reader opens to follow one chat request.
const mostOnTheWay = 15

// The functions that docs/ARCHITECTURE.md names in the way of a request are in the files that it
// names, and the way itself takes few files.
func TestDocArchitectureNamesWhatThereIs(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash("docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\|[^|]*\\| (`[A-Z`a-z, .]+`) \\| (\\*\\*)?`([a-z/_]+\\.go)`(?:\\*\\*)? \\|")
	declared := map[string]map[string]bool{}
	steps, way := 0, 0
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
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
	if steps < 40 {
		t.Errorf("%d steps were found", steps)
	}
	if way < 10 || way > mostOnTheWay {
		t.Errorf("%d files are on the way, at most %d should be", way, mostOnTheWay)
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
