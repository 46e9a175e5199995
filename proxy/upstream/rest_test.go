package upstream

import (
	"net/http"
	"testing"
	"time"

	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
)

// A refusal without a Retry-After comes from a busy server, unless it may be about one client.
func TestHowLongABusyEndpointRests(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		name    string
		options pool.EndpointOptions
		after   []string // of each refusal
		rests   time.Duration
	}{
		{"it does not say", pool.EndpointOptions{}, []string{""}, restUnsaid},
		{"again and again", pool.EndpointOptions{}, []string{"", ""}, restUnsaid},
		{"it says", pool.EndpointOptions{}, []string{"30"}, 30 * time.Second},
		{"it says once", pool.EndpointOptions{}, []string{"30", ""}, 30 * time.Second},
		{"it says another time", pool.EndpointOptions{}, []string{"30", "2"}, 2 * time.Second},
		{"it knows clients", pool.EndpointOptions{ForwardAuth: true}, []string{""}, 0},
		{"it knows clients and says", pool.EndpointOptions{ForwardAuth: true}, []string{"30"}, 30 * time.Second},
	} {
		tt.options.Name, tt.options.URL = "a", "http://127.0.0.1:1/v1"
		g, err := pool.New("m", []pool.EndpointOptions{tt.options}, pool.HealthOptions{}, pool.QueueOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := g.Endpoints[0]
		for _, after := range tt.after {
			u := Response{
				Model: &backend.Model{Group: g}, Endpoint: e, Status: http.StatusTooManyRequests,
				Header: http.Header{"Retry-After": {after}}, MaxRetryAfter: time.Minute,
			}
			u.tell(now)
		}
		before, behind := e.Fitness(now.Add(tt.rests-1)), e.Fitness(now.Add(tt.rests))
		if (before == pool.Resting) != (tt.rests > 0) || behind != pool.Fit {
			t.Errorf("%s: %v before %v, %v behind", tt.name, before, tt.rests, behind)
		}
	}
}
