package evidence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/stream/evidence"
)

func TestPreparingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The pump of hall 7 ran for 12 hours. ", 7000) // 259 KB
	sources, o := []evidence.Source{{Text: text}}, evidence.Options{MaxBytes: 1 << 20}
	patient := testkit.NewCountdown(t.Context(), 1<<30, context.Canceled)
	if _, err := evidence.New(patient, sources, o); err != nil {
		t.Fatal(err)
	}
	if patient.Looks() < 50 {
		t.Errorf("%d bytes were read with %d looks at the context", len(text), patient.Looks())
	}
	for _, left := range []int{0, 3, patient.Looks() / 2, patient.Looks() - 1} {
		c := testkit.NewCountdown(t.Context(), left, context.Canceled)
		if _, err := evidence.New(c, sources, o); !errors.Is(err, context.Canceled) {
			t.Errorf("ended at look %d of %d: error %v", left+1, patient.Looks(), err)
		}
		if c.Looks() > left+3 {
			t.Errorf("ended at look %d, %d looks in all: it went on", left+1, c.Looks())
		}
	}
}
