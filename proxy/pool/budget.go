package pool

import "sync/atomic"

// Budget bounds retries to a share of the requests. It holds tokens in thousandths, so that
// counting needs one atomic word. It is safe for concurrent use; NewBudget makes one.
type Budget struct{ tokens atomic.Int64 }

const (
	oneRetry    = 1000
	budgetBurst = 10 * oneRetry // retries that need no requests before them
)

// NewBudget makes a budget that allows a burst of 10 retries.
func NewBudget() *Budget {
	b := new(Budget)
	b.tokens.Store(budgetBurst)
	return b
}

// Earn adds what one request brings: share, in [0,1], of a retry.
func (b *Budget) Earn(share float64) {
	if n := b.tokens.Add(int64(share * oneRetry)); n > budgetBurst {
		b.tokens.Add(budgetBurst - n)
	}
}

// Spend takes one retry; false when there is none.
func (b *Budget) Spend() bool {
	if b.tokens.Add(-oneRetry) < 0 {
		b.tokens.Add(oneRetry)
		return false
	}
	return true
}
