package kv

import (
	"encoding/json"
	"fmt"
)

// P2P has an endpoint take blocks from the main memory of another, as vLLM's offloading connector
// with the p2p tier does for a request with kv_transfer_params.remote_kv_source
// (docs/features/kv_offloading_usage.md). What the other one has not, or no more, is computed; so a
// wrong hint costs time only.
type P2P struct{}

// MinTokens is how many tokens more than an endpoint another must hold for blocks to be worth
// fetching: below it, computing them is about as fast as asking.
const MinTokens = 512

// Hint returns the member of kv_transfer_params that lets endpoint to take the prompt's blocks from
// endpoint from, and its value; empty when one of them has no p2p tier. id names the transfer and
// is unique.
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
