package proxy

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"signalbox/proxy/engine"
)

// S3, S23: token issuers can name any number of tenants, and none of them may leave anything in
// memory.
func TestSaltsOfTenantsWithoutEndTakeNoMemory(t *testing.T) {
	s := engine.NewSalts([]byte("secret"))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // what the first one found in pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, long := heap(), strings.Repeat("t", 180)
	for i := range 20_000 {
		_ = s.Of(long + strconv.Itoa(i))
	}
	if after := heap(); after > before+2<<20 {
		t.Errorf("20,000 tenants left %d bytes", after-before)
	}
	if again := s.Of("a"); again != s.Of("a") || again == s.Of("b") {
		t.Error("a salt is not that of its tenant")
	}
	runtime.KeepAlive(s)
}
