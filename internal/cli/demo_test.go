package cli

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// printed is what a terminal gets from a printer.
func printed(say func(p *printer)) string {
	var b strings.Builder
	c := &command{Streams: Streams{Out: &b, Terminal: true, Width: 80}}
	say(c.printer())
	return b.String()
}

func TestTheDemosCommandCanBePasted(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	text := printed(func(p *printer) { greet(p, at, at, 5, time.Second) })
	from := strings.Index(text, "curl -iN")
	if from < 0 {
		t.Fatal(text)
	}
	first, rest, _ := strings.Cut(text[from:], "\n")
	second, _, _ := strings.Cut(rest, "\n")
	if !strings.HasSuffix(first, `\`) || !strings.HasSuffix(second, `'`) {
		t.Errorf("a line that is pasted ends in something else:\n%q\n%q", first, second)
	}
}

func TestADecisionIsALine(t *testing.T) {
	log, err := os.ReadFile("testdata/decisions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got := printed(func(p *printer) {
		if _, err := (decisionPrinter{p}).Write(log); err != nil {
			t.Error(err)
		}
	})
	want := []string{
		"math           -> math-70b          200    6.5 ms  domain math 0.94, reasoning high, " +
			"prompt mathematician, max_tokens 16384",
		"block-attacks  -> declined          400    0.0 ms  jailbreak 0.98",
		"titan          -> declined          400    0.0 ms  keyword titan",
		"default        -> m                 200    0.0 ms  domain unknown (no_model), " +
			"guard annotate: unsupported, 1 of 5 claims failed",
		"math           -> no answer         503    0.0 ms",
		"default        -> no answer         429    1.6 ms  domain other 0.91, insufficient_quota",
		"hours          -> answered          200    0.0 ms  from the cache (exact)",
	}
	var lines []string
	for line := range strings.Lines(got) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "  ") // the time is of this place
		lines = append(lines, line)
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
