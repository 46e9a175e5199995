package option

import (
	"testing"
	"time"
)

func TestDurationsCarryAUnit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"5s": 5 * time.Second, "1h30m": 90 * time.Minute, "0": 0, "300ms": 300 * time.Millisecond,
		"30d": 720 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0,
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err != nil || time.Duration(d) != want {
			t.Errorf("%q is %v, %v", in, d, err)
		}
	}
	for _, in := range []string{
		"5", "1.5", "", "five", "5 s", ".nan", "d", "-1d", "1.5d", "1d1d", "1d-1h", "1d24h", "12h1d", "99999999d", "1d+1h",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %v", in, d)
		}
	}
}

func TestSizesMayCarryAUnit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Bytes{"65536": 65536, "64MiB": 64 << 20, "1 KiB": 1 << 10, "1 GiB": 1 << 30, "2MB": 2e6, "2GB": 2e9, "7B": 7, "0": 0} {
		var n Bytes
		if err := n.UnmarshalText([]byte(in)); err != nil || n != want {
			t.Errorf("%q is %d, %v", in, n, err)
		}
		b, err := want.MarshalText()
		if err != nil || n.UnmarshalText(b) != nil || n != want {
			t.Errorf("%d became %s and then %d", want, b, n)
		}
	}
	for _, in := range []string{"", "64M", "-1", "1.5MiB", "9999999999GiB", "99999999999GiB", "MiB", "10 miles", "5 5MiB"} {
		var n Bytes
		if err := n.UnmarshalText([]byte(in)); err == nil {
			t.Errorf("%q is taken for %d", in, n)
		}
	}
}
