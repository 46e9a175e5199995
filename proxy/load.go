package proxy

import (
	"fmt"
	"time"

	"signalbox/proxy/affinity"
)

// ModelLoad is what a model's endpoints are busy with.
type ModelLoad struct {
	Model     string         `json:"model"`
	Queued    int            `json:"queued"` // requests that wait for an endpoint
	Endpoints []EndpointLoad `json:"endpoints"`
}

// EndpointLoad is what an endpoint is busy with, and what it should have of prompts.
type EndpointLoad struct {
	Name     string `json:"name"`
	State    string `json:"state"`    // up, suspect, resting, ejected, asleep or down
	Inflight int64  `json:"inflight"` // requests from here
	Running  int    `json:"running"`  // those of others included, as far as it was observed lately
	Waiting  int    `json:"waiting"`  // for a seat there
	Queued   int64  `json:"queued_tokens"`

	Prefix *PrefixLoad `json:"prefix,omitempty"` // absent where nobody keeps account of it
}

// PrefixLoad is what an endpoint should have of prompts. Counts are since the process started, or
// the endpoint came.
type PrefixLoad struct {
	Tokens    int   `json:"tokens"` // about, by the length of the text
	Placed    int64 `json:"placed"` // requests
	Away      int64 `json:"away"`   // of them, whose home is another endpoint
	Wrong     int64 `json:"wrong"`  // of them, of which it had less than half of what was predicted
	Predicted int64 `json:"predicted_tokens"`
	Cached    int64 `json:"cached_tokens"` // that it had, of requests that reported it
	Restarts  int64 `json:"restarts"`
}

// bytesPerCachedToken is what a token of a prompt is taken for whose length is not known.
const bytesPerCachedToken = 4

// Load says what every endpoint of the configuration is busy with.
func (p *Proxy) Load() []ModelLoad {
	st := p.acquire()
	defer st.release()
	now := time.Now()
	out := make([]ModelLoad, 0, len(st.Models))
	for _, m := range st.Models {
		l := ModelLoad{Model: m.Name, Queued: m.Queued(), Endpoints: make([]EndpointLoad, 0, len(m.Endpoints))}
		for i, e := range m.Endpoints {
			x := EndpointLoad{Name: e.Name, State: e.State(now), Inflight: e.Inflight(), Running: int(e.Inflight())}
			if m.Servers.Placer != nil {
				s := m.Servers.Stats(i)
				x.Running, x.Waiting = m.Servers.Load(now, i)
				x.Queued = s.Queued
				x.Prefix = &PrefixLoad{
					Tokens: s.Blocks * affinity.BlockBytes / bytesPerCachedToken, Placed: s.Placed, Away: s.Deviated,
					Wrong: s.Mispredicted, Predicted: s.Predicted, Cached: s.Cached, Restarts: s.Restarts,
				}
			}
			l.Endpoints = append(l.Endpoints, x)
		}
		out = append(out, l)
	}
	return out
}

// HeldPrefix is what requests that belong to the same have left in the cache of an endpoint, as
// operators see it.
type HeldPrefix struct {
	Key      string    `json:"key"`      // a fingerprint of what they belong to
	By       string    `json:"by"`       // what that is: contexts, session, prompt_cache_key, ..., prefix
	Tokens   int       `json:"tokens"`   // of the last one's prompt
	Requests int64     `json:"requests"` // that were answered there
	Cached   int64     `json:"cached"`   // tokens of their prompts that the endpoint said it had
	Last     time.Time `json:"last"`     // when the last one was answered
	ID       string    `json:"id"`       // x-request-id of that
	Held     bool      `json:"held"`     // all of its prompt should still be there
}

// Prefixes lists what was sent to an endpoint of a model lately, by what it belongs to, the last
// one first; false where the configuration has no such endpoint.
func (p *Proxy) Prefixes(model, endpoint string) ([]HeldPrefix, bool) {
	st := p.acquire()
	defer st.release()
	m := st.ByName[model]
	if m == nil {
		return nil, false
	}
	for i, e := range m.Endpoints {
		if e.Name != endpoint {
			continue
		}
		out := []HeldPrefix{}
		if m.Servers.Placer == nil {
			return out, true
		}
		for _, x := range m.Servers.Placer.Prefixes(time.Now(), i) {
			out = append(out, HeldPrefix{
				Key: fmt.Sprintf("%08x", uint32(x.Key)), By: x.Source.String(), Tokens: x.Tokens, Requests: x.Requests,
				Cached: x.Cached, Last: x.Last, ID: x.Of, Held: x.Held,
			})
		}
		return out, true
	}
	return nil, false
}
