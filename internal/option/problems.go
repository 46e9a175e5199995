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

// Problems collects the problems of a section, one "field: problem" per line. The zero value is
// ready for use. It belongs to one goroutine.
type Problems struct{ list []error }

// Addf adds a problem of a field. The message is formatted as by fmt.Sprintf.
func (p *Problems) Addf(field, format string, args ...any) {
	p.list = append(p.list, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// Join adds the problems of a subsection; nil adds none.
func (p *Problems) Join(section string, err error) {
	if err != nil {
		p.list = append(p.list, fmt.Errorf("%s: %w", section, err))
	}
}

// Name checks a word that is used in headers, paths and metric labels: 1 to 200 bytes of visible
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

// Between adds a problem if the value of a field is outside the given range, limits included.
func Between[T cmp.Ordered](p *Problems, field string, value, least, most T) {
	if inside := value >= least && value <= most; !inside { // NaN is outside
		p.Addf(field, "%v is not between %v and %v", value, least, most)
	}
}

// AtLeast adds a problem if the value of a field is less than least.
func AtLeast[T cmp.Ordered](p *Problems, field string, value, least T) {
	if enough := value >= least; !enough { // NaN is not enough
		p.Addf(field, "%v is less than %v", value, least)
	}
}

// NotNegative adds a problem if the value of a field is less than 0.
func NotNegative[T ~int | ~int64](p *Problems, field string, value T) {
	if value < 0 {
		p.Addf(field, "%v is negative", value)
	}
}

// Err returns all problems joined, nil if there are none.
func (p *Problems) Err() error { return errors.Join(p.list...) }

// VisibleASCII reports whether s contains only visible ASCII characters, which a header can carry
// and no parser treats as separators. It is true for the empty string.
func VisibleASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Port returns an error for a URL with an impossible port, one above 65535. It returns nil for a
// URL without a port.
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

// Loopback reports whether a host is only reachable from this machine: localhost, or a loopback
// address.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// Unique finds duplicate names. It belongs to one goroutine; create it with Unique{}.
type Unique map[string]bool

// Check records name, and adds a problem for field if name was recorded before. Empty names are
// ignored.
func (u Unique) Check(p *Problems, field, name string) {
	if u[name] && name != "" {
		p.Addf(field, "%q is used twice", name)
	}
	u[name] = true
}
