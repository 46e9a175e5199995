package response_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/stream/response"
	"signalbox/stream/sse"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// events returns the data of the events of a stream except [DONE].
func events(tb testing.TB, stream []byte) [][]byte {
	tb.Helper()
	p := sse.NewParser(0)
	p.Feed(stream)
	var out [][]byte
	for e := p.Next(); e != nil; e = p.Next() {
		if e.Kind == sse.Message && !sse.IsDone(e.Data) {
			out = append(out, bytes.Clone(e.Data))
		}
	}
	if p.Err() != nil {
		tb.Fatal(p.Err())
	}
	return out
}

// dump returns a description of what was read of an event.
func dump(e *response.Event) string {
	var b strings.Builder
	fmt.Fprint(&b, e.Shape)
	if e.Why != "" {
		fmt.Fprintf(&b, ": %s", e.Why)
	}
	if len(e.Type) > 0 {
		fmt.Fprintf(&b, " %s", e.Type)
	}
	if e.Bare() {
		b.WriteString(" bare")
	}
	if e.Failed {
		b.WriteString(" failed")
	}
	b.WriteByte('\n')
	for i := range e.Deltas {
		d := &e.Deltas[i]
		fmt.Fprintf(&b, "  %s of %d/%d %q", d.Kind, d.Choice, d.Part, d.Text)
		if d.Whole {
			b.WriteString(" whole")
		}
		fmt.Fprintf(&b, " at %s\n", e.Data()[d.At.Start-1:d.At.End+1])
	}
	for _, f := range e.Finishes {
		fmt.Fprintf(&b, "  end of %d: %s\n", f.Choice, f.Reason)
	}
	if e.HasUsage {
		fmt.Fprintf(&b, "  usage %+v\n", e.Usage)
	}
	return b.String()
}

func fixture(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	name = strings.TrimSuffix(name, filepath.Ext(name)) + strings.ReplaceAll(filepath.Ext(name), ".", "_") + ".golden"
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(fixture(t, name)), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestStreamsOfServersInUse(t *testing.T) {
	for _, name := range fixtures(t, "*.sse") {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			var b strings.Builder
			for _, data := range events(t, fixture(t, name)) {
				e := r.Read(data)
				b.WriteString(dump(e))
				if out := e.Append(nil, response.Rewrite{}); !bytes.Equal(out, data) {
					t.Errorf("an event without a change became %s", out)
				}
			}
			fmt.Fprintf(&b, "complete %v\n", r.Complete())
			golden(t, name, b.String())
		})
	}
}

func TestBodiesOfServersInUse(t *testing.T) {
	for _, name := range fixtures(t, "*.json") {
		t.Run(name, func(t *testing.T) {
			var r response.Reader
			body := fixture(t, name)
			e := r.ReadBody(body)
			golden(t, name, dump(e)+fmt.Sprintf("complete %v\n", r.Complete()))
			if out := e.Append(nil, response.Rewrite{}); !bytes.Equal(out, body) {
				t.Errorf("a body without a change became %s", out)
			}
		})
	}
}

func fixtures(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d fixtures, %v", len(paths), err)
	}
	for i := range paths {
		paths[i] = filepath.Base(paths[i])
	}
	return paths
}
