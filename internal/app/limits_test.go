package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
	"signalbox/internal/testkit/hostile"
)

// redisTime is how long a request waits for Redis: on a busy machine an answer is late, and then
// each replica counts by itself.
func redisTime() string {
	if testkit.Timed() {
		return "8ms"
	}
	return "1m"
}

// instant is a model server that answers at once.
func instant(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

const plainRequest = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`

// key is the key of a caller.
func key(caller int) string { return fmt.Sprintf("key-%d", caller) }

func TestReplicasShareTheLimitsOfCallers(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	var keys strings.Builder
	for i := range 6 {
		fmt.Fprintf(&keys, "{name: caller-%d, sha256: %x, rate: {rpm: 12}}, ", i,
			sha256.Sum256([]byte(key(i))))
	}
	yaml := fmt.Sprintf(`
models: [{name: m, endpoints: [{name: a, url: "%s/v1"}], health: {path: "off"}}]
default: {models: [m]}
auth: {mode: keys, keys: [%s]}
memory: {salt_secret: "${SALT}", redis: {url: "%s", limit_timeout: %s}}
`, instant(t), keys.String(), redis.URL(), redisTime())
	env := func(name string) (string, bool) {
		if name == "SALT" {
			return "0123456789abcdef0123456789abcdef", true
		}
		return os.LookupEnv(name)
	}
	var replicas [2]*server
	for i := range replicas {
		cfg, _, err := config.Parse("test.yaml", []byte(yaml), env, Catalog)
		if err != nil {
			t.Fatal(err)
		}
		replicas[i] = serve(t, cfg, flags(t))
	}
	caller := 0
	let := func(n int, s ...*server) (in int) {
		for i := range n {
			switch a := s[i%len(s)].post(t, "/v1/chat/completions", plainRequest, "Authorization",
				"Bearer "+key(caller)); a.status {
			case 200:
				in++
			case 429:
			default:
				t.Fatalf("status %d with %s", a.status, a.body)
			}
		}
		return in
	}
	// A call that Redis answers late counts in the replica alone, which on a busy machine happens
	// to many. Replicas that do not share let 24 in of every caller, so one caller of several shows
	// it.
	in := let(30, replicas[:]...)
	for ; in > 18 && caller < 5; in = let(30, replicas[:]...) {
		caller++
	}
	if in < 12 || in > 18 {
		t.Errorf("12 requests a minute are allowed, two replicas let %d in", in)
	}
	redis.Kill()
	if in := let(20, replicas[0]); in < 1 || in > 16 {
		t.Errorf("without Redis one replica let %d of 20 in", in)
	}
	page := do(t, http.MethodGet, replicas[0].admin+"/metrics", "").body
	if !strings.Contains(page, "signalbox_redis_up 0") ||
		!regexp.MustCompile(`limits_local_total\{reason="away",what="rate"\} [1-9]`).MatchString(page) {
		t.Error("metrics say nothing of a Redis that is away")
	}
	got := do(t, http.MethodGet, replicas[0].url+"/readyz", "")
	if !strings.Contains(got.body, "limits and budgets count per replica") {
		t.Errorf("readyz: %s", got.body)
	}
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		let(1, replicas[0])
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	if p50 := took[len(took)/2]; testkit.Timed() && p50 > 20*time.Millisecond {
		t.Errorf("without Redis a request takes %s", p50)
	}
}

// Two replicas let as many requests in at a time as one, and each as many by itself when Redis is
// gone.
func TestReplicasShareRequestsAtATime(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	model := hostile.Start(t, hostile.Options{Mode: "watch-ttft"})
	sum := sha256.Sum256([]byte("k"))
	yaml := fmt.Sprintf(`
models: [{name: m, endpoints: [{name: a, url: "%s"}], health: {path: "off"}}]
default: {models: [m]}
auth: {mode: keys, keys: [{name: caller, sha256: %s, rate: {concurrency: 3}}]}
memory: {salt_secret: "${SALT}", redis: {url: "%s", limit_timeout: %s}}
`, model.URL(), hex.EncodeToString(sum[:]), redis.URL(), redisTime())
	env := func(name string) (string, bool) {
		if name == "SALT" {
			return "0123456789abcdef0123456789abcdef", true
		}
		return os.LookupEnv(name)
	}
	var replicas [2]*server
	for i := range replicas {
		cfg, _, err := config.Parse("test.yaml", []byte(yaml), env, Catalog)
		if err != nil {
			t.Fatal(err)
		}
		replicas[i] = serve(t, cfg, flags(t))
	}
	// flood asks replica i twenty times and leaves what was let in under way, at the model server
	// or on its way there no more.
	var clients sync.WaitGroup
	defer clients.Wait()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	client := dialing(t, nil, http1Only)
	var refused atomic.Int64
	asked := 0
	flood := func(i int) {
		for range 20 {
			clients.Go(func() {
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, replicas[i].url+"/v1/chat/completions", strings.NewReader(plainRequest))
				if err != nil {
					return
				}
				req.Header.Set("Authorization", "Bearer k")
				if res, err := client.Do(req); err == nil {
					_ = res.Body.Close()
					if res.StatusCode == http.StatusTooManyRequests {
						refused.Add(1)
					}
				}
			})
		}
		asked += 20
		for end := time.Now().Add(testkit.Patience); int(refused.Load())+model.Requests() < asked; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("of %d requests %d were refused and %d arrived", asked, refused.Load(), model.Requests())
			}
		}
	}
	// One that Redis answers late counts in its replica alone: some more than 3 may be let in on a
	// busy machine, never more than each by itself.
	flood(0)
	flood(1)
	in := model.Requests()
	if in < 3 || in > 6 {
		t.Errorf("3 at a time are allowed, two replicas let %d in", in)
	}
	t.Logf("%d of 40 were let in", in)
	leave()
	clients.Wait()
	redis.Kill()
	ctx, leave = context.WithCancel(t.Context())
	defer leave()
	for end := time.Now().Add(testkit.Patience); model.Requests() == in && time.Now().Before(end); { // the first ones leave when their handlers have ended
		flood(1)
	}
	if by := model.Requests() - in; by < 1 || by > 3 {
		t.Errorf("without Redis one replica let %d in", by)
	}
	leave()
}
