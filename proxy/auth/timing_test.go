package auth

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strings"
	"testing"
)

// S1: how long the search for a key takes must not depend on the key. Every stored hash is
// compared, in constant time, and nothing ends the loop early. On a busy machine this cannot be
// measured, so the test examines the source code.
func TestS1EveryKeyIsComparedInConstantTime(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "auth.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	loops := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if compared, ok := n.(*ast.BinaryExpr); ok && (compared.Op == token.EQL || compared.Op == token.NEQ) && (mentions(compared.X, "hash", "sum") || mentions(compared.Y, "hash", "sum")) {
			if call, ok := compared.X.(*ast.CallExpr); !ok || !calls(call, "ConstantTimeCompare") {
				t.Errorf("a hash is compared with %s", compared.Op)
			}
		}
		if call, ok := n.(*ast.CallExpr); ok && (calls(call, "Equal") || calls(call, "Compare")) && mentions(call, "hash", "sum") {
			t.Error("a hash is compared by Equal or Compare")
		}
		loop, ok := n.(*ast.RangeStmt)
		if !ok || !mentions(loop.Body, "ConstantTimeCompare") {
			return true
		}
		loops++
		ast.Inspect(loop.Body, func(n ast.Node) bool {
			switch n.(type) {
			case *ast.BranchStmt, *ast.ReturnStmt:
				t.Error("the loop over the keys can end early")
			}
			return true
		})
		return true
	})
	if loops != 1 {
		t.Errorf("%d loops over the keys compare in constant time, want the one of Identify", loops)
	}
}

// S1: an almost correct key is refused with the same words as a completely wrong one, or none.
func TestS1KeysThatAreWrongAreRefusedAlike(t *testing.T) {
	t.Parallel()
	const key = "sk-a-key-of-some-length"
	keys, err := New(Options{Mode: ModeKeys, Keys: []KeyOptions{{Name: "a", SHA256: hashOf(key), Tenant: "t", Role: "r"}}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(shown string) error {
		_, err := keys.Identify(context.Background(), http.Header{"Authorization": {"Bearer " + shown}})
		return err
	}
	if err := ask(key); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"x", key[:len(key)-1], key + "x", strings.ToUpper(key), "sk-nothing-like-any-of-them", hashOf(key), ""} {
		if err := ask(wrong); !errors.Is(err, ErrBadKey) || err.Error() != ErrBadKey.Error() {
			t.Errorf("%q is refused with %v", wrong, err)
		}
	}
}

// mentions reports whether one of the names occurs in n.
func mentions(n ast.Node, names ...string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		for _, name := range names {
			found = found || ok && id.Name == name
		}
		return !found
	})
	return found
}

// calls reports whether the called function has the name.
func calls(c *ast.CallExpr, name string) bool {
	s, ok := c.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name
}
