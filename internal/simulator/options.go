package simulator

import (
	"errors"
	"fmt"
	"time"

	"signalbox/internal/option"
	"signalbox/internal/simulator/kv"
)

// The fields of a delta that vLLM has used for a model's reasoning. `reasoning_content` is the
// older name and the one most clients know; vLLM's main branch writes `reasoning`.
const (
	ReasoningContentField = "reasoning_content"
	ReasoningField        = "reasoning"
)

// Options configures a Server. The zero value is not usable; start from DefaultOptions.
type Options struct {
	// Model is the served name: the one in /v1/models, and the only accepted `model`. Required.
	Model string
	// TTFT is the time from a request's admission to its first token; 0 means none.
	TTFT time.Duration
	// TPOT is the time between two tokens of a response; 0 means none.
	TPOT time.Duration
	// Seed determines request ids and filler sentences.
	Seed uint64
	// MaxModelLen is the context window in simulated tokens, prompt and response together. At least
	// 1.
	MaxModelLen int
	// MaxNumSeqs limits the number of concurrent requests. The others wait and count as
	// vllm:num_requests_waiting; with KV they wait in order of arrival, else in no order. 0 means
	// no limit.
	MaxNumSeqs int
	// KV is the prefix cache and the cost of prompts. Without Blocks there is no cache: cached
	// tokens are not reported, and prompts take no time. Its Seats, Latency and Decode are
	// MaxNumSeqs, TTFT and TPOT.
	KV kv.Options
	// KVCacheTokens is the capacity behind vllm:kv_cache_usage_perc of a server without KV: the
	// gauge is the tokens of the running requests divided by it, at most 1. At least 1.
	KVCacheTokens int
	// PriorityScheduling respects the `priority` of requests, like --scheduling-policy priority.
	// Without it a priority other than 0 is rejected. It needs KV.
	PriorityScheduling bool
	// DevMode adds the paths of VLLM_SERVER_DEV_MODE and /sim/restart. It needs KV.
	DevMode bool
	// Network holds the servers that this one finds by kv_transfer_params.remote_kv_source; nil
	// means none.
	Network *Network
	// TransferAddr is the host and port under which servers of Network find this one's main memory;
	// empty means that they cannot. It needs KV.OffloadBlocks.
	TransferAddr string
	// MaxBodyBytes limits a request body; a larger one is rejected with 413. At least 1.
	MaxBodyBytes int64
	// ReasoningField names the field of a message or delta that carries reasoning:
	// ReasoningContentField or ReasoningField.
	ReasoningField string
	// APIKey, if not empty, is required as a bearer token on every path below /v1, as with vLLM's
	// --api-key.
	APIKey string
	// Record keeps the last Record POST requests, with bodies and headers as received, for
	// Server.Requests and GET /sim/requests. The headers include credentials. 0 keeps none and
	// disables the path.
	Record int
	// Answers are sent instead of an echo to the requests that they match.
	Answers []Answer
	// OnCancel, if not nil, is called with the request's id if a client left before its response
	// was complete. It runs on the request's goroutine and must be safe for concurrent use.
	OnCancel func(id string)
}

// DefaultOptions returns the options of a small, fast server: 30 ms to the first token and 5 ms per
// token after it. Only Model must be set.
func DefaultOptions() Options {
	return Options{
		TTFT:           30 * time.Millisecond,
		TPOT:           5 * time.Millisecond,
		Seed:           1,
		MaxModelLen:    32768,
		KVCacheTokens:  262144,
		MaxBodyBytes:   64 << 20,
		ReasoningField: ReasoningContentField,
	}
}

// Validate returns all problems of o, joined, or nil. An option is called by its flag of `signalbox
// simulate`, which is vLLM's if vLLM has it, or by its own name if it has no flag.
func (o Options) Validate() error {
	var p option.Problems
	if o.Model == "" {
		p.Addf("--model", "a served name is required")
	}
	option.NotNegative(&p, "--ttft", o.TTFT)
	option.NotNegative(&p, "--tpot", o.TPOT)
	option.AtLeast(&p, "--max-model-len", o.MaxModelLen, 1)
	option.AtLeast(&p, "--max-num-seqs", o.MaxNumSeqs, 0)
	option.AtLeast(&p, "kv_cache_tokens", o.KVCacheTokens, 1)
	option.AtLeast(&p, "max_body_bytes", o.MaxBodyBytes, 1)
	option.AtLeast(&p, "--record", o.Record, 0)
	if o.ReasoningField != ReasoningContentField && o.ReasoningField != ReasoningField {
		p.Addf("reasoning_field", "%q is neither %q nor %q",
			o.ReasoningField, ReasoningContentField, ReasoningField)
	}
	for i := range o.Answers {
		p.Join(fmt.Sprintf("answers[%d]", i), o.Answers[i].Validate())
	}
	return errors.Join(p.Err(), o.validateKV())
}
