package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// A value that is a bound belongs to the bucket that the bound ends, as Prometheus has it (le).
func TestHistogramsCountByBucketAndLabels(t *testing.T) {
	tel, err := New(t.Context(), DefaultOptions(), "test", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for _, rows := range []int{1, 2, 3, 64, 65} {
				tel.Metrics.batchSize.record(float64(rows))
			}
		})
	}
	group.Wait()
	tel.Metrics.mirrorLikeness.record(0.25, "m")
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	got := rec.Body.String()
	for _, want := range []string{
		`signalbox_batch_size_bucket{le="1"} 4`, `signalbox_batch_size_bucket{le="2"} 8`,
		`signalbox_batch_size_bucket{le="4"} 12`, `signalbox_batch_size_bucket{le="64"} 16`,
		`signalbox_batch_size_bucket{le="+Inf"} 20`, "signalbox_batch_size_sum 540",
		"signalbox_batch_size_count 20", "# TYPE signalbox_batch_size histogram",
		`signalbox_mirror_similarity_bucket{model="m",le="0.2"} 0`, `signalbox_mirror_similarity_sum{model="m"} 0.25`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if strings.Contains(got, "signalbox_guard_check_seconds") {
		t.Error("a histogram without a value is shown")
	}
	if n := testing.AllocsPerRun(100, func() { tel.Metrics.batchSize.record(3) }); n > 0 {
		t.Errorf("%v allocations a value", n)
	}
}
