package upstream

import (
	"testing"
	"testing/synctest"
	"time"
)

// The timer fires at the first of its deadlines, whatever was expected since, and the attempt ends
// when it is late and not before.
func TestTheWatchdogWaitsForWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, w := newWatchdog(t.Context(), time.Second)
		defer w.stop()
		begun := time.Now()
		for range 5 { // progress each 0.9 s
			time.Sleep(900 * time.Millisecond)
			w.expect(time.Second)
		}
		w.expect(0)
		time.Sleep(time.Hour)
		w.expect(time.Minute)
		w.expect(time.Second) // sooner than the timer was set for
		if ctx.Err() != nil || w.expired() {
			t.Fatal("ended though there was progress")
		}
		<-ctx.Done()
		if took := time.Since(begun); took != 5*900*time.Millisecond+time.Hour+time.Second || !w.expired() {
			t.Errorf("ended after %v, late: %v", took, w.expired())
		}
		ctx, idle := newWatchdog(t.Context(), 0)
		idle.expect(time.Second)
		idle.stop()
		time.Sleep(time.Hour)
		if ctx.Err() == nil || idle.expired() {
			t.Errorf("stopped: %v, late: %v", ctx.Err(), idle.expired())
		}
	})
}
