package pool

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"signalbox/internal/option"
)

// sickServer answers health checks or fails them, and records when they came.
type sickServer struct {
	mu   sync.Mutex
	sick bool
	at   []time.Time
}

func (s *sickServer) RoundTrip(*http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
	if s.sick {
		return nil, errors.New("refused")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// pauses returns the times between the checks since the last call, and sets the server's health
// from now on.
func (s *sickServer) pauses(sick bool) (out []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 1; i < len(s.at); i++ {
		out = append(out, s.at[i].Sub(s.at[i-1]))
	}
	s.at, s.sick = s.at[max(len(s.at)-1, 0):], sick
	return out
}

func TestServersThatAreDownAreAskedLessAndLessOften(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ every, pauses []int }{
		{[]int{5}, []int{5, 10, 20, 30, 30, 30}},
		{[]int{60}, []int{60, 60, 60, 60, 60, 60}},
	} {
		interval, want := seconds(tt.every)[0], seconds(tt.pauses)
		synctest.Test(t, func(t *testing.T) {
			s := &sickServer{sick: true}
			g, err := New("m", []EndpointOptions{{Name: "a", URL: "http://a/v1"}}, HealthOptions{Interval: option.Duration(interval)}, QueueOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				Watcher{Transport: s, Log: slog.New(slog.DiscardHandler)}.Watch(ctx, []*Group{g}, nil)
			})
			wait := func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
			}
			total := time.Duration(0)
			for _, d := range want {
				total += d
			}
			wait(total)
			if got := s.pauses(false); !slices.Equal(got, want) {
				t.Errorf("every %s: pauses of %v, want %v", interval, got, want)
			}
			wait(max(interval, longestPause)) // it is back, and found to be
			if g.Endpoints[0].Fitness(time.Now()) != Fit {
				t.Error("it is not up again")
			}
			s.pauses(false)
			wait(3 * interval)
			if got := s.pauses(true); !slices.Equal(got, []time.Duration{interval, interval, interval}) {
				t.Errorf("every %s: pauses of %v when it was up", interval, got)
			}
			wait(2 * interval)
			if got := s.pauses(true); !slices.Equal(got, []time.Duration{interval, interval}) {
				t.Errorf("every %s: pauses of %v before it counts as down", interval, got)
			}
			stop()
			wg.Wait()
		})
	}
}

func seconds(list []int) (out []time.Duration) {
	for _, n := range list {
		out = append(out, time.Duration(n)*time.Second)
	}
	return out
}

// After a reload only the new health checks judge an endpoint, even while the old configuration is
// still in use.
func TestHealthChecksAreThoseOfTheNewestConfiguration(t *testing.T) {
	t.Parallel()
	made := func(path string) *Group {
		g, err := New("m", []EndpointOptions{{Name: "a", URL: "http://a/v1"}},
			HealthOptions{Path: path, Interval: option.Duration(5 * time.Second)}, QueueOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, tt := range []struct{ name, path string }{
		{"checks are turned off", healthOff},
		{"another path is asked", "/v1/models"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := pathServer{"/v1/models": http.StatusOK}
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				watch := func(g *Group) {
					wg.Go(func() {
						Watcher{Transport: server, Log: slog.New(slog.DiscardHandler)}.Watch(ctx, []*Group{g}, nil)
					})
				}
				old, next := made("/gone"), made(tt.path)
				watch(old)
				time.Sleep(6 * time.Second)
				synctest.Wait()
				if old.Endpoints[0].Fitness(time.Now()) != Down {
					t.Error("it is not down to begin with")
				}
				next.Adopt(old)
				watch(next)
				for range 60 {
					time.Sleep(time.Second)
					synctest.Wait()
					if f := next.Endpoints[0].Fitness(time.Now()); f != Fit {
						t.Errorf("it is %s", f)
						break
					}
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// pathServer answers paths with a status, and all others with 500.
type pathServer map[string]int

func (s pathServer) RoundTrip(r *http.Request) (*http.Response, error) {
	status, ok := s[r.URL.Path]
	if !ok {
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Body: http.NoBody}, nil
}
