package option

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Problems collects what is wrong with a section, one "field: problem" a line. The zero value is
// ready for use. It belongs to one goroutine.
type Problems struct{ list []error }

// Addf notes a problem of a field. The message is formatted as by fmt.Sprintf.
func (p *Problems) Addf(field, format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// Join notes what the check of a section below found; nil is nothing.
func (p *Problems) Join(section string, err error) {
	if err != nil {
		p.list = append(p.list, fmt.Errorf("%s: %w", section, err))
	}
}

// Name checks a word that ends up in headers, paths and metric labels: 1 to 200 bytes of visible
// ASCII.
func (p *Problems) Name(field, name string) {
	switch {
	case name == "":
		p.Addf(field, "a name is required")
	case len(name) > 200:
		p.Addf(field, "the name is longer than 200 bytes")
	case !VisibleASCII(name):
		p.Addf(field, "%q may hold visible ASCII characters only", name)
	}
}

// Between notes a problem of a field whose value is not between two, both of them included.
func Between[T cmp.Ordered](p *Problems, field string, value, least, most T) {
	if inside := value >= least && value <= most; !inside { // as is what is no number
		p.Addf(field, "%v is not between %v and %v", value, least, most)
	}
}

// AtLeast notes a problem of a field whose value is less than another.
func AtLeast[T cmp.Ordered](p *Problems, field string, value, least T) {
	if enough := value >= least; !enough { // as is what is no number
		p.Addf(field, "%v is less than %v", value, least)
	}
}

// NotNegative notes a problem of a field whose value is less than 0.
func NotNegative[T ~int | ~int64](p *Problems, field string, value T) {
	if value < 0 {
		p.Addf(field, "%v is negative", value)
	}
}

// Err returns all problems joined, nil when there are none.
func (p *Problems) Err() error { return errors.Join(p.list...) }

// VisibleASCII reports whether s holds nothing but visible ASCII characters, which a header can
// carry and nothing reads as a separator. It is true for the empty string.
func VisibleASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Port returns an error for a URL whose port no connection can have: one above 65535. A URL without
// a port has none to complain of.
func Port(u *url.URL) error {
	port := u.Port()
	if port == "" {
		return nil
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("port %s is not between 1 and 65535", port)
	}
	return nil
}

// Loopback reports whether a host is this machine and no other can reach it: localhost, or an
// address of loopback.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Unique finds names that occur twice. It belongs to one goroutine; make it with Unique{}.
type Unique map[string]bool

// Check notes name, and a problem of field when it was noted before. An empty name is no name.
func (u Unique) Check(p *Problems, field, name string) {
	if u[name] && name != "" {
		p.Addf(field, "%q is used twice", name)
	}
	u[name] = true
}
