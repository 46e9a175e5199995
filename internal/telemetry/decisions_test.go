package telemetry

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"signalbox/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// textLine is a line that says what it was given.
type textLine string

func (l textLine) AppendLine(b []byte) ([]byte, error) { return append(b, l...), nil }
func (l textLine) Held() int64                         { return int64(len(l)) }

// badLine cannot be encoded, and leaves half of it behind.
type badLine struct{}

func (badLine) AppendLine(b []byte) ([]byte, error) {
	return append(b, "half"...), errors.New("not finite")
}
func (badLine) Held() int64 { return 1 }

// gateLine waits until it may be written, and says when it is asked.
type gateLine struct{ asked, open chan struct{} }

func (g gateLine) AppendLine(b []byte) ([]byte, error) {
	close(g.asked)
	<-g.open
	return append(b, "gate"...), nil
}
func (gateLine) Held() int64 { return 1 }

// bench is a decision log with its counts.
type bench struct {
	*Decisions
	tb   testing.TB
	mu   sync.Mutex
	seen map[string]int64
}

func (b *bench) add(result string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[result] += n
}

// counts closes the log and returns what it counted.
func (b *bench) counts() map[string]int64 {
	b.tb.Helper()
	if err := b.shutdown(context.Background()); err != nil {
		b.tb.Fatal(err)
	}
	return b.seen
}

