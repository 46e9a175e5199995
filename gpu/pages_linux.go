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

// The weights of a graph are read whole in every run, and for short texts that is much of what a
// run costs: 10 MB for 16 tokens in the embedded bundle. On pages of 4 KiB the processor looks up
// 2,600 addresses for them, under a hypervisor in two steps each. On huge pages such a run takes a
// twelfth less (2.58 instead of 2.81 ms: the 5th percentile of a process, medians of ten processes
// of each kind in turn, 2 vCPU of an AMD EPYC), and one of 128 tokens the same. malloc asks for
// huge pages only when the environment says so before the program starts (glibc.malloc.hugetlb), so
// the kernel is asked afterwards.

const (
	hugePage    = 2 << 20 // bytes, on amd64, and on arm64 with pages of 4 KiB
	mostlyThere = 9       // tenths of a huge page's pages that must be in use: what is not would be taken from the system
)

// span is a range of addresses.
type span struct{ from, to uintptr }

// anonymous lists the memory of this process that malloc may have given, in order of addresses: the
// heap of C, and what is no file's, may be written to and has no name, but for Go's heap.
func anonymous() []span {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	heap := region(uintptr(unsafe.Pointer(new([64]byte)))) //nolint:gosec // the address alone
	var out []span
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// FROM-TO rw-p OFFSET DEVICE INODE, and a name where there is one (proc_pid_maps(5)).
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

// region is the terabyte that an address is in. Go puts its heap into low ones, the kernel what is
// mapped for malloc into high ones.
func region(address uintptr) uintptr { return address >> 40 }

// without are the parts of the spans in list that no span in old covers; both are in order and
// without overlaps.
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

// onHugePages asks the kernel to put memory that was taken since old was listed onto huge pages, as
// far as it is in use, and returns how many bytes it did so for. Where the kernel does not know how
// (before Linux 6.1), is told never to, or has no room, nothing changes.
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

// never reports whether the operator has turned huge pages off.
func never() bool {
	b, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	return err != nil || strings.Contains(string(b), "[never]")
}

// inUse reports whether most pages of the huge page at an address are there.
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
