package pool

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"signalbox/internal/option"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEndpointsThatKeepFailingAreEjectedForAWhile(t *testing.T) {
	t.Parallel()
	m := group(t, "a", "b")
	a, b := m.Endpoints[0], m.Endpoints[1]
	now := time.Unix(1000, 0)
	fail := func(e *Endpoint, n int) {
		for range n {
			m.Failed(e, now)
		}
	}
	expect := func(step string, wantA, wantB Fitness) {
		t.Helper()
		if fa, fb := a.Fitness(now), b.Fitness(now); fa != wantA || fb != wantB {
			t.Errorf("%s: a is %s, b is %s", step, fa, fb)
		}
	}
	fail(a, failuresToEject-1)
	expect("a few failures", Fit, Fit)
	a.Succeeded()
	fail(a, failuresToEject-1)
	expect("a success between", Fit, Fit)
	fail(a, 1)
	expect("enough in a row", Ejected, Fit)
	a.checked(nil)
	expect("a good health check does not outweigh failed requests", Ejected, Fit)
	fail(b, 2*failuresToEject)
	expect("the last one is never ejected", Ejected, Fit)
	now = now.Add(ejectionBase)
	expect("the time out is over", Fit, Fit)
	lease, _ := a.Enter()
	expect("one request tries it", Ejected, Fit)
	lease.Close()
	b.Succeeded()
	fail(a, 1)
	now = now.Add(ejectionBase)
	expect("it failed again: twice the time", Ejected, Fit)
	now = now.Add(ejectionBase)
	expect("over again", Fit, Fit)
	a.Succeeded()
	fail(a, 1)
	expect("a success forgets", Fit, Fit)
	b.checked(io.EOF)
	b.checked(io.EOF)
	expect("down by health checks", Fit, Down)
	fail(a, 2*failuresToEject)
	expect("the last one that is up is not ejected", Fit, Down)
	b.checked(nil)
	expect("up again", Fit, Fit)
}

// A request on which every server fails ejects at most half of them, however often it is sent.
func TestAnswersEjectNoMoreThanHalfOfTheEndpoints(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d", "e"}
	for n, most := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 5: 2} {
		g, now := group(t, names[:n]...), time.Unix(1000, 0)
		poison := func() (ejected int) {
			for range 2 * failuresToEject {
				for _, e := range g.Endpoints {
					g.Erred(e, now)
				}
			}
			for _, e := range g.Endpoints {
				if e.ejected() {
					ejected++
				}
			}
			return ejected
		}
		if got := poison(); got != most {
			t.Errorf("of %d endpoints %d are ejected, want %d", n, got, most)
		}
		now = now.Add(ejectionBase)
		if got := poison(); got != most {
			t.Errorf("of %d endpoints %d are ejected when the first ones may be tried again, want %d", n, got, most)
		}
		if most == 0 {
			continue
		}
		g.Endpoints[0].Succeeded()
		last := g.Endpoints[n-1]
		g.Erred(last, now)
		if got := last.Fitness(now); got != Ejected {
			t.Errorf("of %d endpoints the last one is %s although there is room", n, got)
		}
		for _, e := range g.Endpoints {
			for range failuresToEject {
				g.Failed(e, now)
			}
		}
		if up := slices.DeleteFunc(slices.Clone(g.Endpoints), (*Endpoint).ejected); len(up) != 1 {
			t.Errorf("of %d endpoints that do not answer %d are not ejected", n, len(up))
		}
	}
}

func TestPlacementPrefersTheLessLoaded(t *testing.T) {
	t.Parallel()
	m := group(t, "a", "b", "c")
	now := time.Unix(1000, 0)
	_, _ = m.Endpoints[0].Enter()
	_, _ = m.Endpoints[1].Enter()
	seen := map[string]int{}
	intn := rand.New(rand.NewPCG(1, 2)).IntN
	for range 300 {
		e, _ := m.Pick(nil, intn, now)
		seen[e.Name]++
	}
	// c wins every draw that it is part of: two of three.
	if seen["c"] < 170 || seen["c"] > 230 || seen["a"] < 30 || seen["b"] < 30 {
		t.Errorf("picked %v", seen)
	}
	m.Endpoints[0].weight = 4
	if e, _ := m.Pick([]*Endpoint{m.Endpoints[2]}, intn, now); e.Name != "a" {
		t.Errorf("with weight 4 and one request in flight, %s was preferred to a", e.Name)
	}
	if e, _ := m.Pick(m.Endpoints, intn, now); e != nil {
		t.Errorf("picked %s although all were tried", e.Name)
	}
	for _, e := range m.Endpoints[:2] {
		e.checked(io.EOF)
		e.checked(io.EOF)
	}
	if e, _ := m.Pick(nil, intn, now); e.Name != "c" {
		t.Errorf("picked %s, which is down", e.Name)
	}
	m.Endpoints[2].ejections, m.Endpoints[2].until = 1, now.Add(time.Second)
	if e, _ := m.Pick(nil, intn, now); e == nil || e.Name != "c" {
		t.Error("an ejected endpoint is better than none")
	}
}

func TestTheBudgetGivesItsBurstAndItsShare(t *testing.T) {
	t.Parallel()
	b := NewBudget()
	count := func() (n int) {
		for b.Spend() {
			n++
		}
		return n
	}
	if n := count(); n != 10 {
		t.Errorf("the burst is %d retries", n)
	}
	for range 25 {
		b.Earn(0.2)
	}
	if n := count(); n != 5 {
		t.Errorf("25 requests earned %d retries", n)
	}
	for range 1000 {
		b.Earn(1)
	}
	if n := count(); n != 10 {
		t.Errorf("%d retries were saved up", n)
	}
}

