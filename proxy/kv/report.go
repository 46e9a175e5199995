package kv

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Report is what a server reports at /metrics. Missing values are zero.
type Report struct {
	VLLM    bool    // vLLM or compatible
	Started float64 // process_start_time_seconds, Unix time
	Queries float64 // vllm:prefix_cache_queries_total
	Running int     // vllm:num_requests_running
	Waiting int     // vllm:num_requests_waiting
	Tokens  int     // cache size in tokens: num_gpu_blocks x block_size of vllm:cache_config_info
	Block   int     // tokens per block: block_size of vllm:cache_config_info, the largest one
	Asleep  bool    // an engine is not awake: vllm:engine_sleep_state{sleep_state="awake"} is 0
	Caching bool    // shares prefixes: enable_prefix_caching of vllm:cache_config_info
}

// Limits of what is read of a page, in bytes. vLLM's page has about 100 KiB, with a few hundred
// bytes per line.
const (
	maxPage = 4 << 20
	maxLine = 64 << 10
)

// Read parses the parts of a page in the Prometheus text format that concern the cache
// (https://prometheus.io/docs/instrumenting/exposition_formats/). Values of several engines or
// models on one page are summed up. Lines that it does not understand are ignored. Errors are those
// of r and a page that is too long.
func Read(r io.Reader) (Report, error) {
	var out Report
	limited := &io.LimitedReader{R: r, N: maxPage + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 4<<10), maxLine)
	for lines.Scan() {
		if name, labels, value, ok := sample(lines.Bytes()); ok {
			out.note(string(name), labels, value)
		}
	}
	if err := lines.Err(); err != nil {
		return Report{}, fmt.Errorf("read metrics: %w", err)
	}
	if limited.N <= 0 {
		return Report{}, fmt.Errorf("read metrics: more than %d bytes", maxPage)
	}
	return out, nil
}

// note processes one sample.
func (r *Report) note(name string, labels []byte, value float64) {
	name, vllm := strings.CutPrefix(name, "vllm:")
	if !vllm && name != "process_start_time_seconds" {
		return
	}
	r.VLLM = r.VLLM || vllm
	switch name {
	case "process_start_time_seconds":
		r.Started = value
	case "prefix_cache_queries_total", "prefix_cache_queries", "gpu_prefix_cache_queries_total", "gpu_prefix_cache_queries":
		r.Queries = max(r.Queries, 0) + max(value, 0)
	case "num_requests_running":
		r.Running = count(float64(r.Running) + value)
	case "num_requests_waiting":
		r.Waiting = count(float64(r.Waiting) + value)
	case "cache_config_info":
		r.config(labels)
	case "engine_sleep_state": // requests to an engine wait while it sleeps or is paused
		r.Asleep = r.Asleep || value == 0 && labelled(labels, "sleep_state", "awake")
	}
}

// labelled reports whether a label has a value.
func labelled(labels []byte, name, want string) bool {
	for label, value := range each(labels) {
		if string(label) == name {
			return string(value) == want
		}
	}
	return false
}

// config processes the labels of vllm:cache_config_info, which are the fields of vLLM's
// CacheConfig.
func (r *Report) config(labels []byte) {
	var blocks, size float64
	for name, value := range each(labels) {
		switch string(name) {
		case "num_gpu_blocks":
			blocks, _ = strconv.ParseFloat(string(value), 64)
		case "block_size":
			size, _ = strconv.ParseFloat(string(value), 64)
			r.Block = max(r.Block, count(size))
		case "enable_prefix_caching":
			r.Caching = r.Caching || strings.EqualFold(string(value), "true")
		}
	}
	r.Tokens = count(float64(r.Tokens) + blocks*size)
}

// maxCount is an upper limit for counts that no server reaches.
const maxCount = 1 << 40

// count converts a value to a count.
func count(x float64) int {
	if !(x > 0) {
		return 0
	}
	return int(min(x, maxCount))
}

// sample parses one line: NAME{LABELS} VALUE TIME, where labels and time are optional.
func sample(line []byte) (name, labels []byte, value float64, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] == '#' {
		return nil, nil, 0, false
	}
	end := bytes.IndexAny(line, "{ \t")
	if end <= 0 {
		return nil, nil, 0, false
	}
	name, rest := line[:end], line[end:]
	if rest[0] == '{' {
		n := closing(rest)
		if n < 0 {
			return nil, nil, 0, false
		}
		labels, rest = rest[1:n], rest[n+1:]
	}
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return nil, nil, 0, false
	}
	value, err := strconv.ParseFloat(string(fields[0]), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, nil, 0, false
	}
	return name, labels, value, true
}

// closing returns the index of the brace that ends the labels at the beginning of b; -1 if there is
// none. Values are quoted and may contain braces.
func closing(b []byte) int {
	quoted := false
	for i := 0; i < len(b); i++ {
		switch {
		case quoted && b[i] == '\\':
			i++
		case b[i] == '"':
			quoted = !quoted
		case b[i] == '}' && !quoted:
			return i
		}
	}
	return -1
}

// each yields labels with their values, in which escapes are not decoded.
func each(labels []byte) func(yield func(name, value []byte) bool) {
	return func(yield func(name, value []byte) bool) {
		for {
			name, rest, ok := bytes.Cut(labels, []byte(`="`))
			if !ok {
				return
			}
			end := 0
			for end < len(rest) && rest[end] != '"' {
				if rest[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(rest) || !yield(bytes.Trim(name, ", \t"), rest[:end]) {
				return
			}
			labels = rest[end+1:]
		}
	}
}
