package app

import (
	"io"
	"log/slog"
	"strings"
)

// LibraryLog returns a writer for the lines of libraries that have no logger of their own, as
// net/http has none for connections to servers: each becomes a warning. What such a line quotes of
// an answer, behind `starting with`, is left out.
func (a *App) LibraryLog() io.Writer { return libraryLog{a.tel.Log} }

type libraryLog struct{ log *slog.Logger }

// Write implements io.Writer for one line.
func (l libraryLog) Write(b []byte) (int, error) {
	line, _, _ := strings.Cut(string(b), " starting with")
	l.log.Warn("library", slog.String("says", strings.TrimSpace(line)))
	return len(b), nil
}
