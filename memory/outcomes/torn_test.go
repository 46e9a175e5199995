package outcomes

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A disk that is full takes a part of a line. What is written when there is room again can be read.
func TestALineThatBrokeOffSpoilsNoOther(t *testing.T) {
	t.Parallel()
	s, _, err := Open(Options{Path: filepath.Join(t.TempDir(), "outcomes.jsonl"), Limit: 5, Tenants: 1, Waiting: 1})
	if err != nil {
		t.Fatal(err)
	}
	disk, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	s.file, s.remade = full, time.Now()
	if _, err := full.WriteString(`{"tenant": "a", "id":`); err != nil {
		t.Fatal(err)
	}
	if err := full.SetWriteDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Skip(err)
	}
	add := func(id string) error {
		return s.Add(Outcome{Tenant: "a", ID: id, Model: "m", Weight: 1}, []float32{1, 0})
	}
	if add("0") == nil {
		t.Fatal("a line that did not fit was written")
	}
	written := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(disk)
		written <- b
	}()
	if err := full.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "2"} {
		if err := add(id); err != nil {
			t.Fatal(err)
		}
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(<-written), []byte("\n"))
	for i, id := range []string{"1", "2"} {
		if len(lines) != 3 {
			t.Fatalf("%d lines, want that which broke off and two", len(lines))
		}
		if x, ok := read(lines[i+1]); !ok || x.ID != id {
			t.Errorf("line %d cannot be read: %.80q", i+1, lines[i+1])
		}
	}
}
