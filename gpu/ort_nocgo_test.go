//go:build !cgo

package gpu

import (
	"errors"
	"strings"
	"testing"

	"signalbox/internal/signal"
)

func TestWithoutCgoNothingIsAvailable(t *testing.T) {
	_, err := Open(DefaultOptions())
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "without cgo") {
		t.Errorf("got %v", err)
	}
	if got := reasonOf(t, err); got != signal.ReasonNoModel {
		t.Errorf("reason %q", got)
	}
	if _, err := loadLibrary(Library{}, ""); !errors.Is(err, ErrUnavailable) {
		t.Errorf("loading a library: %v", err)
	}
}