// states returns the state of an endpoint in each step, and the log lines after the last one. The
// given number of reloads came before, and all configurations watch the endpoint.
func states(
	t *testing.T,
	health HealthOptions,
	reloads int,
	steps ...func(*Group, *sickServer),
) (out []string, lines string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sickServer{}
		both := []EndpointOptions{{Name: "a", URL: "http://a/v1"}, {Name: "b", URL: "http://b/v1"}}
		g, err := New("m", both, health, QueueOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		w := Watcher{Transport: s, Log: slog.New(slog.NewTextHandler(&log, nil))}
		wg.Go(func() { w.Watch(ctx, []*Group{g}, nil) })
		for range reloads {
			later, err := New("m", both, health, QueueOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			later.Adopt(g)
			wg.Go(func() { w.Watch(ctx, []*Group{later}, nil) })
		}
		time.Sleep(time.Second)
		for _, step := range steps {
			step(g, s)
			synctest.Wait()
			out = append(out, g.Endpoints[0].State(time.Now()))
		}
		stop()
		wg.Wait()
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "endpoint=a") {
				lines += strings.Split(strings.Split(line, `msg="`)[1], `"`)[0] + "\n"
			}
		}
	})
	return out, lines
}

func fails(n int) func(*Group, *sickServer) {
	return func(g *Group, _ *sickServer) {
		for range n {
			g.Failed(g.Endpoints[0], time.Now())
		}
	}
}

func passes(d time.Duration) func(*Group, *sickServer) {
	return func(*Group, *sickServer) { time.Sleep(d) }
}

func TestAnEndpointIsTrustedAgainWhenChecksPass(t *testing.T) {
	t.Parallel()
	every := HealthOptions{Interval: option.Duration(5 * time.Second)}
	got, lines := states(
		t,
		every,
		0,
		fails(1),
		passes(5*time.Second),
		passes(5*time.Second),
		fails(4),
		passes(time.Hour),
	)
	if want := []string{"suspect", "suspect", "up", "ejected", "suspect"}; !slices.Equal(got, want) {
		t.Errorf("states %v, want %v: checks clear doubts, and forget no request that failed", got, want)
	}
	if want := "endpoint suspect\nendpoint up\nendpoint ejected\nendpoint suspect\n"; lines != want {
		t.Errorf("logged\n%swant\n%s", lines, want)
	}
}

func TestAnEndpointThatComesBackIsUpOnlyWhenNothingIsKnownAgainstIt(t *testing.T) {
	t.Parallel()
	sick := func(_ *Group, s *sickServer) { s.pauses(true) }
	well := func(_ *Group, s *sickServer) { s.pauses(false) }
	every := HealthOptions{Interval: option.Duration(5 * time.Second)}
	got, lines := states(
		t,
		every,
		0,
		fails(5),
		sick,
		passes(11*time.Second),
		well,
		passes(9*time.Second),
		passes(time.Hour),
	)
	if want := []string{"ejected", "ejected", "down", "down", "ejected", "suspect"}; !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
	if want := "endpoint ejected\nendpoint down\nendpoint ejected\nendpoint suspect\n"; lines != want {
		t.Errorf("logged\n%swant\n%s", lines, want)
	}
}

func TestAnEndpointOfTwoConfigurationsIsToldOfOnce(t *testing.T) {
	t.Parallel()
	every := HealthOptions{Interval: option.Duration(5 * time.Second)}
	_, lines := states(t, every, 1, fails(5), passes(time.Hour))
	if want := "endpoint ejected\nendpoint suspect\n"; lines != want {
		t.Errorf("logged\n%swant\n%s", lines, want)
	}
}

func TestAnEndpointWithoutChecksIsSuspectUntilARequestSucceeds(t *testing.T) {
	t.Parallel()
	succeeds := func(g *Group, _ *sickServer) { g.Endpoints[0].Succeeded() }
	got, lines := states(t, HealthOptions{Path: healthOff}, 0, fails(1), passes(time.Hour), succeeds, passes(time.Hour))
	if want := []string{"suspect", "suspect", "up", "up"}; !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
	if want := "endpoint suspect\nendpoint up\n"; lines != want {
		t.Errorf("logged\n%swant\n%s", lines, want)
	}
}

func TestEndpointURLs(t *testing.T) {
	t.Parallel()
	m, err := New("m", []EndpointOptions{{Name: "a", URL: "https://h:1/base/v1/"}}, HealthOptions{Path: "/status"}, QueueOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := m.Endpoints[0]
	for path, want := range map[string]string{
		"chat/completions": "https://h:1/base/v1/chat/completions", "audio/speech": "https://h:1/base/v1/audio/speech", "tokenize": "https://h:1/base/tokenize",
	} {
		if got := e.URL(path).String(); got != want {
			t.Errorf("%s is served at %s, want %s", path, got, want)
		}
	}
	for want, got := range map[string]*url.URL{"https://h:1/base/v1/chat/completions": e.Chat, "https://h:1/status": e.probe} {
		if got.String() != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func group(tb testing.TB, names ...string) *Group {
	tb.Helper()
	var o []EndpointOptions
	for _, n := range names {
		o = append(o, EndpointOptions{Name: n, URL: "http://" + n + "/v1"})
	}
	m, err := New("m", o, HealthOptions{}, QueueOptions{}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestAnAddressNeedsNoPath(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"http://a:1": "/chat/completions", "http://a:1/": "/chat/completions", "http://a:1/v1": "/v1/chat/completions", "http://a:1/v1/": "/v1/chat/completions",
	} {
		base, err := baseURL(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := base.JoinPath(chatPath).RequestURI(); got != want {
			t.Errorf("%s asks for %q, want %q", address, got, want)
		}
	}
}
