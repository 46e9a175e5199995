package app

import (
	"io"
	"log/slog"
	"strings"
)

// LibraryLog returns a writer for the log lines of libraries without a logger option, such as
// net/http for connections to servers: each line becomes a warning. The part of a line that quotes
// a response, after `starting with`, is removed.
func (a *App) LibraryLog() io.Writer { return libraryLog{a.tel.Log} }

type libraryLog struct{ log *slog.Logger }

// Write implements io.Writer for one line.
func (l libraryLog) Write(b []byte) (int, error) {
	line, _, _ := strings.Cut(string(b), " starting with")
	l.log.Warn("library", slog.String("says", strings.TrimSpace(line)))
	return len(b), nil
}
