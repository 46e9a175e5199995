package bounded_test

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/bounded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func key(i int) bounded.Key { return sha256.Sum256(fmt.Append(nil, i)) }

func TestACacheKeepsToItsBound(t *testing.T) {
	t.Parallel()
	c := bounded.New[string](8)
	for i := range 100 {
		c.Set(key(i), fmt.Sprint(i))
		if n := c.Len(); n > 8 {
			t.Fatalf("%d values after %d, want no more than 8", n, i+1)
		}
	}
	found := 0
	for i := range 100 {
		v, ok := c.Get(key(i))
		if ok && v != fmt.Sprint(i) {
			t.Errorf("%d has the value %q", i, v)
		}
		if ok {
			found++
		}
	}
	if found != c.Len() || found == 0 {
		t.Errorf("%d values are found, %d are counted", found, c.Len())
	}
}

func TestNothingIsAValueToo(t *testing.T) {
	t.Parallel()
	c := bounded.New[error](0)
	if _, ok := c.Get(key(1)); ok {
		t.Error("an empty cache has a value")
	}
	c.Set(key(1), nil)
	if v, ok := c.Get(key(1)); v != nil || !ok {
		t.Errorf("got %v, %t, want nil that is known", v, ok)
	}
}

func TestWeightsAndTimesBoundACache(t *testing.T) {
	t.Parallel()
	now := time.Unix(1e9, 0)
	of := func(most int) *bounded.Cache[string] {
		c := bounded.Weighed(most, func(s string) int { return len(s) },
			func(s string) time.Duration { return time.Duration(len(s)) * time.Minute }, func() time.Time { return now })
		t.Cleanup(c.Close)
		return c
	}
	c := of(100)
	for i := range 50 {
		c.Set(key(i), "ten bytes.")
		if w := c.Weight(); w > 100 {
			t.Fatalf("%d bytes, want no more than 100", w)
		}
	}
	c = of(1000)
	c.Set(key(1000), "short")
	if v, ok := c.Get(key(1000)); v != "short" || !ok {
		t.Errorf("got %q, %t", v, ok)
	}
	now = now.Add(6 * time.Minute)
	if v, ok := c.Get(key(1000)); ok {
		t.Errorf("%q is there after its time", v)
	}
}
