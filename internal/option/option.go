// Package option holds types shared by the sections of a configuration: values with a unit, and a
// list of problems that names the field of each.
//
// It is independent of the sections and reads no file. Its types are plain values; a Problems
// belongs to one goroutine.
package option

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span in a configuration, with a unit: 300ms, 5s, 1h30m.
type Duration time.Duration

// String returns the span as it is written in a configuration.
func (d Duration) String() string { return time.Duration(d).String() }

// UnmarshalText reads a span with a unit: the units of time.ParseDuration, optionally after days of
// 24 hours, as in 30d or 1d12h. A bare number is an error, because its unit is ambiguous; only 0
// needs none.
func (d *Duration) UnmarshalText(b []byte) error {
	s := string(b)
	v, ok := parseDuration(s)
	if !ok {
		if _, numErr := strconv.ParseFloat(s, 64); numErr == nil {
			return fmt.Errorf("found %s without a unit, expected a duration such as %ss", s, s)
		}
		return fmt.Errorf("found %q, expected a duration such as 300ms, 5s, 1h30m or 30d", s)
	}
	*d = Duration(v)
	return nil
}

const (
	day      = 24 * time.Hour
	mostDays = 100_000 // fewer than time.Duration can hold
)

func parseDuration(s string) (v time.Duration, ok bool) {
	digits, rest, whole := strings.Cut(s, "d")
	if !whole {
		v, err := time.ParseDuration(s)
		return v, err == nil
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || n > mostDays {
		return 0, false
	}
	if rest == "" {
		return time.Duration(n) * day, true
	}
	v, err = time.ParseDuration(rest)
	if err != nil || v < 0 || v >= day || rest[0] == '+' {
		return 0, false
	}
	return time.Duration(n)*day + v, true
}

// MarshalText is the inverse of UnmarshalText.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Bytes is a size in a configuration: a number of bytes, or a number with a unit: 64KiB, 1MiB, 2GB.
type Bytes int64

// UnmarshalText reads a size. Units are powers of 1024 with i (KiB, MiB, GiB), of 1000 without (KB,
// MB, GB).
func (n *Bytes) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	digits := strings.TrimRight(s, "KMGTiB ")
	var unit int64
	switch strings.TrimSpace(s[len(digits):]) {
	case "", "B":
		unit = 1
	case "KiB":
		unit = 1 << 10
	case "MiB":
		unit = 1 << 20
	case "GiB":
		unit = 1 << 30
	case "KB":
		unit = 1e3
	case "MB":
		unit = 1e6
	case "GB":
		unit = 1e9
	default:
		return fmt.Errorf("found %q, expected a size such as 65536 or 64MiB (units KiB, MiB, GiB, KB, MB, GB)", s)
	}
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || v < 0 || v > (1<<62)/unit {
		return fmt.Errorf("found %q, expected a size such as 65536 or 64MiB", s)
	}
	*n = Bytes(v * unit)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (n Bytes) MarshalText() ([]byte, error) {
	for _, u := range []struct {
		unit Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.unit == 0 {
			return []byte(strconv.FormatInt(int64(n/u.unit), 10) + u.name), nil
		}
	}
	return []byte(strconv.FormatInt(int64(n), 10)), nil
}
