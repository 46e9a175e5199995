package testkit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// Cases calls visit with each quoted string that a case of the Go files compares with, and its
// position. Arguments of calls, such as a prefix to search for, and raw strings do not count. It
// returns the number of strings; a file that does not parse ends the test.
func Cases(tb testing.TB, visit func(at token.Position, quoted string), files ...string) (n int) {
	tb.Helper()
	set := token.NewFileSet()
	literals := func(x ast.Node) bool {
		if l, ok := x.(*ast.BasicLit); ok && l.Kind == token.STRING && l.Value[0] == '"' && l.Value != `""` {
			n++
			visit(set.Position(l.Pos()), l.Value)
		}
		_, call := x.(*ast.CallExpr)
		return !call
	}
	for _, name := range files {
		f, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			tb.Fatal(err)
		}
		ast.Inspect(f, func(x ast.Node) bool {
			if c, ok := x.(*ast.CaseClause); ok {
				for _, e := range c.List {
					ast.Inspect(e, literals)
				}
			}
			return true
		})
	}
	return n
}
