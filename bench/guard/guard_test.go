package main

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEverySectionRuns(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	var out strings.Builder
	if err := run(ctx, []string{"--quick"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		"| guard off: processor time a chunk", "| guard off: allocations a chunk", "| observe, 8 streams: p50 gap", "| annotate, 8 streams: p50 gap",
		"| verdict after the end of a claim decided by sentinel and numbers | p50 ", "| verdict after the end of a claim read by the NLI model",
		"| observe, 8 streams of 30 tokens a second: p99 gap", "| observe, 16 streams of 2 tokens a second: p99 gap",
		"| planted numbers through verify: recall", "| planted numbers through verify: false alarms",
	} {
		if !strings.Contains(out.String(), row) {
			t.Errorf("the report has no row %q:\n%s", row, &out)
		}
	}
}

func TestSectionsAreNamed(t *testing.T) {
	t.Parallel()
	if err := run(t.Context(), []string{"--only", "gaps,speed"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), `"speed" is none of passthrough, gaps`) {
		t.Errorf("error %v", err)
	}
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values  []float64
		q, want float64
	}{
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{4, 3, 2, 1}, 0.5, 2},
		{[]float64{5}, 0.99, 5},
		{[]float64{2, 1}, 1, 2},
	} {
		if got := quantile(c.values, c.q); got != c.want {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.values, c.q, got, c.want)
		}
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing = %v", got)
	}
}

func TestAStreamThatIsCutIsAnError(t *testing.T) {
	t.Parallel()
	events := 0
	err := readEvents(strings.NewReader("data: {}\n\ndata: {\"a\":1}\n\n"), func([]byte) { events++ })
	if err == nil || events != 2 {
		t.Errorf("error %v after %d events", err, events)
	}
	if err := readEvents(strings.NewReader("data: {}\n\ndata: [DONE]\n\n"), func([]byte) {}); err != nil {
		t.Error(err)
	}
}
