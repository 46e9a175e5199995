package downstream

import (
	"net/http"
	"regexp"
	"sync"
	"testing"
)

func TestMadeIDsDiffer(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^req_[A-Z2-7]{26}$`)
	const each = 2000
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards seen
		seen = map[string]bool{}
	)
	for range 8 {
		wg.Go(func() {
			for range each {
				id := RequestID(http.Header{})
				if !shape.MatchString(id) {
					t.Errorf("an id is %q", id)
				}
				mu.Lock()
				seen[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(seen) != 8*each {
		t.Errorf("%d ids of %d differ", len(seen), 8*each)
	}
}
