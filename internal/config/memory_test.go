package config_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/config"
	"signalbox/internal/option"
	"signalbox/memory"
)

const oneModel = "models: [{name: small, endpoints: [{name: a, url: http://127.0.0.1:8000/v1}]}]\ndefault: {models: [small]}\n"

func parseMemory(t *testing.T, section string) *config.Config {
	t.Helper()
	env := func(name string) (string, bool) {
		switch name {
		case "REDIS_URL":
			return "rediss://user:hunter2@redis.internal:6380/3", true
		case "SALT":
			return "pepper", true
		}
		return "", false
	}
	cfg, _, err := config.Parse("memory.yaml", []byte(oneModel+section), env, catalog)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestContextsNeedNoSection(t *testing.T) {
	for _, section := range []string{"", "memory:\n", "memory: {}\n"} {
		if diff := cmp.Diff(config.DefaultMemory(), parseMemory(t, section).Memory); diff != "" {
			t.Errorf("%q (-want +got):\n%s", section, diff)
		}
	}
	m := parseMemory(t, "").Memory
	if !m.Enabled || m.L2Bytes != 1<<30 || m.IdleToL2 != option.Duration(30*time.Second) || m.IdleToL3 != option.Duration(5*time.Minute) ||
		m.DefaultTTL != option.Duration(time.Hour) || m.Redis.URL != "" {
		t.Errorf("defaults are %+v", m)
	}
}

func TestAQuotaOfATenantReplacesWhatItNames(t *testing.T) {
	m := parseMemory(t, `
memory:
  quotas: {contexts: 100, context_bytes: 1MiB, facts: 7}
  tenants: [{name: acme, contexts: 5, fact_bytes: 1KiB}]
`).Memory
	want := memory.Quota{Contexts: 100, ContextBytes: 1 << 20, Facts: 7}
	if diff := cmp.Diff(want, m.Of("other")); diff != "" {
		t.Errorf("other (-want +got):\n%s", diff)
	}
	want.Contexts, want.FactBytes = 5, 1<<10
	if diff := cmp.Diff(want, m.Of("acme")); diff != "" {
		t.Errorf("acme (-want +got):\n%s", diff)
	}
}

func TestTheAddressOfRedisMayBeAReference(t *testing.T) {
	m := parseMemory(t, "memory: {redis: {url: '${REDIS_URL}'}, salt_secret: '${SALT}'}\n").Memory
	if m.Redis.URL != "rediss://user:hunter2@redis.internal:6380/3" || m.SaltSecret != "pepper" {
		t.Errorf("redis %q, salt %q", m.Redis.URL, m.SaltSecret)
	}
	for _, url := range []string{"redis://127.0.0.1:6379/0", "unix:///run/redis.sock", "redis://redis"} {
		if got := parseMemory(t, "memory: {redis: {url: '"+url+"'}}\n").Memory.Redis.URL; got != url {
			t.Errorf("%s is read as %q", url, got)
		}
	}
}

func TestQuotasChangeWhileRunningAndNothingElseOfTheSectionDoes(t *testing.T) {
	old := parseMemory(t, "memory: {l2_bytes: 2GiB, quotas: {contexts: 1}}\n")
	next := parseMemory(t, `
memory:
  enabled: false
  l2_bytes: 3GiB
  quotas: {contexts: 2}
  tenants: [{name: acme, contexts: 5}]
  redis: {url: '${REDIS_URL}', prefix: sb}
  salt_secret: '${SALT}'
`)
	var named []string
	for _, name := range old.RestartNeeded(next) {
		if strings.HasPrefix(name, "memory") {
			named = append(named, name)
		}
	}
	if want := []string{"memory.enabled", "memory.l2_bytes", "memory.redis.prefix", "memory.redis.url", "memory.salt_secret"}; !slices.Equal(named, want) {
		t.Errorf("a restart is needed for %v, want %v", named, want)
	}
	next.KeepRestartOnly(old)
	m := &next.Memory
	if m.L2Bytes != 2<<30 || !m.Enabled || m.Redis.URL != "" || m.Of("x").Contexts != 2 || m.Of("acme").Contexts != 5 {
		t.Errorf("kept %+v", m)
	}
}
