package gpu

import (
	"sync"
	"syscall"
	"testing"
)

func TestRunsOfADeviceStayOnAFewThreads(t *testing.T) {
	t.Parallel()
	const most, callers = 2, 40
	threads := newOSThreads(most)
	defer threads.close()
	var mu sync.Mutex
	seen, ran, busy := map[int]bool{}, 0, 0
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range 25 {
				threads.do(func() {
					mu.Lock()
					seen[syscall.Gettid()] = true
					ran++
					busy++
					if busy > most {
						t.Errorf("%d run at once", busy)
					}
					mu.Unlock()
					syscall.Getpid()
					mu.Lock()
					busy--
					mu.Unlock()
				})
			}
		})
	}
	wg.Wait()
	if ran != callers*25 || len(seen) > most {
		t.Errorf("%d runs on %d threads", ran, len(seen))
	}
}
