// Stages counts the references between the files of a package that run against its order: those
// to something that an earlier file declares. The files are ordered so that there are as few as a
// local search finds, so a package that can be read from top to bottom has none.
//
//	GOWORK=off go run ./stages [-v] [folder]    (from tools/; default ../proxy)
package main

import (
	"flag"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// uses tells, for a file, what it names of each other file.
type uses map[string]map[string]map[string]bool

func main() {
	verbose := flag.Bool("v", false, "print the order and what runs against it")
	flag.Parse()
	dir := "../proxy"
	if flag.NArg() > 0 {
		dir = flag.Arg(0)
	}
	u, err := read(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	order := arrange(u)
	all, against := 0, 0
	for i, from := range order {
		for j, to := range order {
			if len(u[from][to]) == 0 {
				continue
			}
			all++
			if j > i {
				continue
			}
			against++
			if *verbose {
				fmt.Println(from, "->", to+":", strings.Join(slices.Sorted(maps.Keys(u[from][to])), " "))
			}
		}
	}
	if *verbose {
		fmt.Println("order:", strings.Join(order, " "))
	}
	fmt.Printf("%d files, %d references between files, %d against the order\n",
		len(order), all, against)
}

// read type-checks the package of a folder, without its tests.
func read(dir string) (uses, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps,
		Dir: dir,
	}, ".")
	if err != nil {
		return nil, err
	}
	p := pkgs[0]
	if len(p.Errors) > 0 {
		return nil, p.Errors[0]
	}
	file := func(o types.Object) string {
		return filepath.Base(p.Fset.Position(o.Pos()).Filename)
	}
	u := uses{}
	for _, f := range p.Syntax {
		u[filepath.Base(p.Fset.Position(f.Pos()).Filename)] = map[string]map[string]bool{}
	}
	for id, o := range p.TypesInfo.Uses {
		if o.Pkg() != p.Types || o.Parent() == nil && !declared(o) {
			continue
		}
		from, to := filepath.Base(p.Fset.Position(id.Pos()).Filename), file(o)
		if from == to {
			continue
		}
		if u[from][to] == nil {
			u[from][to] = map[string]bool{}
		}
		u[from][to][o.Name()] = true
	}
	return u, nil
}

// declared reports whether o is a field or a method.
func declared(o types.Object) bool {
	switch o := o.(type) {
	case *types.Var:
		return o.IsField()
	case *types.Func:
		return true
	}
	return false
}

// arrange moves each file to the place that suits it best until no move helps.
func arrange(u uses) []string {
	order := slices.Sorted(maps.Keys(u))
	for better := true; better; {
		better = false
		for _, f := range slices.Clone(order) {
			at := slices.Index(order, f)
			rest := slices.Delete(slices.Clone(order), at, at+1)
			best, gain, sum := at, 0, 0
			cost := make([]int, len(rest)+1) // of f at each place, less that at the first
			for i, g := range rest {
				if len(u[f][g]) > 0 { // g comes before f from here on
					sum++
				}
				if len(u[g][f]) > 0 {
					sum--
				}
				cost[i+1] = sum
			}
			for i, c := range cost {
				if d := cost[at] - c; d > gain {
					best, gain = i, d
				}
			}
			if best != at {
				order, better = slices.Insert(rest, best, f), true
			}
		}
	}
	return order
}
