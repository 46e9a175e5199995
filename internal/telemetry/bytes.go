package telemetry

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a size in a configuration: a number of bytes, or a number with a unit: 64KiB, 1MiB, 2GB.
type Bytes int64

// UnmarshalText reads a size. Units are powers of 1024 with i (KiB, MiB, GiB), of 1000 without (KB, MB, GB).
func (n *Bytes) UnmarshalText(b []byte) error {
	s := strings.TrimSpace(string(b))
	digits := strings.TrimRight(s, "KMGiB ")
	unit, ok := map[string]int64{
		"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	}[strings.TrimSpace(s[len(digits):])]
	v, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || v < 0 || v > (1<<62)/unit {
		return fmt.Errorf("found %q, expected a size such as 65536 or 100MiB (units KiB, MiB, GiB, KB, MB, GB)", s)
	}
	*n = Bytes(v * unit)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (n Bytes) MarshalText() ([]byte, error) {
	for _, u := range [...]struct {
		unit Bytes
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n > 0 && n%u.unit == 0 {
			return []byte(strconv.FormatInt(int64(n/u.unit), 10) + u.name), nil
		}
	}
	return []byte(strconv.FormatInt(int64(n), 10)), nil
}
