package pool

import "sync/atomic"

// Budget limits retries to a share of the requests. Tokens are stored in thousandths, so that one
// atomic word suffices. It is safe for concurrent use; NewBudget makes one.
type Budget struct{ tokens atomic.Int64 }

const (
	oneRetry    = 1000
	budgetBurst = 10 * oneRetry // retries available without any requests before them
)

// NewBudget returns a budget that allows a burst of 10 retries.
func NewBudget() *Budget {
	b := new(Budget)
	b.tokens.Store(budgetBurst)
	return b
}

// Earn adds the retries that one request earns: share, in [0,1].
func (b *Budget) Earn(share float64) {
	if n := b.tokens.Add(int64(share * oneRetry)); n > budgetBurst {
		b.tokens.Add(budgetBurst - n)
	}
}

// Spend takes one retry; it returns false if there is none left.
func (b *Budget) Spend() bool {
	if b.tokens.Add(-oneRetry) < 0 {
		b.tokens.Add(oneRetry)
		return false
	}
	return true
}
