package kv

import (
	"encoding/json"
	"fmt"
)

// P2P makes an endpoint fetch blocks from the main memory of another one, as vLLM's offloading
// connector with the p2p tier does for a request with kv_transfer_params.remote_kv_source
// (docs/features/kv_offloading_usage.md). Blocks that the other one lacks are computed, so a wrong
// hint costs only time.
type P2P struct{}

// MinTokens is the minimum number of additional tokens that another endpoint must hold for a
// transfer. Below that, computing them is about as fast as fetching.
const MinTokens = 512

// Hint returns the member of kv_transfer_params, and its value, that lets endpoint to fetch the
// prompt's blocks from endpoint from; empty if one of them has no p2p tier. id identifies the
// transfer and must be unique.
func (P2P) Hint(from, to *Options, id string) (member string, value []byte, err error) {
	if from.P2P == (Peer{}) || to.P2P == (Peer{}) {
		return "", nil, nil
	}
	value, err = json.Marshal(struct {
		ID   string `json:"kv_request_id"`
		Host string `json:"remote_host"`
		Port int    `json:"remote_port"`
	}{id, from.P2P.Host, from.P2P.Port})
	if err != nil {
		return "", nil, fmt.Errorf("name a source of blocks: %w", err)
	}
	return "remote_kv_source", value, nil
}
