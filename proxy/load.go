package proxy

import (
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
	out := make([]ModelLoad, 0, len(st.models))
	for _, m := range st.models {
		l := ModelLoad{Model: m.Name, Queued: m.Queued(), Endpoints: make([]EndpointLoad, 0, len(m.Endpoints))}
		for i, e := range m.Endpoints {
			x := EndpointLoad{Name: e.Name, State: e.State(now), Inflight: e.Inflight(), Running: int(e.Inflight())}
			if m.where.Placer != nil {
				s := m.where.Stats(i)
				x.Running, x.Waiting = m.where.Load(now, i)
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
