package outcomes_test

import (
	"errors"
	"os"
	"path/filepath"
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

func TestATenantThatIsForgottenStaysSoWhenAFileIsTakenOver(t *testing.T) {
	t.Parallel()
	o := outcomes.Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 9, Tenants: 2}
	r, first := source(), open(t, o)
	for _, tenant := range []string{"a", "b"} {
		x := outcomes.Outcome{ID: "1", Tenant: tenant, Model: "m", Prior: 0.5, Score: 1}
		add(t, first, x, around(r, 0))
	}
	second := open(t, o)
	if err := errors.Join(second.Forget("a"), first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	o.ReadOnly = true
	if s := open(t, o); s.Len("a") != 0 || s.Len("b") != 1 {
		t.Errorf("%d outcomes of the tenant that was forgotten, %d of the other", s.Len("a"), s.Len("b"))
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

func TestWhatAKilledWriterLeftIsRemovedByTheNextThatOwnsTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := outcomes.Options{Path: filepath.Join(dir, "outcomes.jsonl"), Limit: 9, Tenants: 1}
	left, old := filepath.Join(dir, ".outcomes.jsonl-1.tmp"), time.Now().Add(-2*time.Hour)
	leave := func() {
		t.Helper()
		if err := errors.Join(os.WriteFile(left, []byte("{"), 0o600), os.Chtimes(left, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	first := open(t, o)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the file was opened: %v", err)
	}
	leave()
	reading := o
	reading.ReadOnly = true
	open(t, reading)
	if second := open(t, o); second.Contested() {
		if _, err := os.Stat(left); err != nil {
			t.Errorf("who does not own the file has removed what its owner may write: %v", err)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
}
