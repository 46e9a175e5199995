package affinity

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Endpoint is one server of a model, as placement sees it.
type Endpoint struct {
	Name string // unique among the endpoints of a Placer
	// URL of the server; what was learned applies to an endpoint with the same name and address
	Address string
	// share of keys that have their home here, relative to other endpoints; positive
	Weight float64
	Tokens int // size of its key-value cache: num_gpu_blocks x block_size in vLLM; 0 if unknown
	Seats  int // requests that it runs at once, vLLM's max_num_seqs; 0 if unknown
	// assumed time per prompt token before it is measured; 0 means Options.Prefill
	Prefill time.Duration
}

// Options tunes a Placer. The zero value is not usable; start from DefaultOptions.
type Options struct {
	// Prefill is the assumed time per prompt token before an endpoint is measured.
	Prefill time.Duration
	// Crowd is the assumed cost that each running request adds for a new one.
	Crowd time.Duration
	// Speculative, Predicted and Confirmed are how long a block counts as cached on each basis. A
	// speculative block counts for longer when its request is expected to take longer.
	Speculative, Predicted, Confirmed time.Duration
	// Leave and LeaveBy are the minimum savings for a request to leave its home: a share of the
	// cost at home in [0,1), and a time. Both must be exceeded.
	Leave   float64
	LeaveBy time.Duration
	// Burden is the weight of the seconds spent computing a prompt, at least 1: the computation
	// also delays later requests and evicts other prompts from the cache.
	Burden float64
	// Prior is the share of a prompt, in [0,1], that its home is assumed to have when nothing is
	// known.
	Prior float64
	// Hot is the share of an endpoint's time above which a key gets another home; Homes is the
	// maximum number of homes.
	Hot   float64
	Homes int
	// Board informs other proxies; nil if there are none.
	Board Board
}

// DefaultOptions returns the default options. The prefill time is that of an 8B model on one GPU
// and is replaced by a measurement after a few requests. The burden and the prior were chosen with
// bench/memory.
func DefaultOptions() Options {
	return Options{
		Prefill: 60 * time.Microsecond, Crowd: 5 * time.Millisecond,
		Speculative: 2 * time.Second, Predicted: 10 * time.Minute, Confirmed: 30 * time.Minute,
		Leave: 0.10, LeaveBy: 50 * time.Millisecond, Burden: 2, Prior: 0.25, Hot: 0.7, Homes: 4,
	}
}

// Validate returns all problems of o, joined, or nil.
func (o *Options) Validate() error {
	var problems []error
	for _, d := range []struct {
		name       string
		value, min time.Duration
	}{
		{"prefill", o.Prefill, 1},
		{"crowd", o.Crowd, 0},
		{"speculative", o.Speculative, tick},
		{"predicted", o.Predicted, tick},
		{"confirmed", o.Confirmed, tick},
		{"leave_by", o.LeaveBy, 0},
	} {
		if d.value < d.min {
			problems = append(problems, fmt.Errorf("%s: %v is less than %v", d.name, d.value, d.min))
		}
	}
	if !(o.Leave >= 0 && o.Leave < 1) {
		problems = append(problems, fmt.Errorf("leave: %v is not in [0,1)", o.Leave))
	}
	if !(o.Burden >= 1) || math.IsInf(o.Burden, 0) {
		problems = append(problems, fmt.Errorf("burden: %v is less than 1", o.Burden))
	}
	if !(o.Prior >= 0 && o.Prior <= 1) {
		problems = append(problems, fmt.Errorf("prior: %v is not in [0,1]", o.Prior))
	}
	if !(o.Hot > 0) {
		problems = append(problems, fmt.Errorf("hot: %v is not positive", o.Hot))
	}
	if o.Homes < 1 {
		problems = append(problems, fmt.Errorf("homes: %d is less than 1", o.Homes))
	}
	return errors.Join(problems...)
}

// validate returns all problems of the endpoints, joined, or nil.
func validate(endpoints []Endpoint) error {
	var problems []error
	if n := len(endpoints); n == 0 || n > MaxEndpoints {
		problems = append(problems, fmt.Errorf("%d endpoints, want 1 to %d", n, MaxEndpoints))
	}
	seen := map[string]bool{}
	for i, e := range endpoints {
		if seen[e.Name] {
			problems = append(problems, fmt.Errorf("endpoints[%d]: name %q is taken", i, e.Name))
		}
		seen[e.Name] = true
		if !(e.Weight > 0) || math.IsInf(e.Weight, 0) {
			problems = append(problems, fmt.Errorf("endpoints[%d]: weight %v is not positive", i, e.Weight))
		}
		if e.Prefill < 0 {
			problems = append(problems, fmt.Errorf("endpoints[%d]: prefill %v is negative", i, e.Prefill))
		}
		if e.Tokens < 0 || e.Seats < 0 {
			problems = append(problems, fmt.Errorf("endpoints[%d]: tokens %d and seats %d must not be negative", i, e.Tokens, e.Seats))
		}
	}
	return errors.Join(problems...)
}
