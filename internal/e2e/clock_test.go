package e2e

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A test that judges how long something took on the wall fails on a busy machine. It counts
// instead, runs in a bubble of synctest, whose clock is its own, or judges under testkit.Timed()
// alone. How long it waits before it gives up is testkit.Patience.
func TestNoTestJudgesTimeOnTheWall(t *testing.T) {
	t.Parallel()
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return skipped(d, err)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		read++
		found, err := judgements(path, nil)
		for _, at := range found {
			t.Errorf("%s compares how long something took", at)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if read < 100 {
		t.Errorf("%d files were read", read)
	}
}

func skipped(d fs.DirEntry, err error) error {
	if err == nil && d.IsDir() {
		return filepath.SkipDir
	}
	return err
}

func TestJudgementsOfTimeAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`if time.Since(start) > time.Second { t.Error() }`:                                                   1,
		`if time.Second < time.Since(start) { t.Error() }`:                                                   1,
		`took := time.Since(start); if ok && took >= limit { t.Error() }`:                                    1,
		`var all []time.Duration; all = append(all, now.Sub(then)); if p := all[9]; p > limit { t.Error() }`: 1,
		`switch took := time.Since(start); { case took != 0: t.Error() }`:                                    1,
		`if took := time.Since(start); took < limit { t.Error() }`:                                           0, // no machine is too fast
		`if took := time.Since(start); testkit.Timed() && took > limit { t.Error() }`:                        0,
		`if !testkit.Timed() { t.Skip() }; if time.Since(start) > limit { t.Error() }`:                       0,
		`if time.Since(start) > testkit.Patience { t.Fatal() }`:                                              0,
		`synctest.Test(t, func(t *testing.T) { if time.Since(start) != 3 { t.Error() } })`:                   0,
		`took := size - before; if took > limit { t.Error() }`:                                               0,
	} {
		found, err := judgements("x_test.go", "package x\nfunc TestX(t *testing.T) {\n"+body+"\n}\n")
		if err != nil || len(found) != want {
			t.Errorf("%s: found %v, %v", body, found, err)
		}
	}
}

// judgements lists the places of a file of tests that compare how long something took.
func judgements(path string, src any) ([]string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read a test: %w", err)
	}
	var out []string
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") || skips(f.Body) || inBubble(file, f) {
			continue
		}
		took := durations(f.Body)
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				return !isCall(n, "synctest", "Test")
			case *ast.BinaryExpr:
				if timed(n) {
					return false
				}
				longer := n.X
				switch n.Op { //nolint:exhaustive // what compares
				case token.LSS, token.LEQ:
					longer = n.Y
				case token.GTR, token.GEQ, token.NEQ, token.EQL:
				default:
					return true
				}
				if elapsed(longer, took) && !patient(n) {
					out = append(out, set.Position(n.Pos()).String())
				}
			}
			return true
		})
	}
	return out, nil
}

// inBubble reports whether a function says in a comment that it runs in a bubble.
func inBubble(file *ast.File, f *ast.FuncDecl) bool {
	for _, c := range file.Comments {
		if c.End() >= f.Pos()-1 && c.Pos() < f.End() && strings.Contains(c.Text(), "bubble") {
			return true
		}
	}
	return f.Doc != nil && strings.Contains(f.Doc.Text(), "bubble")
}

// skips reports whether a test is skipped where no time may be judged.
func skips(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		if cond, ok := s.(*ast.IfStmt); ok {
			if not, ok := cond.Cond.(*ast.UnaryExpr); ok && not.Op == token.NOT && timed(not.X) {
				return true
			}
		}
	}
	return false
}

// durations are the names that get a time that passed, or lists of such.
func durations(body *ast.BlockStmt) map[string]bool {
	took := map[string]bool{}
	for n := -1; n < len(took); {
		n = len(took)
		ast.Inspect(body, func(node ast.Node) bool {
			a, ok := node.(*ast.AssignStmt)
			if !ok {
				return true
			}
			for i, left := range a.Lhs {
				name, ok := left.(*ast.Ident)
				if right := a.Rhs[min(i, len(a.Rhs)-1)]; ok && name.Name != "_" && len(a.Lhs) == len(a.Rhs) && elapsed(right, took) {
					took[name.Name] = true
				}
			}
			return true
		})
	}
	return took
}

// elapsed reports whether an expression is a time that passed.
func elapsed(x ast.Expr, took map[string]bool) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return took[x.Name]
	case *ast.ParenExpr:
		return elapsed(x.X, took)
	case *ast.IndexExpr:
		return elapsed(x.X, took)
	case *ast.BinaryExpr:
		return elapsed(x.X, took) || elapsed(x.Y, took)
	case *ast.CallExpr:
		if name, ok := x.Fun.(*ast.Ident); ok && (name.Name == "append" || name.Name == "max" || name.Name == "min") {
			for _, arg := range x.Args {
				if elapsed(arg, took) {
					return true
				}
			}
			return false
		}
		s, ok := x.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		from, _ := s.X.(*ast.Ident)
		return isCall(x, "time", "Since") || s.Sel.Name == "Sub" && len(x.Args) == 1 && (from == nil || from.Name != "fs") ||
			len(x.Args) == 0 && elapsed(s.X, took) // took.Seconds()
	}
	return false
}

func isCall(x *ast.CallExpr, pkg, name string) bool {
	s, ok := x.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && from.Name == pkg
}

// timed reports whether a condition holds under testkit.Timed() alone, or with it.
func timed(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.CallExpr:
		return isCall(x, "testkit", "Timed")
	case *ast.BinaryExpr:
		return x.Op == token.LAND && (timed(x.X) || timed(x.Y))
	case *ast.ParenExpr:
		return timed(x.X)
	}
	return false
}

// patient reports a comparison with the time after which a test gives up.
func patient(x *ast.BinaryExpr) bool {
	for _, side := range []ast.Expr{x.X, x.Y} {
		switch side := side.(type) {
		case *ast.SelectorExpr:
			if side.Sel.Name == "Patience" {
				return true
			}
		case *ast.Ident:
			if side.Name == "patience" {
				return true
			}
		}
	}
	return false
}
