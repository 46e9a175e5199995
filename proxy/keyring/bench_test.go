package keyring_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"signalbox/proxy/auth"
	"signalbox/proxy/keyring"
)

// fixed is a Store that never changes.
type fixed map[string]string

func (f fixed) Load(context.Context, string) (map[string]string, string, error) { return f, "1", nil }

func (fixed) Swap(context.Context, string, string, string, int) error { return keyring.ErrUnavailable }

func BenchmarkIdentifyAmong(b *testing.B) {
	for _, n := range []int{1, 10_000, 100_000} {
		store := fixed{}
		secret := ""
		for i := range n {
			id := strings.Repeat("a", 10) + string([]byte{'a' + byte(i/456_976%26), 'a' + byte(i/17_576%26), 'a' + byte(i/676%26), 'a' + byte(i/26%26), 'a' + byte(i%26), 'a'})
			secret = "sk-sbv-" + id + "-" + strings.Repeat("A", 52)
			name := fmt.Sprintf("key-%d", i)
			store[name] = fmt.Sprintf(`{"id":%q,"name":%q,"sha256":"%x","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}`,
				id, name, sha256.Sum256([]byte(secret)))
		}
		ring := keyring.New(store, keyring.Options{Max: n, Refresh: time.Second})
		if err := ring.Look(b.Context()); err != nil {
			b.Fatal(err)
		}
		keys, err := auth.New(auth.Options{Mode: auth.ModeKeys, DefaultTenant: "default"})
		if err != nil {
			b.Fatal(err)
		}
		keys.Accept(ring)
		h := http.Header{"Authorization": {"Bearer " + secret}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keys.Identify(b.Context(), h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
