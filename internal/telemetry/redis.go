package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// redisGauge is read when the metrics are read. It is not exported without Redis.
type redisGauge struct {
	up atomic.Pointer[func() bool]
}

// WatchRedis sets the function that reports whether Redis responds; up is called from many
// goroutines.
func (m *Metrics) WatchRedis(up func() bool) { m.redis.up.Store(&up) }

// The reasons why a replica counts limits and budgets locally.
const (
	RedisAway = "away" // Redis does not respond, which signalbox_redis_up reports as well
	RedisLate = "late" // Redis responds, but not in time for this request
	RedisFull = "full" // Redis has no memory left for the counters
)

// CountedLocally counts a request for which this replica counts something locally: rate,
// concurrency or budget. reason is one of those above.
func (m *Metrics) CountedLocally(what, reason string) { m.local.add(1, what, reason) }

func (g *redisGauge) register(m *maker) {
	answers := m.watched("signalbox_redis_up",
		"1 while memory.redis responds, 0 while it does not and each replica "+
			"counts limits and budgets by itself; absent without memory.redis.")
	m.read(func(o metric.Observer) {
		if up := g.up.Load(); up != nil {
			o.ObserveInt64(answers, bit((*up)()))
		}
	}, answers)
}
