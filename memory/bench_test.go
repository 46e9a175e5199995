package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/blob"
	"signalbox/memory/page"
)

const contract = 600 << 10 // about 100,000 words

// BenchmarkResolve takes a context of 600 KiB from each tier.
func BenchmarkResolve(b *testing.B) {
	server := testkit.NewRedis(b)
	s := newStore(b, Options{}, connect(b, server, time.Now))
	c := create(b, s, alice, draft(prose("contract", contract)))
	for _, tier := range []page.Tier{page.Hot, page.L2, page.L3} {
		b.Run(tier.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if tier < page.Hot {
					if _, err := s.PageOut(b.Context(), alice, Ref{ID: c.ID}, tier); err != nil {
						b.Fatal(err)
					}
				}
				snap, err := s.Resolve(b.Context(), alice, Ref{ID: c.ID})
				if err != nil || snap.Tier != tier {
					b.Fatal(snap, err)
				}
				snap.Release()
			}
		})
	}
}

// BenchmarkCreate stores a context of 600 KiB: canonical form, compression, sums, Redis.
func BenchmarkCreate(b *testing.B) {
	text := prose("contract", contract)
	for _, where := range []string{"ram", "redis"} {
		b.Run(where, func(b *testing.B) {
			var remote Remote
			if where == "redis" {
				remote = connect(b, testkit.NewRedis(b), time.Now)
			}
			s := newStore(b, Options{}, remote)
			b.SetBytes(contract)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				c := create(b, s, alice, draft(fmt.Sprintf("%012d", i)+text[12:]))
				b.StopTimer()
				if err := s.Delete(b.Context(), alice, Ref{ID: c.ID}); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkRatio packs 600 KiB of prose, code and JSON: sources of this repository and what is made
// of them.
func BenchmarkRatio(b *testing.B) {
	for name, text := range map[string]string{"prose": corpus(b, ".md"), "code": corpus(b, ".go"), "json": jsonCorpus(b)} {
		raw := []byte(text)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			n := 0
			for b.Loop() {
				packed, _ := blob.Pack(raw)
				n = len(packed)
			}
			b.ReportMetric(float64(len(raw))/float64(n), "ratio")
		})
	}
}

// corpus joins files of the repository with the given ending, up to 600 KiB.
func corpus(tb testing.TB, ending string) string {
	tb.Helper()
	var all strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			tb.Fatal(err)
		}
		for _, e := range entries {
			path := dir + "/" + e.Name()
			switch {
			case all.Len() >= contract || strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				walk(path)
			case strings.HasSuffix(e.Name(), ending):
				text, err := os.ReadFile(path)
				if err != nil {
					tb.Fatal(err)
				}
				all.Write(text)
			}
		}
	}
	walk("..")
	return all.String()[:min(contract, all.Len())]
}

// jsonCorpus is a list of small objects.
func jsonCorpus(tb testing.TB) string {
	tb.Helper()
	var all strings.Builder
	for i, line := range strings.Split(corpus(tb, ".md"), "\n") {
		row, err := json.Marshal(map[string]any{"id": i, "text": line, "score": float64(i*7919%1000) / 1000, "tags": []string{"a", fmt.Sprint(i % 17)}})
		if err != nil {
			tb.Fatal(err)
		}
		all.Write(append(row, '\n'))
	}
	return all.String()[:min(contract, all.Len())]
}

// BenchmarkRAMPerContext reports what an idle context of 600 KiB takes in RAM, and how many go into
// a GiB.
func BenchmarkRAMPerContext(b *testing.B) {
	const n = 64
	text := prose("contract", contract)
	for b.Loop() {
		clock := testkit.NewClock()
		s := newStore(b, Options{Now: clock.Now}, nil)
		before := heap()
		for i := range n {
			create(b, s, alice, draft(fmt.Sprintf("%012d", i)+text[12:]))
		}
		clock.Pass(time.Minute)
		s.Sweep(b.Context())
		each := float64(heap()-before) / n
		b.ReportMetric(each, "B/context")
		b.ReportMetric((1<<30)/each, "contexts/GiB")
		runtime.KeepAlive(s)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
