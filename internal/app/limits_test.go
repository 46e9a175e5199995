package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/testkit"
)

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

func TestReplicasShareTheLimitsOfCallers(t *testing.T) {
	t.Parallel()
	redis := testkit.NewRedis(t)
	sum := sha256.Sum256([]byte("k"))
	yaml := fmt.Sprintf(`
models: [{name: m, endpoints: [{name: a, url: "%s/v1"}], health: {path: "off"}}]
default: {models: [m]}
auth: {mode: keys, keys: [{name: caller, sha256: %s, rate: {rpm: 12}}]}
memory: {salt_secret: "${SALT}", redis: {url: "%s"}}
`, instant(t), hex.EncodeToString(sum[:]), redis.URL())
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
		replicas[i] = serve(t, cfg, settings(t))
	}
	let := func(n int, s ...*server) (in int) {
		for i := range n {
			switch a := s[i%len(s)].post(t, "/v1/chat/completions", plainRequest, "Authorization", "Bearer k"); a.status {
			case 200:
				in++
			case 429:
			default:
				t.Fatalf("status %d with %s", a.status, a.body)
			}
		}
		return in
	}
	// A call that Redis answers late counts in the replica alone, and allowances come back meanwhile: some more than 12 may
	// pass on a busy machine, twice 12 must not.
	if in := let(30, replicas[:]...); in < 12 || in > 18 {
		t.Errorf("12 requests a minute are allowed, two replicas let %d in", in)
	}
	redis.Kill()
	if in := let(20, replicas[0]); in < 1 || in > 16 {
		t.Errorf("without Redis one replica let %d of 20 in", in)
	}
	var took []time.Duration
	for range 20 {
		begun := time.Now()
		let(1, replicas[0])
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	if p50 := took[len(took)/2]; p50 > 20*time.Millisecond {
		t.Errorf("without Redis a request takes %s", p50)
	}
}
