package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/testkit"
	"signalbox/memory/board"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/engine"
)

// overRedis is a Board over Redis, as in the application.
type overRedis struct{ *board.Board }

func (b overRedis) Publish(model string, r affinity.Residence) {
	b.Board.Publish(board.Note{Model: model, Key: r.Key, Endpoint: r.Endpoint, Tokens: r.Tokens, Expires: r.Expires})
}

// replicas returns proxies in front of the same servers that share a salt and, with a URL, a Redis.
func replicas(t *testing.T, n int, url string, prefill float64, servers ...*kvServer) []*bench {
	t.Helper()
	var out []*bench
	for range n {
		b := start(t, kvModel(func(o *backend.ModelOptions) { o.KV.PrefillUsPerToken = prefill }, servers...), func(s *setup) { s.routes = toSmall })
		b.state.places.Salts, b.state.salted = engine.NewSalts([]byte("one secret")), true
		out = append(out, b)
		if url == "" {
			continue
		}
		ctx, stop := context.WithCancel(context.Background())
		link, err := redis.Open(ctx, redis.Options{URL: url, Rest: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		shared := board.New(link, board.Options{Rest: 20 * time.Millisecond, Budget: 10 * time.Second})
		b.proxy.UseBoard(overRedis{shared})
		var running sync.WaitGroup
		running.Go(func() {
			_ = link.Watch(ctx, func(ledger.News) {}, func() {}) // its only result is nil
		})
		running.Go(func() {
			_ = shared.Run(ctx, func(n board.Note) { // as is that of this
				b.proxy.Learn(n.Model, affinity.Residence{Key: n.Key, Endpoint: n.Endpoint, Tokens: n.Tokens, Expires: n.Expires})
			})
		})
		t.Cleanup(func() { stop(); running.Wait(); link.Close() })
	}
	return out
}

// agents is the workload of the figures: contexts of about 4,000 tokens, three agents each with the
// given number of turns, 12 concurrent requests, sent to the replicas in turn. It returns the
// cached share of prompt tokens, and the highest possible share.
func agents(t *testing.T, via []*bench, contexts, turns int) (share, ideal float64) {
	t.Helper()
	type agent struct{ context, id int }
	var all []agent
	for c := range contexts {
		for a := range 3 {
			all = append(all, agent{c, a})
		}
	}
	rand.New(rand.NewPCG(11, 12)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	texts := make([]string, contexts)
	for c := range texts {
		texts[c] = kib(fmt.Sprintf("context %d", c), 16)
	}
	queue := make(chan agent)
	var wg sync.WaitGroup
	var mu sync.Mutex
	prompt, best, cached, sent := 0, 0, 0, 0
	for range 12 {
		wg.Go(func() {
			for a := range queue {
				body := `{"model":"auto","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"` + texts[a.context] + `"}`
				before := 0
				for n := range turns {
					body += fmt.Sprintf(`,{"role":"user","content":"agent %d of context %d asks %s %d"}`, a.id, a.context, strings.Repeat("about it ", 20), n)
					mu.Lock()
					to := via[sent%len(via)]
					sent++
					mu.Unlock()
					got := to.told(body + "]}")
					mu.Lock()
					prompt, cached = prompt+got.prompt, cached+got.cached
					best += before
					mu.Unlock()
					body += `,{"role":"assistant","content":"a short answer."}`
					before = got.prompt
				}
			}
		})
	}
	for _, a := range all {
		queue <- a
	}
	close(queue)
	wg.Wait()
	best += contexts * 2 * 4096 // the second and the third agent of a context find it
	return 100 * float64(cached) / float64(prompt), 100 * float64(best) / float64(prompt)
}

// TestTwoReplicasFindWhatEitherHasSent measures the figure for two replicas when clients name
// nothing.
func TestTwoReplicasFindWhatEitherHasSent(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	var servers []*kvServer
	for range 4 {
		o := quick()
		o.Prefill = 30 * time.Microsecond
		servers = append(servers, newKVServer(t, o))
	}
	share, ideal := agents(t, replicas(t, 2, server.URL(), 30, servers...), 24, 7)
	t.Logf("two replicas: %.1f %% of prompt tokens were cached, at best %.1f %%", share, ideal)
	// How many first requests of a context find a queue and go elsewhere depends on this machine's
	// clock, so the limit is wide; bench/memory checks the required 93 % with a clock of its own.
	if share < ideal-8 {
		t.Errorf("%.1f %% of prompt tokens were cached, at best %.1f %%", share, ideal)
	}
}

func TestReplicasTellOfDeviations(t *testing.T) {
	t.Parallel()
	server := testkit.NewRedis(t)
	servers := []*kvServer{newKVServer(t, quick()), newKVServer(t, quick())}
	both := replicas(t, 2, server.URL(), 60, servers...)
	system := kib("expert", 16)
	w := both[0].state.Models[0].Servers
	// The home is busy as the first replica sees it, so the prompt goes to the other endpoint.
	home := both[0].told(turns(system, 1)).endpoint
	var busy []affinity.Ticket
	i := int(home[0] - 'a')
	for range 400 {
		busy = append(busy, w.Sent(time.Now(), &affinity.Request{Tokens: 100_000}, i))
	}
	other := both[0].told(turns(system, 2))
	if other.endpoint == home {
		t.Fatalf("the prompt went to a busy home: %+v", other)
	}
	for j := range busy {
		busy[j].End(time.Now(), affinity.Usage{Failed: true})
	}
	// The second replica, which has never seen the prompt, hears of both places. When one of them
	// is restarted, it knows that the other has it.
	second := both[1].state.Models[0].Servers
	eventually(t, func() bool { return second.Stats(0).Told > 0 && second.Stats(1).Told > 0 }, "news of both endpoints")
	servers[i].restart()
	second.Forget(i)
	if got := both[1].told(turns(system, 3)); got.endpoint != other.endpoint || got.predicted < 3000 || got.cached < 3000 {
		t.Errorf("the second replica: %+v, the first one sent it to %s", got, other.endpoint)
	}
}

func TestWithoutRedisReplicasStillAgreeOnHomes(t *testing.T) {
	t.Parallel()
	var servers []*kvServer
	for range 3 {
		servers = append(servers, newKVServer(t, quick()))
	}
	both := replicas(t, 2, "", 60, servers...)
	for i := range 12 {
		system := kib(fmt.Sprintf("expert %d", i), 16)
		a, b := both[0].told(turns(system, 1)), both[1].told(turns(system, 2))
		if a.endpoint != b.endpoint || b.cached < 3000 {
			t.Errorf("prompt %d: %+v from one replica, %+v from the other", i, a, b)
		}
	}
}
