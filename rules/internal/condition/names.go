package condition

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Names is a set of names: those that are listed or, with except, all others.
type Names struct {
	list   []string // sorted, distinct
	except bool
}

// OneOf is the set of the given names.
func OneOf(names ...string) Names { return Names{distinct(names), false} }

// NoneOf is the set of all but the given names.
func NoneOf(names ...string) Names { return Names{distinct(names), true} }

func distinct(names []string) []string {
	out := slices.Clone(names)
	slices.Sort(out)
	return slices.Compact(out)
}

// Empty reports that the set has no member.
func (n Names) Empty() bool { return len(n.list) == 0 && !n.except }

func (n Names) everything() bool { return len(n.list) == 0 && n.except }

func (n Names) complement() Names { return Names{n.list, !n.except} }

// has searches the few names of a rule; comparing shared strings is a pointer comparison.
func (n Names) has(name string) bool { return slices.Contains(n.list, name) != n.except }

func (n Names) equal(o Names) bool { return n.except == o.except && slices.Equal(n.list, o.list) }

// within reports that every member is one of o.
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

// join returns what is in one of the sets, or in both of them.
func (n Names) join(o Names, either operator) Names {
	if n.except && !o.except {
		n, o = o, n
	}
	// By De Morgan a list of excluded names joins as the listed names do under the other operator.
	switch {
	case n.except == o.except && either == disjunction != n.except:
		return Names{distinct(slices.Concat(n.list, o.list)), n.except}
	case n.except == o.except:
		return Names{minus(n.list, minus(n.list, o.list)), n.except}
	case either == disjunction: // listed in n, or not in o: everything but what o excludes and n does not list
		return Names{minus(o.list, n.list), true}
	}
	return Names{minus(n.list, o.list), false} // listed in n and not in o
}

// String says what a name of the set does, to stand behind the word for what is tested.
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

// quoted puts a name in quotes that could be read as something else in a text.
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
