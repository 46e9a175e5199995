package lab

import (
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRowsAreReadPackedAndUnpacked(t *testing.T) {
	t.Parallel()
	const text = "{\"n\": 1}\n\n{\"n\": 2}"
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "a.jsonl.gz")
	if err := os.WriteFile(plain, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(packed)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(text))
	if err = errors.Join(err, z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	type row struct{ N int }
	for _, path := range []string{plain, packed} {
		if got, err := Rows[row](path); err != nil || !slices.Equal(got, []row{{1}, {2}}) {
			t.Errorf("%s: %v, %v", path, got, err)
		}
	}
	if _, err := Decode[row](strings.NewReader("{}\n{")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names line 2", err)
	}
}

func TestPostTellsStatusAndBody(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Wrong") != "" {
			http.Error(w, "no", http.StatusTeapot)
			return
		}
		_, _ = w.Write([]byte("yes"))
	}))
	defer s.Close()
	if _, got, err := Post(t.Context(), s.Client(), s.URL, 1); err != nil || string(got) != "yes" {
		t.Errorf("%q, %v", got, err)
	}
	if _, _, err := Post(t.Context(), s.Client(), s.URL, 1, "X-Wrong", "1"); err == nil || err.Error() != "status 418: no" {
		t.Errorf("error %v", err)
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	asked := 0
	if err := Wait(t.Context(), time.Minute, "three", func() bool { asked++; return asked == 3 }); err != nil {
		t.Error(err)
	}
	if err := Wait(t.Context(), time.Millisecond, "never", func() bool { return false }); err == nil {
		t.Error("no error when the time is over")
	}
}

func TestAddressesDiffer(t *testing.T) {
	t.Parallel()
	at, err := Addresses(t.Context(), 2)
	if err != nil || len(at) != 2 || at[0] == at[1] {
		t.Errorf("%v, %v", at, err)
	}
}
