package app

import (
	"context"

	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/rate"
)

// sharedLimits counts the minutes of callers in Redis, for all replicas.
type sharedLimits struct{ redis *redis.Store }

var _ rate.Remote = sharedLimits{}

// Charge implements rate.Remote. The group is the tenant, whose keys are in one slot.
func (s sharedLimits) Charge(ctx context.Context, group string, charges []rate.Charge) ([]float64, bool, error) {
	out := make([]redis.Charge, len(charges))
	for i, c := range charges {
		out[i] = redis.Charge(c)
	}
	return s.redis.Rate(ctx, ledger.TenantOf(group), out)
}
