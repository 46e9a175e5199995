//go:build cgo

package gpu

import (
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMemoryThatWasThereBeforeIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ list, old, want []span }{
		"nothing before":       {[]span{{10, 20}}, nil, []span{{10, 20}}},
		"the same":             {[]span{{10, 20}}, []span{{10, 20}}, nil},
		"grown at both ends":   {[]span{{5, 30}}, []span{{10, 20}}, []span{{5, 10}, {20, 30}}},
		"two became one":       {[]span{{10, 40}}, []span{{10, 20}, {30, 40}}, []span{{20, 30}}},
		"shrunk":               {[]span{{12, 15}}, []span{{10, 20}}, nil},
		"beside":               {[]span{{10, 20}, {40, 50}}, []span{{20, 40}}, []span{{10, 20}, {40, 50}}},
		"over a part of two":   {[]span{{10, 20}, {30, 40}}, []span{{15, 35}}, []span{{10, 15}, {35, 40}}},
		"gone, others are new": {[]span{{50, 60}}, []span{{10, 20}}, []span{{50, 60}}},
	} {
		if got := without(c.list, c.old); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Only what is in use goes onto huge pages: the rest would be taken from the system for nothing.
func TestMemoryInUseGoesOntoHugePages(t *testing.T) {
	const size = 16 * hugePage
	before := anonymous()
	mapped, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(mapped); err != nil {
			t.Error(err)
		}
	})
	first := int(-uintptr(unsafe.Pointer(&mapped[0])) % hugePage) // where a huge page can begin
	used := mapped[first : first+4*hugePage]
	for i := 0; i < len(used); i += os.Getpagesize() {
		used[i] = byte(i>>12) | 1
	}
	able := !never() && advise(uintptr(unsafe.Pointer(&used[0])), hugePage, unix.MADV_COLLAPSE) == nil
	switch got := onHugePages(before); {
	case able && (got < 3*hugePage || got > 5*hugePage):
		t.Errorf("%d bytes are on huge pages, want about %d", got, len(used))
	case !able && got != 0:
		t.Errorf("%d bytes are on huge pages, which this machine has turned off or does not know", got)
	}
	for i := 0; i < len(used); i += os.Getpagesize() {
		if used[i] != byte(i>>12)|1 {
			t.Fatalf("byte %d has changed", i)
		}
	}
	if at := uintptr(unsafe.Pointer(&mapped[first+8*hugePage])); inUse(at) {
		t.Error("memory that was never touched is in use now")
	}
	if got := anonymous(); slices.Equal(got, before) {
		t.Error("what was mapped is not among the memory of malloc")
	}
}
