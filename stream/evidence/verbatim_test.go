package evidence_test

import (
	"strings"
	"testing"

	"signalbox/stream/evidence"
)

func TestSentencesSaidWordForWordAreFound(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat("able to sail past islands without a name ", 9) + "again"
	long := "The ship " + strings.Repeat("sailed on and on past islands without a name ", 9) + "and came home"
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: "Rain fell. The server listens on `port 8080`.\n\n- Open on *Mondays* only"}, {Text: "# Hours\n" + long + "."}, {Text: "It is not true that the crew was " + tail + ". If the ship was un" + tail + " and so on, it sank."}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{
		"The server listens on port 8080.":         1,
		"the server listens  on port 8080":         1,
		"Open on Mondays only.":                    2,
		"The server listens on port 8081.":         -1,
		"The server does not listen on port 8080.": -1,
		"Rain fell.":           -1, // too short to say much
		"":                     -1,
		"the crew was " + tail: -1, // denied
		tail + " and so on":    -1, // begins within a word
		strings.Join(strings.Fields(long)[30:70], " "):               4,
		strings.Join(strings.Fields(long)[30:70], " ") + " and back": -1,
	} {
		if got := e.Says(text); got != want {
			t.Errorf("%q: sentence %d, want %d", text, got, want)
		}
	}
	var none *evidence.Evidence
	if got := none.Says("The server listens on port 8080."); got != -1 {
		t.Errorf("nothing says sentence %d", got)
	}
}

func TestSaysDoesNotAllocate(t *testing.T) { //nolint:paralleltest // counts allocations
	e, err := evidence.New(t.Context(), []evidence.Source{{Text: "The server listens on port 8080."}}, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { e.Says("The server listens on `port 8080`.") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
