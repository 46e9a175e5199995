package telemetry

import (
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"
)

// redisGauge is read when metrics are. Without a Redis it is not told.
type redisGauge struct {
	up atomic.Pointer[func() bool]
}

// WatchRedis says where it is read whether Redis answers; up is called from many goroutines.
func (m *Metrics) WatchRedis(up func() bool) { m.redis.up.Store(&up) }

// Why a replica counts limits and budgets alone.
const (
	RedisAway = "away" // Redis does not answer, which signalbox_redis_up tells as well
	RedisLate = "late" // it answers others, and not this request in time
	RedisFull = "full" // it has no memory left for what it should count
)

// CountedLocally counts a request of which this replica counts something alone: rate, concurrency
// or budget. reason is one of those above.
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
