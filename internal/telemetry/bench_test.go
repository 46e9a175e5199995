package telemetry

import (
	"testing"
	"time"
)

// BenchmarkRequestMetrics is what one plain request records.
func BenchmarkRequestMetrics(b *testing.B) {
	m := Discard().Metrics
	b.ReportAllocs()
	for b.Loop() {
		m.Decide(time.Microsecond)
		m.Request("named", "small", 200, time.Millisecond)
		m.Tokens("prompt", 10)
		m.Tokens("cached", 0)
		m.Tokens("completion", 16)
		m.Cost("small", 0.1, 0.2)
	}
}
