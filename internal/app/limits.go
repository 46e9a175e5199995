package app

import (
	"context"
	"errors"
	"slices"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/rate"
)

// sharedLimits counts the usage of callers in Redis, for all replicas. A group is a tenant, whose
// keys are in one slot.
type sharedLimits struct {
	redis   *redis.Store
	metrics *telemetry.Metrics
}

// alone counts a request that Redis did not count, unless its client has left, and returns the
// reason. Queries of the remaining limits, for example when an operator views a key, are not
// counted.
func alone(ctx context.Context, m *telemetry.Metrics, r *redis.Store, what string, err error) error {
	switch {
	case err == nil, ctx.Err() != nil:
	case errors.Is(err, ledger.ErrFull):
		m.CountedLocally(what, telemetry.RedisFull)
	case r.Healthy():
		m.CountedLocally(what, telemetry.RedisLate)
	default:
		m.CountedLocally(what, telemetry.RedisAway)
	}
	return err
}

var _ rate.Remote = sharedLimits{}

// Charge implements rate.Remote.
func (s sharedLimits) Charge(ctx context.Context, group string, charges []rate.Charge) ([]float64, bool, error) {
	out := make([]redis.Charge, len(charges))
	for i, c := range charges {
		out[i] = redis.Charge(c)
	}
	full, fits, err := s.redis.Rate(ctx, ledger.TenantOf(group), out)
	if looks := !slices.ContainsFunc(charges, func(c rate.Charge) bool { return c.N != 0 }); looks {
		return full, fits, err
	}
	return full, fits, alone(ctx, s.metrics, s.redis, "rate", err)
}

// Enter implements rate.Remote.
func (s sharedLimits) Enter( //nolint:revive // force tells a renewal from a request
	ctx context.Context, group string, flights []rate.Flight, ttl time.Duration, force bool,
) ([]int, bool, error) {
	used, fits, err := s.redis.Enter(ctx, ledger.TenantOf(group), flightsOf(flights), ttl, force)
	if force { // a renewal for a request in flight
		return used, fits, err
	}
	return used, fits, alone(ctx, s.metrics, s.redis, "concurrency", err)
}

// Leave implements rate.Remote.
func (s sharedLimits) Leave(ctx context.Context, group string, flights []rate.Flight) error {
	return s.redis.Leave(ctx, ledger.TenantOf(group), flightsOf(flights))
}

func flightsOf(flights []rate.Flight) []redis.Flight {
	out := make([]redis.Flight, len(flights))
	for i, f := range flights {
		out[i] = redis.Flight(f)
	}
	return out
}
