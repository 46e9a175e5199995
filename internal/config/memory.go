package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"signalbox/internal/option"
	"signalbox/memory"
	"signalbox/memory/page"
	"signalbox/memory/redis"
)

// Memory is the section `memory`: contexts, that is, texts that are stored once and then referenced
// by requests. Without the section they are kept in RAM, within the default quotas.
type Memory struct {
	// Enabled turns contexts on. If it is false, requests that reference a context are refused and
	// /v1/contexts is not served. Default true. Restart needed.
	Enabled bool `yaml:"enabled"`
	// L2Bytes limits the RAM for stored contexts, ready and packed ones together. Contexts used by
	// requests in flight may take more on top. At least 1MiB. Default 1GiB. Restart needed.
	L2Bytes option.Bytes `yaml:"l2_bytes"`
	// IdleToL2 is how long an unused context stays ready before it is packed. At least 1s. Default
	// 30s. Restart needed.
	IdleToL2 option.Duration `yaml:"idle_to_l2"`
	// IdleToL3 is how long an unused context stays in RAM before it is kept only in Redis. Without
	// Redis it stays in RAM. At least idle_to_l2. Default 5m. Restart needed.
	IdleToL3 option.Duration `yaml:"idle_to_l3"`
	// DefaultTTL is how long a context lives after its last use if it is created without a
	// lifetime. At least 10s, at most max_ttl. Default 1h. Restart needed.
	DefaultTTL option.Duration `yaml:"default_ttl"`
	// MaxTTL is the longest lifetime that a caller may request for a context. At least 10s. Default
	// 168h. Restart needed.
	MaxTTL option.Duration `yaml:"max_ttl"`
	// Durability is what happens to a request that creates a context, and names no durability
	// itself, while Redis is unreachable: strict refuses it; best_effort keeps the context in RAM
	// until Redis is back. Default strict. Restart needed.
	Durability string `yaml:"durability" words:"strict best_effort"`
	// DeriveTimeout limits how long the safety signals may read a new context. What is not read by
	// then is unknown, and routes that fail closed treat it as unsafe. At least 1s. Default 5m.
	// Restart needed.
	DeriveTimeout option.Duration `yaml:"derive_timeout"`
	// Quotas limits what each tenant may store. Reloadable.
	Quotas MemoryQuota `yaml:"quotas"`
	// Tenants overrides quotas for individual tenants. A key that is left out takes the value of
	// quotas. Reloadable.
	Tenants []MemoryTenant `yaml:"tenants"`
	// Redis is the third tier of contexts, shared by replicas. Without it, contexts exist in this
	// process only and are lost when it ends.
	Redis MemoryRedis `yaml:"redis"`
	// SaltSecret keys the salts of the prefixes that model servers cache, so that tenants cannot
	// infer from response times what others asked. Forwarded credentials enter the keys of the
	// response cache hashed with it. A reference, ${NAME} or file:PATH. All replicas need the same
	// value. Default: generated at start. Restart needed.
	SaltSecret string `yaml:"salt_secret" secret:"true"`
}

// MemoryQuota limits what one tenant may store. 0 selects the default.
type MemoryQuota struct {
	// Contexts is the maximum number of stored contexts, and sessions with facts. Default 10000.
	Contexts int64 `yaml:"contexts"`
	// Bytes limits the total size of contexts and facts, unpacked; content that is stored twice
	// counts once. Default 1GiB.
	Bytes option.Bytes `yaml:"bytes"`
	// PinnedBytes limits the total text size of pinned contexts. Default 256MiB.
	PinnedBytes option.Bytes `yaml:"pinned_bytes"`
	// ContextBytes limits the text size of one context. Default 16MiB.
	ContextBytes option.Bytes `yaml:"context_bytes"`
	// Versions is the maximum number of versions of one context. Default 1000.
	Versions int `yaml:"versions"`
	// Facts is the maximum number of facts of one context or session. Default 512.
	Facts int `yaml:"facts"`
	// FactBytes limits the total text size of the facts of one context or session. Default 64KiB.
	FactBytes option.Bytes `yaml:"fact_bytes"`
}

// MemoryTenant is the quota of one tenant.
type MemoryTenant struct {
	// Name is the name of the tenant, as in auth. Required, unique.
	Name        string `yaml:"name"`
	MemoryQuota `yaml:",inline"`
}

