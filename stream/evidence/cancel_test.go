package evidence_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox/stream/evidence"
)

// countdown is a context that ends once it was asked a number of times whether it has.
type countdown struct {
	context.Context

	left, asked int
}

func (c *countdown) Err() error {
	if c.asked++; c.asked > c.left {
		return context.Canceled
	}
	return nil
}

func TestPreparingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("The pump of hall 7 ran for 12 hours. ", 7000) // 259 KB
	sources, o := []evidence.Source{{Text: text}}, evidence.Options{MaxBytes: 1 << 20}
	patient := &countdown{Context: t.Context(), left: 1 << 30}
	if _, err := evidence.New(patient, sources, o); err != nil {
		t.Fatal(err)
	}
	if patient.asked < 50 {
		t.Errorf("%d bytes were read with %d looks at the context", len(text), patient.asked)
	}
	for _, left := range []int{0, 3, patient.asked / 2, patient.asked - 1} {
		c := &countdown{Context: t.Context(), left: left}
		if _, err := evidence.New(c, sources, o); !errors.Is(err, context.Canceled) {
			t.Errorf("ended at look %d of %d: error %v", left+1, patient.asked, err)
		}
		if c.asked > left+3 {
			t.Errorf("ended at look %d, %d looks in all: it went on", left+1, c.asked)
		}
	}
}
