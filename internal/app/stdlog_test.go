package app

import (
	"bytes"
	"log" //nolint:depguard // what libraries use that have nothing else
	"log/slog"
	"strings"
	"testing"
)

func TestWhatLibrariesSayIsLoggedWithoutTheTextOfAnswers(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := log.New(libraryLog{slog.New(slog.NewJSONHandler(&out, nil))}, "", 0)
	l.Printf("Unsolicited response received on idle HTTP channel starting with %q; err=%v", "canary-answer", nil)
	l.Print("http: something\nelse")
	if got := out.String(); strings.Contains(got, "canary") || strings.Count(got, "\n") != 2 || !strings.Contains(got, `"level":"WARN","msg":"library","says":"Unsolicited response received on idle HTTP channel"}`) {
		t.Errorf("logged %s", got)
	}
}
