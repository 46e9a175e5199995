package placement

import (
	"fmt"
	"time"

	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
)

// ModelLoad is the load of a model's endpoints.
type ModelLoad struct {
	Model     string         `json:"model"`
	Queued    int            `json:"queued"` // requests that wait for an endpoint
	Endpoints []EndpointLoad `json:"endpoints"`
}

// EndpointLoad is the load of an endpoint and what it should have cached.
type EndpointLoad struct {
	Name     string `json:"name"`
	State    string `json:"state"`    // up, suspect, resting, ejected, asleep or down
	Inflight int64  `json:"inflight"` // requests from this replica
	Running  int    `json:"running"`  // including requests from others, if observed recently
	Waiting  int    `json:"waiting"`  // requests waiting for a seat there
	Queued   int64  `json:"queued_tokens"`

	Prefix *PrefixLoad `json:"prefix,omitempty"` // absent if it is not tracked
}

// PrefixLoad is what an endpoint should have cached. Counts start with the process, or when the
// endpoint was added.
type PrefixLoad struct {
	Tokens int   `json:"tokens"` // approximate, by length of text
	Placed int64 `json:"placed"` // requests
	Away   int64 `json:"away"`   // of these, requests whose home is another endpoint
	// of these, requests that found less than half of the predicted tokens
	Wrong     int64 `json:"wrong"`
	Predicted int64 `json:"predicted_tokens"`
	Cached    int64 `json:"cached_tokens"` // cached tokens reported by responses
	Restarts  int64 `json:"restarts"`
}

// bytesPerCachedToken is the assumed size of a token.
const bytesPerCachedToken = 4

// Load returns the load of every endpoint of the models.
func Load(models []*backend.Model) []ModelLoad {
	now := time.Now()
	out := make([]ModelLoad, 0, len(models))
	for _, m := range models {
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

// HeldPrefix is what requests with the same key have left in the cache of an endpoint, as operators
// see it.
type HeldPrefix struct {
	Key string `json:"key"` // fingerprint of the key
	// source of the key: contexts, session, prompt_cache_key, ..., prefix
	By       string    `json:"by"`
	Tokens   int       `json:"tokens"`   // in the last prompt
	Requests int64     `json:"requests"` // answered there
	Cached   int64     `json:"cached"`   // prompt tokens that the endpoint reported as cached
	Last     time.Time `json:"last"`     // when the last request was answered
	ID       string    `json:"id"`       // x-request-id of the last request
	Held     bool      `json:"held"`     // the whole last prompt should still be cached
}

// Prefixes lists the prefixes recently sent to an endpoint of a model, most recent first; false if
// there is no such endpoint.
func Prefixes(m *backend.Model, endpoint string) ([]HeldPrefix, bool) {
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