// MemoryRedis configures the Redis in which replicas keep shared data: contexts, cached responses
// and where prompts were sent.
type MemoryRedis struct {
	// URL is the address of Redis: redis://HOST:PORT/DATABASE, rediss:// for TLS, or unix://PATH. A
	// URL with a password must be a reference, such as ${REDIS_URL}. Requires Redis 7 or newer with
	// maxmemory-policy noeviction. Empty, the default: no Redis. Restart needed.
	URL string `yaml:"url" secret:"may"`
	// Prefix is the prefix of every key. Default cx. Restart needed.
	Prefix string `yaml:"prefix"`
	// LimitTimeout limits how long a request waits while it is counted against the rate limits of
	// its caller. If Redis answers later, only this replica counts the request. Default 8ms.
	// Restart needed.
	LimitTimeout option.Duration `yaml:"limit_timeout"`
	// MetaTimeout limits the time to read one record. Default 20ms. Restart needed.
	MetaTimeout option.Duration `yaml:"meta_timeout"`
	// BlobTimeout limits the time to read one text. Default 250ms. Restart needed.
	BlobTimeout option.Duration `yaml:"blob_timeout"`
	// WriteTimeout limits the time to write a record or a text. Default 5s. Restart needed.
	WriteTimeout option.Duration `yaml:"write_timeout"`
}

// The values of Memory.Durability.
const (
	DurabilityStrict     = "strict"
	DurabilityBestEffort = "best_effort"
)

// DefaultMemory returns the options of an empty section.
func DefaultMemory() Memory {
	store, pages, remote := memory.DefaultOptions(), page.DefaultOptions(), redis.DefaultOptions()
	return Memory{
		Enabled: true, L2Bytes: option.Bytes(pages.Bytes), IdleToL2: option.Duration(pages.IdleHot), IdleToL3: option.Duration(pages.IdleL2),
		DefaultTTL: option.Duration(store.TTL), MaxTTL: option.Duration(store.MaxTTL), Durability: DurabilityStrict,
		DeriveTimeout: option.Duration(5 * time.Minute),
		Redis: MemoryRedis{
			Prefix: remote.Prefix, LimitTimeout: option.Duration(remote.RateBudget),
			MetaTimeout: option.Duration(remote.MetaBudget), BlobTimeout: option.Duration(remote.BlobBudget),
			WriteTimeout: option.Duration(remote.WriteBudget),
		},
	}
}

// minLife is the shortest life of a context that the store takes.
const minLife = option.Duration(10 * time.Second)

// Validate reports every bad option, one "field: problem" a line.
func (m *Memory) Validate() error {
	var p option.Problems
	if m.L2Bytes < 1<<20 {
		p.Addf("l2_bytes", "%d is less than 1MiB", m.L2Bytes)
	}
	option.AtLeast(&p, "idle_to_l2", m.IdleToL2, option.Duration(time.Second))
	if m.IdleToL3 < m.IdleToL2 {
		p.Addf("idle_to_l3", "%s is less than idle_to_l2, %s", m.IdleToL3, m.IdleToL2)
	}
	option.AtLeast(&p, "max_ttl", m.MaxTTL, minLife)
	if m.DefaultTTL < minLife || m.DefaultTTL > m.MaxTTL {
		p.Addf("default_ttl", "%s is not between %s and max_ttl, %s", m.DefaultTTL, minLife, m.MaxTTL)
	}
	option.AtLeast(&p, "derive_timeout", m.DeriveTimeout, option.Duration(time.Second))
	m.Quotas.check(&p, "quotas.")
	seen := option.Unique{}
	for i := range m.Tenants {
		at := fmt.Sprintf("tenants[%d].", i)
		p.Name(at+"name", m.Tenants[i].Name)
		seen.Check(&p, at+"name", m.Tenants[i].Name)
		m.Tenants[i].check(&p, at)
	}
	m.Redis.check(&p)
	return p.Err()
}

func (q *MemoryQuota) check(p *option.Problems, at string) {
	for _, f := range []struct {
		field string
		n     int64
	}{
		{"contexts", q.Contexts},
		{"versions", int64(q.Versions)},
		{"facts", int64(q.Facts)},
	} {
		option.NotNegative(p, at+f.field, f.n)
	}
}

