package outcomes_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"signalbox/memory/outcomes"
)

func TestASecondWriterOfAFileIsTold(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl")}
	first := open(t, o)
	reader := o
	reader.ReadOnly = true
	other := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl")}
	second := open(t, o)
	for name, got := range map[string]bool{
		"the first": first.Contested(), "one that reads": open(t, reader).Contested(),
		"that of another file": open(t, other).Contested(),
	} {
		if got {
			t.Errorf("%s is told of another process", name)
		}
	}
	if !second.Contested() {
		t.Error("the second is told of nobody")
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if open(t, o).Contested() {
		t.Error("after the end of both it is still theirs")
	}
}

func TestASecondWriterOfAFileWaitsForTheEndOfTheFirst(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 9, Tenants: 1}
	r, now := source(), time.Now()
	one := func(s *outcomes.Store, id string) {
		t.Helper()
		add(t, s, outcomes.Outcome{ID: id, Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	}
	first := open(t, o)
	one(first, "1")
	theirs := o
	theirs.Now = func() time.Time { return now }
	second, third := open(t, theirs), open(t, theirs)
	one(first, "2")
	one(second, "3")
	one(third, "4")
	reading := o
	reading.ReadOnly = true
	if n := open(t, reading).Len("a"); n != 2 || second.Len("a") != 2 {
		t.Errorf("beside the first the file has %d outcomes, the second %d", n, second.Len("a"))
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	if one(second, "5"); second.Contested() || open(t, reading).Len("a") != 4 {
		t.Errorf("after the first: contested %v, the file has %d outcomes", second.Contested(), open(t, reading).Len("a"))
	}
	if err := errors.Join(second.Close(), third.Close()); err != nil {
		t.Fatal(err)
	}
	if n := open(t, reading).Len("a"); n != 5 {
		t.Errorf("in the end the file has %d outcomes", n)
	}
}

func TestTheFileOfAnotherProcessIsOnlyRead(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 5, Tenants: 1, Waiting: 5}
	r, s := source(), open(t, o)
	add(t, s, outcomes.Outcome{ID: "1", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	before, err := os.Stat(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	reading := o
	reading.ReadOnly = true
	reader := open(t, reading)
	if reader.Len("a") != 1 {
		t.Errorf("%d outcomes were read", reader.Len("a"))
	}
	add(t, reader, outcomes.Outcome{ID: "2", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	if err := errors.Join(reader.Forget("a"), reader.Close()); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(o.Path)
	if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() {
		t.Errorf("the file is another: %v, %v, %v", before, after, err)
	}
	reading.Path = filepath.Join(t.TempDir(), "none.jsonl")
	open(t, reading)
	if _, err := os.Stat(reading.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made: %v", err)
	}
}

func TestAFileThatCouldNotBeTakenOverIsTakenOverLater(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	o := outcomes.Options{
		Path: filepath.Join(dir, "outcomes.jsonl"), Limit: 9, Tenants: 1, Now: func() time.Time { return now },
	}
	r, first, second := source(), open(t, o), open(t, o)
	if err := errors.Join(first.Close(), os.Rename(dir, dir+"-away")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	x := outcomes.Outcome{Tenant: "a", ID: "1", Model: "m", Prior: 0.5, Score: 1, Weight: 1}
	if err := second.Add(x, around(r, 0)); err == nil {
		t.Error("nothing is said of a file that cannot be written")
	}
	if err := os.Rename(dir+"-away", dir); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	add(t, second, outcomes.Outcome{ID: "2", Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
	reading := o
	reading.ReadOnly = true
	if n := open(t, reading).Len("a"); n != 2 {
		t.Errorf("the file has %d outcomes, want 2", n)
	}
}

// Where there are no locks each makes the file anew with all that it knows, and would take it from the
// other with every outcome.
func TestTwoProcessesWithOneFileTakeItFromEachOtherNowAndThen(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	o := outcomes.Options{
		Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 50, Tenants: 1, Waiting: 5,
		Now: func() time.Time { return now },
	}
	if err := os.Mkdir(o.Path+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	r, a, b := source(), open(t, o), open(t, o)
	changes := 0
	before, err := os.Stat(o.Path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if i == 10 {
			now = now.Add(time.Hour)
		}
		for _, s := range []*outcomes.Store{a, b} {
			add(t, s, outcomes.Outcome{ID: strconv.Itoa(i), Model: "m", Prior: 0.5, Score: 1}, around(r, 0))
			after, err := os.Stat(o.Path)
			if err != nil {
				t.Fatal(err)
			}
			if !os.SameFile(before, after) {
				changes++
			}
			before = after
		}
	}
	if changes < 2 || changes > 4 {
		t.Errorf("the file was replaced %d times", changes)
	}
	if err := a.Close(); err != nil || open(t, o).Len("a") != 20 {
		t.Errorf("after the end %d outcomes, %v", open(t, o).Len("a"), err)
	}
}
