package hostile

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mode is one way to respond.
type mode struct {
	name   string
	params url.Values
	play   play  // nil for modes that exist only in HTTP/2
	play2  play2 // nil for modes that exist only in HTTP/1.1
}

// play responds to the request of an exchange and reports whether its connection may be reused.
type play func(x *exchange) (keep bool)

// parse reads NAME?key=value&key=value.
func parse(s string) (mode, error) {
	name, query, _ := strings.Cut(s, "?")
	p, p2 := catalogue()[name], catalogue2()[name]
	if p == nil && p2 == nil {
		return mode{}, fmt.Errorf("hostile: there is no mode %q", name)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return mode{}, fmt.Errorf("hostile: mode %q: %w", s, err)
	}
	return mode{name, values, p, p2}, nil
}

// Modes lists the names of all modes, sorted.
func Modes() []string { return slices.Sorted(maps.Keys(catalogue())) }

// Connections lists the modes that act on connections before a request is read.
func Connections() []string {
	return []string{
		"refuse", "blackhole", "rst-on-accept", "close-on-accept", "accept-silent", "slow-accept",
		"tls-expired", "tls-wrong-name", "tls-mtls-required", "tls-stall",
	}
}

// num reads a numeric parameter of the mode.
func (m mode) num(key string, def int) int {
	n, err := strconv.Atoi(cmp.Or(m.params.Get(key), strconv.Itoa(def)))
	if err != nil {
		panic(fmt.Sprintf("hostile: %s: %s is no number", m.name, key))
	}
	return n
}

// size reads a parameter in bytes, which may end in K, M or G.
func (m mode) size(key string, def int) int {
	s := m.params.Get(key)
	if s == "" {
		return def
	}
	unit := 1
	switch s[len(s)-1] {
	case 'K':
		unit = 1 << 10
	case 'M':
		unit = 1 << 20
	case 'G':
		unit = 1 << 30
	}
	n, err := strconv.Atoi(strings.TrimRight(s, "KMG"))
	if err != nil {
		panic(fmt.Sprintf("hostile: %s: %s is no size", m.name, key))
	}
	return n * unit
}

func (m mode) wait(key string, def time.Duration) time.Duration {
	d, err := time.ParseDuration(cmp.Or(m.params.Get(key), def.String()))
	if err != nil {
		panic(fmt.Sprintf("hostile: %s: %s is no duration", m.name, key))
	}
	return d
}

// text reads a text parameter of the mode.
func (m mode) text(key, def string) string { return cmp.Or(m.params.Get(key), def) }

// share reads a probability of the mode.
func (m mode) share(key string, def float64) float64 {
	f, err := strconv.ParseFloat(cmp.Or(m.params.Get(key), strconv.FormatFloat(def, 'g', -1, 64)), 64)
	if err != nil {
		panic(fmt.Sprintf("hostile: %s: %s is no number", m.name, key))
	}
	return f
}
