//go:build cgo

package gpu

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Every run reads all weights of a graph, which for short texts is a large part of its cost: 10 MB
// for 16 tokens in the embedded bundle. With pages of 4 KiB the processor translates 2,600
// addresses for them, under a hypervisor in two steps each. With huge pages such a run takes a
// twelfth less (2.58 instead of 2.81 ms: the 5th percentile of a process, medians of ten processes
// of each kind in turn, 2 vCPU of an AMD EPYC), and one of 128 tokens the same. malloc requests
// huge pages only if the environment says so before the program starts (glibc.malloc.hugetlb), so
// this package asks the kernel afterwards.

const (
	hugePage = 2 << 20 // bytes, on amd64, and on arm64 with pages of 4 KiB
	// tenths of a huge page's pages that must be in use, because the rest is newly allocated from
	// the system.
	mostlyThere = 9
)

// span is a range of addresses.
type span struct{ from, to uintptr }

// anonymous lists the memory of this process that malloc may have allocated, in order of addresses:
// the C heap, and writable private mappings without a file or name, except Go's heap.
func anonymous() []span {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	heap := region(uintptr(unsafe.Pointer(new([64]byte)))) //nolint:gosec // the address alone
	var out []span
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// FROM-TO rw-p OFFSET DEVICE INODE, and optionally a name (proc_pid_maps(5)).
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 || fields[1] != "rw-p" || fields[4] != "0" {
			continue
		}
		ofC := len(fields) == 6 && fields[5] == "[heap]"
		if len(fields) > 5 && !ofC {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		a, errA := strconv.ParseUint(from, 16, 64)
		b, errB := strconv.ParseUint(to, 16, 64)
		if errA == nil && errB == nil && (ofC || region(uintptr(a)) != heap) {
			out = append(out, span{uintptr(a), uintptr(b)})
		}
	}
	return out
}

// region returns the terabyte that contains an address. Go's heap is in low ones, the kernel's
// mappings for malloc in high ones.
func region(address uintptr) uintptr { return address >> 40 }

// without returns the parts of the spans in list that no span in old covers; both must be in order
// and without overlaps.
func without(list, old []span) []span {
	var out []span
	for _, s := range list {
		for _, o := range old {
			if o.to <= s.from || o.from >= s.to {
				continue
			}
			if o.from > s.from {
				out = append(out, span{s.from, o.from})
			}
			s.from = min(o.to, s.to)
		}
		if s.from < s.to {
			out = append(out, s)
		}
	}
	return out
}

// onHugePages asks the kernel to move memory allocated since old was listed to huge pages, as far
// as it is in use, and returns the number of bytes moved. It has no effect if the kernel does not
// support this (before Linux 6.1), has it disabled, or has no free huge pages.
func onHugePages(old []span) (bytes int64) {
	if never() {
		return 0
	}
	for _, s := range without(anonymous(), old) {
		for at := (s.from + hugePage - 1) &^ (hugePage - 1); at+hugePage <= s.to; at += hugePage {
			if inUse(at) && advise(at, hugePage, unix.MADV_COLLAPSE) == nil {
				bytes += hugePage
			}
		}
	}
	return bytes
}

// never reports whether huge pages are disabled on this system.
func never() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err != nil || strings.Contains(string(b), "[never]")
}

// inUse reports whether most pages of the huge page at an address are present.
func inUse(at uintptr) bool {
	there := make([]byte, hugePage/os.Getpagesize())
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, at, hugePage, uintptr(unsafe.Pointer(&there[0]))); errno != 0 { //nolint:gosec // the kernel writes it
		return false
	}
	n := 0
	for _, b := range there {
		n += int(b & 1)
	}
	return 10*n >= mostlyThere*len(there)
}

func advise(at, length uintptr, advice int) error {
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, at, length, uintptr(advice)); errno != 0 {
		return errno
	}
	return nil
}
