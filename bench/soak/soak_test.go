package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"signalbox/internal/cli"
)

// TestMain makes the test binary the program as well, under the name signalbox: another build of it
// would compile everything twice.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"signalbox": func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(cli.Main(ctx, "test", os.Args[1:], cli.System()))
	}})
}

// The program runs, and the least that it looks for holds in seconds too: every request that should
// be answered is, and nothing is left. What memory does takes longer to see.
func TestAFewSecondsLeaveNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program")
	}
	binary, err := exec.LookPath("signalbox")
	if err != nil {
		t.Fatal(err)
	}
	r, err := soak(t.Context(), options{binary: binary, duration: 2 * time.Second, every: 2 * time.Second, clients: 1, log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	base, last := r.notes[0], r.notes[len(r.notes)-1]
	if len(r.failures) > 0 || last.goroutines > base.goroutines || last.descriptor > base.descriptor {
		t.Errorf("failures %v (%v); goroutines %d, before %d; descriptors %d, before %d", r.failures, r.first, last.goroutines, base.goroutines, last.descriptor, base.descriptor)
	}
	for _, kind := range []string{"short", "streams", "aborted", "misbehaving backend", "context", "cached", "blocked", "reloads"} {
		if r.done[kind] == 0 {
			t.Errorf("no request of kind %s", kind)
		}
	}
}

func TestTheSlopeIsThatOfALine(t *testing.T) {
	t.Parallel()
	r := &report{}
	for i := range 9 {
		r.notes = append(r.notes, note{at: time.Duration(i) * time.Minute, rss: 40<<20 + int64(i)<<18, goroutines: 9, descriptor: 9})
	}
	r.notes[0].rss = 1 << 20 // warming up
	if got, want := r.slope(), float64(5<<18); got != want {
		t.Errorf("%v bytes, want %v", got, want)
	}
	if r.verdict() == nil {
		t.Error("growth of 1.25 MB is not told")
	}
	for i := range r.notes {
		r.notes[i].rss = 40 << 20
	}
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
	r.notes[8].goroutines = 10
	if r.verdict() == nil {
		t.Error("a goroutine that is left is not told")
	}
}
