package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox/internal/simulator"
)

// A person is shown what was found, corrected, and asked for the name of a key.
func TestInitAsksAPerson(t *testing.T) {
	t.Parallel()
	o := simulator.DefaultOptions()
	o.Model = "sim/8B"
	sim, err := simulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	found := httptest.NewServer(sim.Handler())
	defer found.Close()
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		sim.Handler().ServeHTTP(w, r)
	}))
	defer locked.Close()
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	var out bytes.Buffer
	c := &command{Streams: Streams{
		In:  strings.NewReader("\nhttp://127.0.0.1:1\n" + locked.URL + "\nMY_KEY\n\n"),
		Out: &out, Err: &out, Asks: true,
		Env: func(name string) (string, bool) { return "sesame", name == "MY_KEY" },
	}}
	i := &initiation{command: c, out: file, usual: []string{"http://127.0.0.1:1", found.URL}}
	if err := i.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"found vLLM", "Use it? [Y/n]", "no: no response", "It requires an API key", "wrote " + file} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if !strings.Contains(text, `url: `+locked.URL+`/v1, api_key: "${MY_KEY}"`) || strings.Contains(text, "sesame") {
		t.Errorf("%s", text)
	}
}
