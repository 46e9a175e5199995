package kv

import "time"

// Counters are the counters that a server exports. They restart with the server.
type Counters struct {
	Started time.Time // process_start_time_seconds

	PrefixQueries    uint64 // vllm:prefix_cache_queries_total, tokens
	PrefixHits       uint64 // vllm:prefix_cache_hits_total, tokens
	ExternalQueries  uint64 // vllm:external_prefix_cache_queries_total, tokens
	ExternalHits     uint64 // vllm:external_prefix_cache_hits_total, tokens
	PromptTokens     uint64 // vllm:prompt_tokens_total
	CachedTokens     uint64 // vllm:prompt_tokens_cached_total
	GenerationTokens uint64 // vllm:generation_tokens_total

	Running int     // vllm:num_requests_running
	Waiting int     // vllm:num_requests_waiting
	Usage   float64 // vllm:kv_cache_usage_perc, in [0,1]: blocks of running requests only
}

// Each calls yield with the name and the value of each metric, as vLLM's /metrics has them.
// See vllm/v1/metrics/loggers.py.
func (c *Counters) Each(yield func(name string, value float64)) {
	yield("process_start_time_seconds", float64(c.Started.UnixMilli())/1000)
	yield("vllm:prefix_cache_queries_total", float64(c.PrefixQueries))
	yield("vllm:prefix_cache_hits_total", float64(c.PrefixHits))
	yield("vllm:external_prefix_cache_queries_total", float64(c.ExternalQueries))
	yield("vllm:external_prefix_cache_hits_total", float64(c.ExternalHits))
	yield("vllm:prompt_tokens_total", float64(c.PromptTokens))
	yield("vllm:prompt_tokens_cached_total", float64(c.CachedTokens))
	yield("vllm:generation_tokens_total", float64(c.GenerationTokens))
	yield("vllm:num_requests_running", float64(c.Running))
	yield("vllm:num_requests_waiting", float64(c.Waiting))
	yield("vllm:kv_cache_usage_perc", c.Usage)
}