func (r *MemoryRedis) check(p *option.Problems) {
	if r.URL != "" && !isRedis(r.URL) {
		p.Addf("redis.url", "not of the form redis://HOST:PORT/DATABASE with a port up to 65535, "+
			"rediss:// or unix://PATH") // the value may hold a password
	}
	if r.Prefix == "" || len(r.Prefix) > 64 || !option.VisibleASCII(r.Prefix) || slices.ContainsFunc([]byte(r.Prefix), isTag) {
		p.Addf("redis.prefix", "%q is not a word of 1 to 64 visible ASCII characters without braces", r.Prefix)
	}
	for _, d := range []struct {
		field string
		d     option.Duration
	}{{"limit_timeout", r.LimitTimeout}, {"meta_timeout", r.MetaTimeout}, {"blob_timeout", r.BlobTimeout}, {"write_timeout", r.WriteTimeout}} {
		option.AtLeast(p, "redis."+d.field, d.d, option.Duration(time.Millisecond))
	}
}

// isTag reports a byte that would begin or end a hash tag in a key.
func isTag(c byte) bool { return c == '{' || c == '}' }

func isRedis(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	switch u.Scheme {
	case "redis", "rediss":
		return u.Host != "" && option.Port(u) == nil
	case "unix":
		return u.Path != ""
	}
	return false
}

// Of is the quota of a tenant.
func (m *Memory) Of(tenant string) memory.Quota {
	q := m.Quotas.quota(memory.Quota{})
	for i := range m.Tenants {
		if m.Tenants[i].Name == tenant {
			return m.Tenants[i].quota(q)
		}
	}
	return q
}

// quota is q with what the section names.
func (q *MemoryQuota) quota(base memory.Quota) memory.Quota {
	return memory.Quota{
		Contexts:     cmp.Or(max(q.Contexts, 0), base.Contexts),
		Bytes:        cmp.Or(max(int64(q.Bytes), 0), base.Bytes),
		PinnedBytes:  cmp.Or(max(int64(q.PinnedBytes), 0), base.PinnedBytes),
		ContextBytes: cmp.Or(max(int64(q.ContextBytes), 0), base.ContextBytes),
		FactBytes:    cmp.Or(max(int64(q.FactBytes), 0), base.FactBytes),
		Versions:     cmp.Or(max(q.Versions, 0), base.Versions),
		Facts:        cmp.Or(max(q.Facts, 0), base.Facts),
	}
}

// memory checks the section.
func (c *checker) memory() {
	m := &c.cfg.Memory
	words := []string{DurabilityStrict, DurabilityBestEffort}
	if !slices.Contains(words, m.Durability) {
		c.at("memory.durability", "%q is neither strict nor best_effort%s", m.Durability,
			meant("; ", m.Durability, words))
	}
	c.section("memory", m.Validate())
	if !m.Enabled && !c.hasRedis() && len(m.Tenants) > 0 && !c.broken("memory") {
		c.warn("memory.tenants", "contexts are disabled, so the quotas of %d tenants have no effect", len(m.Tenants))
	}
	if m.Redis.URL != "" && m.SaltSecret == "" && !c.broken("memory") {
		c.warn("memory.redis.url", "memory.salt_secret is not set: each replica generates its own, so replicas cannot use each other's cached prefixes on the model servers")
	}
	if !m.Enabled {
		c.eachCondition(c.contextsTurnedOff)
	}
	if m.Durability == DurabilityBestEffort && !c.hasRedis() && !c.broken("memory") {
		c.warn("memory.durability", "without redis nothing outlives this process, so durability has no effect")
	}
}

// contextsTurnedOff warns of conditions that ask for contexts where there are none.
func (c *checker) contextsTurnedOff(key, val *yaml.Node, path string) bool {
	switch key.Value {
	case "has":
		if lists(val, "context") {
			c.warn(path, "contexts are disabled (memory.enabled), so no request has one")
		}
	case "context_tokens":
		c.warn(path, "contexts are disabled (memory.enabled), so this is always 0")
	default:
		return false
	}
	return true
}

// lists reports whether a value is a word, or a list that holds it.
func lists(n *yaml.Node, word string) bool {
	return n.Value == word || slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return item.Value == word })
}