func openBench(tb testing.TB, o DecisionOptions, log io.Writer) *bench {
	tb.Helper()
	m := Discard()
	d, err := openDecisions(o, false, slog.New(slog.NewTextHandler(log, nil)), m.Metrics)
	if err != nil {
		tb.Fatal(err)
	}
	b := &bench{Decisions: d, tb: tb, seen: map[string]int64{}}
	d.count = b.add // before the first line
	tb.Cleanup(func() {
		if err := d.shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return b
}

func decisionFile(tb testing.TB) DecisionOptions {
	tb.Helper()
	o := DefaultDecisionOptions()
	o.File = filepath.Join(tb.TempDir(), "decisions.jsonl")
	return o
}

func read(tb testing.TB, name string) string {
	tb.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func TestASecondWriterOfADecisionLogIsTold(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	o.MaxBytes = minDecisionBytes
	var one, two strings.Builder
	first, second := openBench(t, o, &one), openBench(t, o, &two)
	for range 3 { // its own new files are nobody else's
		first.Offer(textLine(strings.Repeat("x", minDecisionBytes)))
	}
	first.counts()
	second.counts()
	if one.Len() > 0 {
		t.Errorf("the first: %s", one.String())
	}
	if n := strings.Count(two.String(), "another process writes this decision log too"); n != 1 {
		t.Errorf("the second is told %d times: %s", n, two.String())
	}
	var again strings.Builder
	openBench(t, o, &again).counts()
	if again.Len() > 0 {
		t.Errorf("after the end of both: %s", again.String())
	}
}

func TestDecisionsWriteEveryLineBeforeTheyClose(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	b := openBench(t, o, io.Discard)
	var want strings.Builder
	for i := range 500 {
		line := "line " + strconv.Itoa(i)
		want.WriteString(line + "\n")
		if !b.Offer(textLine(line)) {
			t.Fatalf("line %d was dropped", i)
		}
	}
	if diff := cmp.Diff(map[string]int64{"written": 500}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.String(), read(t, o.File)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
	if b.Offer(textLine("late")) {
		t.Error("a closed log took a line")
	}
}

func TestDecisionsAreReadableByTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	if err := os.WriteFile(o.File, []byte("older\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	openBench(t, o, io.Discard).counts()
	info, err := os.Stat(o.File)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestDecisionsDropWhatTheQueueCannotHold(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	b := openBench(t, o, io.Discard)
	g := gateLine{make(chan struct{}), make(chan struct{})}
	b.Offer(g)
	<-g.asked // the writer is busy, and the queue is empty
	for range decisionQueue {
		if !b.Offer(textLine("x")) {
			t.Fatal("a line was dropped although the queue had room")
		}
	}
	for range 7 {
		if b.Offer(textLine("x")) {
			t.Fatal("a full queue took a line")
		}
	}
	close(g.open)
	if diff := cmp.Diff(map[string]int64{"written": decisionQueue + 1, "dropped": 7}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestDecisionsDropWhatWouldHoldTooMuchMemory(t *testing.T) {
	t.Parallel()
	b := openBench(t, decisionFile(t), io.Discard)
	g := gateLine{make(chan struct{}), make(chan struct{})}
	b.Offer(g)
	<-g.asked
	big := textLine(strings.Repeat("x", decisionHeld/2))
	if !b.Offer(big) || b.Offer(big) {
		t.Error("the log should hold one line of half its memory, not two beside another")
	}
	close(g.open)
	if diff := cmp.Diff(map[string]int64{"written": 2, "dropped": 1}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if held := b.held.Load(); held != 0 {
		t.Errorf("%d bytes still count as held", held)
	}
}

func TestALineThatCannotBeEncodedLeavesNothing(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	b := openBench(t, o, io.Discard)
	b.Offer(textLine("before"))
	b.Offer(badLine{})
	b.Offer(textLine("after"))
	if diff := cmp.Diff(map[string]int64{"written": 2, "failed": 1}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("before\nafter\n", read(t, o.File)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestDecisionsAreRenamedBeforeTheyGrowTooLong(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	o.MaxBytes, o.Backups = minDecisionBytes, 2
	b := openBench(t, o, io.Discard)
	line := func(i int) string { return strconv.Itoa(i) + strings.Repeat(".", 40<<10) }
	for i := range 5 {
		done := gateLine{make(chan struct{}), make(chan struct{})}
		b.Offer(textLine(line(i)))
		b.Offer(done)
		<-done.asked // a batch a line, so that every line finds the file full
		close(done.open)
		b.awaitWritten(t, int64(2*(i+1)))
	}
	b.counts()
	for name, want := range map[string]string{"": "4", ".1": "3", ".2": "2"} {
		got := read(t, o.File+name)
		if got[:1] != want || len(got) > minDecisionBytes {
			t.Errorf("file%s begins with %q and has %d bytes, want %q", name, got[:1], len(got), want)
		}
		info, err := os.Stat(o.File + name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("file%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := os.Stat(o.File + ".3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a third backup was kept: %v", err)
	}
}

// logOne has one line written as a batch of its own, the n-th of the log.
func (b *bench) logOne(t *testing.T, line string, n int64) {
	t.Helper()
	b.Offer(textLine(line))
	b.awaitWritten(t, n)
}

func TestAFileThatCannotBeRenamedGoesOnAndIsRenamedLater(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	o.MaxBytes, o.Backups = minDecisionBytes, 1
	inTheWay := o.File + ".1"
	if err := os.MkdirAll(filepath.Join(inTheWay, "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	b := openBench(t, o, &log)
	var clock atomic.Int64
	b.now = func() time.Time { return time.Unix(clock.Load(), 0) } // before the first line
	long := strings.Repeat(".", 40<<10)
	for i := range 4 {
		b.logOne(t, long, int64(i+1))
	}
	clock.Add(int64(renameAgain/time.Second) + 1)
	b.logOne(t, long, 5) // one more attempt, which fails without a word
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	b.logOne(t, long, 6) // too soon for another
	clock.Add(int64(renameAgain/time.Second) + 1)
	b.logOne(t, "new", 7)
	if diff := cmp.Diff(map[string]int64{"written": 7}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if got := read(t, o.File); got != "new\n" {
		t.Errorf("the file has %d bytes and not the last line alone", len(got))
	}
	if got := read(t, inTheWay); got != strings.Repeat(long+"\n", 6) {
		t.Errorf("the renamed file has %d bytes and not the lines before", len(got))
	}
	if n := strings.Count(log.String(), "cannot be renamed"); n != 1 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log says it %d times:\n%s", n, &log)
	}
}

func TestPromptsCanBeForbiddenButNotAllowedAgain(t *testing.T) {
	t.Parallel()
	var none *Decisions
	none.ForbidPrompts() // a process without a log has nothing to end
	o := decisionFile(t)
	d, err := openDecisions(o, true, slog.New(slog.DiscardHandler), Discard().Metrics)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Prompts() {
		t.Error("prompts are not allowed")
	}
	d.ForbidPrompts()
	if d.Prompts() {
		t.Error("prompts are still allowed")
	}
	if err := d.shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// awaitWritten waits until n lines were written.
func (b *bench) awaitWritten(t *testing.T, n int64) {
	t.Helper()
	deadline := time.After(testkit.Patience)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b.mu.Lock()
		got := b.seen["written"]
		b.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%d lines were written, want %d", got, n)
		case <-tick.C:
		}
	}
}

func TestAFileThatEndsInsideALineGoesOnInANewOne(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	if err := os.WriteFile(o.File, []byte("whole\ntor"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := openBench(t, o, io.Discard)
	b.Offer(textLine("next"))
	b.counts()
	if diff := cmp.Diff("whole\ntor\nnext\n", read(t, o.File)); diff != "" {
		t.Errorf("file (-want +got):\n%s", diff)
	}
}

func TestDecisionsSayOnceThatTheyCannotBeWritten(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	o.File = "/dev/full" // every write to it fails with ENOSPC
	if _, err := os.Stat(o.File); err != nil {
		t.Skipf("%v", err)
	}
	var log bytes.Buffer
	b := openBench(t, o, &log)
	for range 3 {
		done := gateLine{make(chan struct{}), make(chan struct{})}
		b.Offer(done)
		<-done.asked
		close(done.open)
	}
	if diff := cmp.Diff(map[string]int64{"failed": 3}, b.counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "no space left"); n != 1 {
		t.Errorf("the log says it %d times:\n%s", n, &log)
	}
}

func TestNewRefusesADecisionLogThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Decisions.File = filepath.Join(t.TempDir(), "missing", "decisions.jsonl")
	if _, err := New(t.Context(), o, "test", io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestSampleIsAShareOfRequests(t *testing.T) {
	t.Parallel()
	var none *Decisions
	if none.Wanted() {
		t.Error("no log wants a line")
	}
	for _, share := range []float64{0, 0.25, 1} {
		d := &Decisions{opts: DecisionOptions{Sample: share}}
		n := 0
		for range 20_000 {
			if d.Wanted() {
				n++
			}
		}
		if got := float64(n) / 20_000; got < share-0.02 || got > share+0.02 || share == 0 && n > 0 || share == 1 && n < 20_000 {
			t.Errorf("sample %v wanted %v", share, got)
		}
	}
}

func TestDecisionOptionsNameEveryMistake(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Decisions.Sample, o.Decisions.MaxBytes, o.Decisions.Backups, o.Decisions.Headers = 1.5, 1, -1, "plain"
	want := "decisions.sample: 1.5 is not between 0 and 1\n" +
		"decisions.max_bytes: 1 is less than 64KiB\n" +
		"decisions.backups: -1 is not between 0 and 100\n" +
		`decisions.headers: "plain" is neither hash nor literal`
	if diff := cmp.Diff(want, o.Validate().Error()); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if err := DefaultOptions().Validate(); err != nil {
		t.Error(err)
	}
}

// logrotate moves the file and says so, or does not.
func TestDecisionsFollowAFileThatWasMoved(t *testing.T) {
	t.Parallel()
	for name, tell := range map[string]bool{"with a signal": true, "without one": false} {
		o := decisionFile(t)
		d := &Decisions{opts: o, log: slog.New(slog.DiscardHandler), count: func(string, int64) {}}
		var now time.Time
		d.now = func() time.Time { return now }
		d.queue, d.again, d.stop, d.done = make(
			chan Line,
		), make(
			chan struct{},
			1,
		), make(
			chan struct{},
		), make(
			chan struct{},
		)
		now = time.Unix(1_700_000_000, 0)
		if err := d.open(); err != nil {
			t.Fatal(err)
		}
		say := func(s string) {
			d.encode(textLine(s))
			d.write()
		}
		say("one")
		if err := os.Rename(o.File, o.File+".old"); err != nil {
			t.Fatal(err)
		}
		say("two") // within a second of the last look
		if !tell {
			now = now.Add(2 * lookEvery)
			say("three")
			_ = d.file.Close()
		} else {
			go d.run()
			d.Reopen()
			testkit.Eventually(t, "the file is made anew", func() bool { _, err := os.Stat(o.File); return err == nil })
			d.queue <- textLine("three")
			if err := d.shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, o.File+".old"); got != "one\ntwo\n" {
			t.Errorf("%s: the file that was moved holds %q", name, got)
		}
		if got := read(t, o.File); got != "three\n" {
			t.Errorf("%s: the new file holds %q", name, got)
		}
	}
}

func TestDecisionsGoOnWhereTheFileWasRemoved(t *testing.T) {
	t.Parallel()
	o := decisionFile(t)
	b := openBench(t, o, io.Discard)
	if err := os.Remove(o.File); err != nil {
		t.Fatal(err)
	}
	b.Reopen()
	testkit.Eventually(t, "the file is made anew", func() bool { _, err := os.Stat(o.File); return err == nil })
}
