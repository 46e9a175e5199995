package app

import (
	"context"
	"slices"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/budget"
)

// sharedBudgets stores the spending of callers in Redis, for all replicas. A group is a tenant.
type sharedBudgets struct {
	redis   *redis.Store
	metrics *telemetry.Metrics
}

var _ budget.Remote = sharedBudgets{}

// Reserve implements budget.Remote.
func (s sharedBudgets) Reserve(
	ctx context.Context, group, id string, spends []budget.Spend, ttl time.Duration,
) ([]budget.Taken, bool, error) {
	taken, fits, err := s.redis.Reserve(ctx, ledger.TenantOf(group), id, spendsOf(spends), ttl)
	out := make([]budget.Taken, len(taken))
	for i, x := range taken {
		out[i] = budget.Taken(x)
	}
	if looks := !slices.ContainsFunc(spends, func(x budget.Spend) bool { return x.Room >= 0 }); looks {
		return out, fits, err
	}
	return out, fits, alone(ctx, s.metrics, s.redis, "budget", err)
}

// Settle implements budget.Remote.
func (s sharedBudgets) Settle(ctx context.Context, group, id string, spends []budget.Spend, owed bool) error {
	return s.redis.Settle(ctx, ledger.TenantOf(group), id, spendsOf(spends), owed)
}

func spendsOf(spends []budget.Spend) []redis.Spend {
	out := make([]redis.Spend, len(spends))
	for i, x := range spends {
		out[i] = redis.Spend(x)
	}
	return out
}
