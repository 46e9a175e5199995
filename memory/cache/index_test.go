package cache_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/memory/cache/question"
)

// direction is a unit vector in the plane, at an angle in degrees.
func direction(degrees float64) []float32 {
	a := degrees * math.Pi / 180
	return []float32{float32(math.Cos(a)), float32(math.Sin(a)), 0, 0}
}

// keyOf makes a key of a number.
func keyOf(n int) (k cache.Key) {
	k[0], k[1], k[2] = byte(n), byte(n>>8), byte(n>>16)
	return k
}

func TestTheNearestQuestionOfThePartitionIsFound(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	x := cache.NewIndex(10, clock.Now)
	here, there := keyOf(100), keyOf(200)
	x.Put(here, keyOf(1), "What is the capital of Peru?", direction(0), time.Hour)
	x.Put(here, keyOf(2), "Which city is the capital of Peru?", direction(10), time.Hour)
	x.Put(there, keyOf(3), "What's the capital of Peru?", direction(9), time.Hour)
	found, ok := x.Find(here, "What city is the capital of Peru?", direction(8), 0.9)
	if !ok || found.Key != keyOf(2) || found.Similarity < 0.99 {
		t.Errorf("found %+v, %v; want the second", found, ok)
	}
	if found, ok := x.Find(here, "What is the capital of Chile?", direction(1), 0.9); ok || found.Refused != question.Word {
		t.Errorf("found %+v, %v for another question; want it refused for a word", found, ok)
	}
	for name, v := range map[string][]float32{"a far one": direction(60), "another length": {1, 0}, "none": nil} {
		if found, ok := x.Find(here, "What is the capital of Peru?", v, 0.9); ok || found.Refused != question.Same {
			t.Errorf("%s: found %+v, want nothing", name, found)
		}
	}
	if _, ok := x.Find(keyOf(300), "What is the capital of Peru?", direction(0), 0.9); ok {
		t.Error("found in a partition that holds nothing")
	}
}

func TestQuestionsExpireAndAreForgotten(t *testing.T) {
	t.Parallel()
	clock := testkit.NewClock()
	x := cache.NewIndex(10, clock.Now)
	x.Put(cache.Key{}, keyOf(1), "one apple", direction(0), time.Minute)
	x.Put(cache.Key{}, keyOf(2), "one pear", direction(0), time.Hour)
	x.Put(cache.Key{}, keyOf(3), "one plum", direction(0), 0)
	find := func(text string) bool { _, ok := x.Find(cache.Key{}, text, direction(0), 0.9); return ok }
	if !find("one apple") || !find("one pear") || find("one plum") {
		t.Error("want the first two and not what is kept for no time")
	}
	clock.Pass(time.Minute)
	if find("one apple") || !find("one pear") {
		t.Error("want the first expired and the second not")
	}
	x.Forget(keyOf(2))
	x.Forget(keyOf(2))
	if find("one pear") || x.Len() != 1 {
		t.Errorf("the second is still found, or %d are left, want 1", x.Len())
	}
}

func TestWhatWasNotAskedForTheLongestTimeGoes(t *testing.T) {
	t.Parallel()
	x := cache.NewIndex(3, time.Now)
	put := func(n int) {
		x.Put(keyOf(1000+n%2), keyOf(n), fmt.Sprint("question number ", n), direction(float64(n)), time.Hour)
	}
	find := func(n int) bool {
		_, ok := x.Find(keyOf(1000+n%2), fmt.Sprint("question number ", n), direction(float64(n)), 0.9)
		return ok
	}
	put(1)
	put(2)
	put(3)
	find(1)
	put(4)
	for n, want := range map[int]bool{1: true, 2: false, 3: true, 4: true} {
		if find(n) != want {
			t.Errorf("question %d: found %v, want %v", n, !want, want)
		}
	}
	put(4)
	if x.Len() != 3 {
		t.Errorf("%d questions after one was put again, want 3", x.Len())
	}
	x.Put(keyOf(1000), keyOf(9), "vectors of another model", []float32{1, 0}, time.Hour)
	if find(4) || x.Len() != 2 {
		t.Errorf("%d questions, want those of the old model gone from the partition", x.Len())
	}
}

func TestAnIndexIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	x := cache.NewIndex(50, time.Now)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 0))
			for range 300 {
				n := r.IntN(100)
				text := fmt.Sprint("question number ", n)
				switch r.IntN(4) {
				case 0:
					x.Put(keyOf(n%3), keyOf(n), text, direction(float64(n)), time.Hour)
				case 1:
					x.Forget(keyOf(n))
				default:
					if found, ok := x.Find(keyOf(n%3), text, direction(float64(n)), 0.99); ok && found.Question != text {
						t.Errorf("%q found for %q", found.Question, text)
					}
				}
			}
		})
	}
	wg.Wait()
	if x.Len() > 50 {
		t.Errorf("%d questions, want no more than 50", x.Len())
	}
}

// crowd returns an index of random questions and the vectors of some that it does not hold.
func crowd(size, dims int) (x *cache.Index, vectors [][]float32) {
	r := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, dims)
		var sum float64
		for i := range v {
			v[i] = float32(r.NormFloat64())
			sum += float64(v[i] * v[i])
		}
		for i := range v {
			v[i] /= float32(math.Sqrt(sum))
		}
		return v
	}
	x = cache.NewIndex(size, time.Now)
	for n := range size {
		x.Put(cache.Key{}, keyOf(n), fmt.Sprintf("What is the price of article %d in the shop of Rome?", n), vector(), time.Hour)
	}
	for range 64 {
		vectors = append(vectors, vector())
	}
	return x, vectors
}

func TestALookupDoesNotAllocate(t *testing.T) {
	if testkit.Race {
		t.Skip("counts of allocations differ under the race detector")
	}
	x, vectors := crowd(200, 384)
	for name, least := range map[string]float64{"nothing near": 0.9, "near ones that differ": -1} {
		if n := testing.AllocsPerRun(200, func() {
			x.Find(cache.Key{}, "What is the price of article 1000 in the shop of Rome?", vectors[0], least)
		}); n > 0 {
			t.Errorf("%s: %v allocations, want 0", name, n)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	for _, size := range []int{1000, 10_000} {
		x, vectors := crowd(size, 384)
		for name, least := range map[string]float64{"miss": 0.9, "refused": -1} {
			b.Run(fmt.Sprintf("%d/%s", size, name), func(b *testing.B) {
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n++
					x.Find(cache.Key{}, "What is the price of article 77777 in the shop of Rome?", vectors[n%len(vectors)], least)
				}
			})
		}
	}
}
