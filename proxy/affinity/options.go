package affinity

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Endpoint is one server of a model, as far as placement looks at it.
type Endpoint struct {
	Name    string        // unique among the endpoints of a Placer
	Address string        // of the server; what was learnt of an endpoint holds for one of the same name and address
	Weight  float64       // how many keys are at home here, relative to others; positive
	Tokens  int           // that its key-value cache holds: num_gpu_blocks x block_size of vLLM; 0 means not known
	Seats   int           // requests that it runs at once, vLLM's max_num_seqs; 0 means not known
	Prefill time.Duration // that it is assumed to take for a prompt token before it was observed; 0 takes Options.Prefill
}

// Options tunes a Placer. The zero value is not usable; start from DefaultOptions.
type Options struct {
	// Prefill is what an endpoint is assumed to take for a prompt token before it was observed.
	Prefill time.Duration
	// Crowd is what each running request is assumed to cost a new one.
	Crowd time.Duration
	// Speculative, Predicted and Confirmed are how long a block counts as held on each basis. A
	// speculative block holds for longer while the request that brings it is expected to take
	// longer.
	Speculative, Predicted, Confirmed time.Duration
	// Leave and LeaveBy are what must be saved for a request not to go home: a share of the cost at
	// home in [0,1), and a time. Both must be exceeded.
	Leave   float64
	LeaveBy time.Duration
	// Burden is how many seconds a second of computing a prompt counts, at least 1: it also delays
	// whatever comes after it, and pushes other prompts out of the cache.
	Burden float64
	// Prior is the share of a prompt, in [0,1], that its home is taken to have when nothing is
	// known of it.
	Prior float64
	// Hot is the share of an endpoint above which a key gets another home; Homes is how many it
	// gets at most.
	Hot   float64
	Homes int
	// Board tells other proxies; nil when there are none.
	Board Board
}

// DefaultOptions returns the usual options. The times are those of the design; a prompt token takes
// what it takes an 8B model on one GPU, and is learnt after a few requests; the burden and the
// prior were chosen by bench/memory.
func DefaultOptions() Options {
	return Options{
		Prefill: 60 * time.Microsecond, Crowd: 5 * time.Millisecond,
		Speculative: 2 * time.Second, Predicted: 10 * time.Minute, Confirmed: 30 * time.Minute,
		Leave: 0.10, LeaveBy: 50 * time.Millisecond, Burden: 2, Prior: 0.25, Hot: 0.7, Homes: 4,
	}
}

// Validate reports every problem of o at once, joined, or nil.
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

// validate reports every problem of the endpoints at once, joined, or nil.
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
