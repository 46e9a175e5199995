//go:build unix

package outcomes

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox/internal/testkit"
)

// heirs are two stores of one file, of which the first has it, and of the second the clock, which is
// behind every outcome so far. Outcomes are a second apart.
type heirs struct {
	path          string
	first, second *Store
	now           time.Time
}

func newHeirs(t *testing.T) *heirs {
	t.Helper()
	h := &heirs{path: filepath.Join(t.TempDir(), "outcomes.jsonl"), now: time.Now()}
	clock := func() time.Time {
		h.now = h.now.Add(time.Second)
		return h.now
	}
	open := func() *Store {
		s, _, err := Open(Options{Path: h.path, Limit: 3, Tenants: 2, Waiting: 2, Now: clock})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if h.first, h.second = open(), open(); !h.second.Contested() {
		t.Skip("two processes are told apart by file locks, which this system lacks")
	}
	return h
}

// add adds outcomes with ids.
func (*heirs) add(t *testing.T, s *Store, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := s.Add(Outcome{Tenant: "a", ID: id, Model: "m", Weight: 1}, []float32{1, 0}); err != nil {
			t.Fatal(err)
		}
	}
}

// kill ends the first as a process that is killed ends: the file stays as it is.
func (h *heirs) kill(t *testing.T) {
	t.Helper()
	if err := errors.Join(h.first.lock.Close(), h.first.file.Close()); err != nil {
		t.Fatal(err)
	}
	h.now = h.now.Add(2 * remakeEvery)
}

// ids are those of a tenant's outcomes, the oldest first.
func ids(t *testing.T, s *Store, tenant string) string {
	t.Helper()
	var list []string
	for _, x := range s.judged(tenant) {
		list = append(list, x.ID)
	}
	return strings.Join(list, " ")
}

func TestAFileIsTakenOverInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	h := newHeirs(t)
	h.add(t, h.first, "1", "2", "3")
	h.add(t, h.second, "4", "5")
	h.add(t, h.first, "6", "7")
	h.kill(t)
	h.add(t, h.second, "8") // with the file it has 1 2 3 6 7, of which the first keeps 3 6 7
	if got := ids(t, h.second, "a"); h.second.Contested() || got != "6 7 8" {
		t.Errorf("contested %v, outcomes %s, want the newest", h.second.Contested(), got)
	}
	if err := h.second.Close(); err != nil {
		t.Fatal(err)
	}
	again, _, err := Open(Options{Path: h.path, Limit: 3, Tenants: 2, Waiting: 2, ReadOnly: true})
	if err != nil || ids(t, again, "a") != "6 7 8" {
		t.Errorf("the file has %s, %v", ids(t, again, "a"), err)
	}
}

func TestWhatWasJudgedLaterCountsWhenAFileIsTakenOver(t *testing.T) {
	t.Parallel()
	h := newHeirs(t)
	h.add(t, h.first, "1")
	h.second.Decided(Outcome{Tenant: "a", ID: "1", Model: "m"}, []float32{1, 0})
	h.add(t, h.first, "2")
	h.add(t, h.second, "2")
	if _, err := h.second.Judge("a", "2", 1, 1, "", ""); err != nil {
		t.Fatal(err)
	}
	h.kill(t)
	h.add(t, h.second, "3")
	if got := ids(t, h.second, "a"); got != "1 2 3" || h.second.known("a", "2").Score != 1 {
		t.Errorf("outcomes %s, the second with score %v", got, h.second.known("a", "2").Score)
	}
}

// Outcomes without an id that were imported have times of whole seconds.
func TestOutcomesOfOneTimeWithoutAnIDAreNotOne(t *testing.T) {
	t.Parallel()
	h := newHeirs(t)
	at := h.now.Truncate(time.Second)
	for _, score := range []float64{0.25, 0.75} {
		x := Outcome{Tenant: "a", Model: "m", Score: score, Weight: 1, Time: at}
		if err := h.first.Add(x, []float32{1, 0}); err != nil {
			t.Fatal(err)
		}
		if score < 0.5 { // the second knows one of them by a replica
			if err := h.second.Add(x, []float32{1, 0}); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.kill(t)
	h.add(t, h.second, "1")
	var scores []float64
	for _, x := range h.second.judged("a") {
		if x.ID == "" {
			scores = append(scores, x.Score)
		}
	}
	if !slices.Equal(scores, []float64{0.25, 0.75}) || h.second.Len("a") != 3 {
		t.Errorf("scores %v, %d outcomes", scores, h.second.Len("a"))
	}
}

// Others are served while a large file is read, and what they bring meanwhile is not lost.
func TestOthersGoOnWhileAFileIsTakenOver(t *testing.T) {
	t.Parallel()
	h := newHeirs(t)
	h.add(t, h.second, "1")
	h.kill(t)
	if err := errors.Join(os.Remove(h.path), syscall.Mkfifo(h.path, 0o600)); err != nil {
		t.Skipf("a file that is read without an end needs named pipes: %v", err)
	}
	taken := make(chan error, 1)
	go func() { // reads the file, which has no end yet
		taken <- h.second.Add(Outcome{Tenant: "a", ID: "2", Model: "m", Weight: 1, Time: h.now}, []float32{1, 0})
	}()
	pipe, err := os.OpenFile(h.path, os.O_WRONLY, 0) // waits for the reader
	if err != nil {
		t.Fatal(err)
	}
	went := make(chan struct{})
	go func() {
		defer close(went)
		h.second.Predict("a", []float32{1, 0}, []Prediction{{Model: "m"}})
		h.second.Decided(Outcome{Tenant: "b", ID: "3", Model: "m"}, []float32{1, 0})
	}()
	select {
	case <-went:
	case <-time.After(testkit.Patience):
		t.Fatal("a prediction waits for the file")
	}
	stale := `{"time":%q,"tenant":"a","id":"0","model":"m","weight":0.5,"vector":"fwA="}`
	if err := h.second.Learn("a", fmt.Appendf(nil, stale, h.now.Format(time.RFC3339))); err != nil {
		t.Fatal(err)
	}
	line := `{"time":%q,"tenant":%q,"id":"0","model":"m","weight":1,"vector":"fwA="}` + "\n"
	for _, tenant := range []string{"a", "b"} {
		if _, err := fmt.Fprintf(pipe, line, h.now.Add(-time.Hour).Format(time.RFC3339), tenant); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(h.second.Forget("b"), pipe.Close(), <-taken); err != nil {
		t.Fatal(err)
	}
	if w := h.second.known("a", "0").Weight; w != 1 {
		t.Errorf("what a replica told meanwhile counts with weight %v, though the file has better", w)
	}
	if got := ids(t, h.second, "a"); got != "0 1 2" || h.second.Contested() || h.second.Len("b") != 0 {
		t.Errorf("outcomes %s, of a tenant that was forgotten %d, contested %v", got, h.second.Len("b"), h.second.Contested())
	}
}
