package condition

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names is a set of names: the listed names or, with except, all others.
type Names struct {
	list   []string // sorted, distinct
	except bool
}

// OneOf returns the set of the given names.
func OneOf(names ...string) Names { return Names{distinct(names), false} }

// NoneOf returns the set of all except the given names.
func NoneOf(names ...string) Names { return Names{distinct(names), true} }

func distinct(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// Empty reports whether the set has no members.
func (n Names) Empty() bool { return len(n.list) == 0 && !n.except }

func (n Names) everything() bool { return len(n.list) == 0 && n.except }

func (n Names) complement() Names { return Names{n.list, !n.except} }

// has searches linearly: rules list few names, and comparing shared strings compares pointers.
func (n Names) has(name string) bool { return slices.Contains(n.list, name) != n.except }

func (n Names) equal(o Names) bool { return n.except == o.except && slices.Equal(n.list, o.list) }

// within reports whether n is a subset of o.
func (n Names) within(o Names) bool {
	switch {
	case !n.except && !o.except:
		return subset(n.list, o.list)
	case !n.except && o.except:
		return !overlap(n.list, o.list)
	case n.except && o.except:
		return subset(o.list, n.list)
	}
	return false
}

// join returns the union or the intersection of two sets.
func (n Names) join(o Names, either operator) Names {
	if n.except && !o.except {
		n, o = o, n
	}
	// By De Morgan, two lists of excluded names join like listed names under the other operator.
	switch {
	case n.except == o.except && either == disjunction != n.except:
		return Names{distinct(slices.Concat(n.list, o.list)), n.except}
	case n.except == o.except:
		return Names{minus(n.list, minus(n.list, o.list)), n.except}
	// listed in n or not excluded by o: everything except what o excludes and n does not list
	case either == disjunction:
		return Names{minus(o.list, n.list), true}
	}
	return Names{minus(n.list, o.list), false} // listed in n and not in o
}

// String describes the set, to follow the name of what is tested.
func (n Names) String() string {
	if len(n.list) == 1 {
		return choose(n.except, " is not ", " is ") + quoted(n.list[0])
	}
	shown := make([]string, len(n.list))
	for i, name := range n.list {
		shown[i] = quoted(name)
	}
	return choose(n.except, " not in [", " in [") + strings.Join(shown, ", ") + "]"
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// quoted quotes a name that could otherwise be misread in a text.
func quoted(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func subset(a, b []string) bool {
	return !slices.ContainsFunc(a, func(x string) bool { return !slices.Contains(b, x) })
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}

func choose(which bool, ifTrue, ifFalse string) string { //nolint:revive // a conditional expression
	if which {
		return ifTrue
	}
	return ifFalse
}
