package proxy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/memory/ledger"
	"signalbox/memory/redis"
	"signalbox/proxy/auth"
	"signalbox/proxy/recall"
)

// sharing returns a bench that shares its responses over a Redis, which may be slow.
func sharing(t *testing.T, server *testkit.Redis, up *testkit.Upstream, change ...func(*setup)) *bench {
	t.Helper()
	const long = testkit.Patience
	link, err := redis.Open(t.Context(), redis.Options{URL: server.URL(), MetaBudget: long, BlobBudget: long, WriteBudget: long})
	if err != nil {
		t.Fatal(err)
	}
	answers := cache.NewRedis(link, cache.RedisOptions{Budget: long, Write: long})
	b := start(t, oneModel(up), append([]func(*setup){caches(recall.ModeSemantic), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small]}"
		s.cache.Shared = true
		if s.answers, err = recall.NewAnswers(s.cache, answers, nil); err != nil {
			t.Fatal(err)
		}
	}}, change...)...)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, run := range []func() error{
		func() error { return link.Watch(ctx, func(ledger.News) {}, func() {}) },
		func() error { return answers.Follow(ctx, 100, b.proxy.LearnQuestion) },
	} {
		wg.Go(func() {
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		wg.Wait()
		b.state.Caching.Close()
		link.Close()
	})
	return b
}

// knows waits until a replica has heard of n questions.
func (b *bench) knows(n int) {
	b.tb.Helper()
	waitFor(b.tb, "the questions of another replica", func() bool { return b.state.answers.Index.Len() == n })
}

const (
	lights      = "How do I turn on the lights in the office?"
	otherLights = "How can I turn on the lights in the office?"
)

func TestReplicasShareTheirAnswers(t *testing.T) {
	t.Parallel()
	server, up := testkit.NewRedis(t), testkit.NewUpstream(t, numbered())
	a, b := sharing(t, server, up), sharing(t, server, up)
	first := a.chat(ask(lights)).says(t, "first", "miss")
	a.kept(1)
	b.knows(1)
	if got := b.chat(ask(lights)).says(t, "the same on the other replica", "exact"); got.body != first.body || got.header.Get("Age") == "" {
		t.Errorf("%v %s", got.header, got.body)
	}
	c := sharing(t, server, up) // it was not there when the question was asked
	c.knows(1)
	for _, r := range []*bench{b, c} {
		got := r.chat(ask(otherLights)).says(t, "other words on another replica", "semantic")
		if got.content(t) != "answer 1" {
			t.Errorf("%s", got.body)
		}
		r.chat(ask("How do I turn off the lights in the office?")).says(t, "the opposite", map[*bench]string{b: "miss", c: "exact"}[r])
		a.knows(2)
		waitFor(t, "the answer to be kept", func() bool { return r.state.answers.Index.Len() == 2 })
	}
	if n := len(up.Requests()); n != 2 {
		t.Errorf("%d requests went upstream, want the first question and its opposite", n)
	}
	other := sharing(t, server, up, func(s *setup) { s.config = "another file" })
	other.knows(2)
	other.chat(ask(lights)).says(t, "under another configuration", "miss")
	alone := start(t, oneModel(up), caches(recall.ModeSemantic))
	alone.chat(ask(lights)).says(t, "a replica that shares nothing", "miss")
}

// S8: every tenant asks the same, in the same and in other words and as streams, at every replica,
// after all others have.
func TestSharedAnswersStayWithTheirTenants(t *testing.T) {
	t.Parallel()
	server, up := testkit.NewRedis(t), testkit.NewUpstream(t, numbered())
	tenants := []string{"red", "blue", "green"}
	keys := func(s *setup) {
		s.auth.Mode = auth.ModeKeys
		for _, name := range tenants {
			sum := sha256.Sum256([]byte(name))
			s.auth.Keys = append(s.auth.Keys, auth.KeyOptions{Name: name, SHA256: hex.EncodeToString(sum[:]), Tenant: name, Role: "user"})
		}
	}
	all := []*bench{sharing(t, server, up, keys), sharing(t, server, up, keys)}
	mine := map[string]string{} // answers by tenant
	for i, name := range tenants {
		got := all[i%2].chat(ask(lights), "Authorization", "Bearer "+name).says(t, "first of "+name, "miss")
		mine[name] = got.content(t)
		for _, r := range all {
			r.knows(i + 1)
		}
	}
	for _, r := range all {
		for _, name := range tenants {
			for body, want := range map[string]string{ask(lights): "exact", askStream(lights): "exact", ask(otherLights): "semantic", askStream(otherLights): "semantic"} {
				got := r.chat(body, "Authorization", "Bearer "+name).says(t, name, want)
				if text := got.content(t); text != mine[name] {
					t.Errorf("%s got %q, want %q", name, text, mine[name])
				}
			}
		}
	}
	if len(mine) != 3 || mine["red"] == mine["blue"] || mine["blue"] == mine["green"] {
		t.Errorf("answers %v", mine)
	}
}

func TestWithoutItsRedisAReplicaGoesOnAlone(t *testing.T) {
	t.Parallel()
	server, up := testkit.NewRedis(t), testkit.NewUpstream(t, numbered())
	a, b := sharing(t, server, up), sharing(t, server, up)
	a.chat(ask(lights)).says(t, "first", "miss")
	a.kept(1)
	b.knows(1)
	server.Stop()
	got := b.chat(ask(lights)).says(t, "what only Redis has", "miss")
	if got.content(t) != "answer 2" {
		t.Errorf("%s", got.body)
	}
	waitFor(t, "the count of the failure", func() bool { return b.counts("signalbox_cache_total", recall.Error) == 1 })
	a.chat(ask(lights)).says(t, "what this replica has", "exact")
	b.chat(ask(lights)).says(t, "what it has now", "exact")
	b.chat(ask(otherLights)).says(t, "in other words", "semantic")
	server.Start()
	n := 0
	waitFor(t, "answers to be shared again", func() bool {
		n++
		// the words of this question only: one like an earlier one would be answered in this
		// replica without a notice
		var words []string
		for word := range strings.FieldsSeq("where when who what why how") {
			words = append(words, word+strconv.Itoa(n))
		}
		text := strings.Join(words, " ")
		a.chat(ask(text))
		a.state.Caching.Close()
		return b.chat(ask(text)).header.Get("X-Signalbox-Cache") == "exact"
	})
}

// hanging is a link to a Redis that does not respond until its callers give up, and records how
// long they would have waited.
type hanging struct {
	mu     sync.Mutex // guards what follows
	waited time.Duration
	calls  int
}

var errHangs = errors.New("redis hangs")

func (h *hanging) Do(ctx context.Context, budget time.Duration, _ func(context.Context, rueidis.Client) error) error {
	if end, ok := ctx.Deadline(); ok {
		budget = min(budget, time.Until(end))
	}
	if budget != time.Nanosecond { // what is kept, off the path of requests
		h.mu.Lock()
		h.waited += max(budget, 0)
		h.calls++
		h.mu.Unlock()
	}
	wait := time.NewTimer(budget)
	defer wait.Stop()
	<-wait.C
	return errHangs
}

func (*hanging) Listen(ctx context.Context, _ string, _ func(), _ func(string)) error {
	<-ctx.Done()
	return nil
}

// A request waits for a hanging Redis no longer than one lookup may take, however many lookups it
// makes.
func TestARedisThatHangsCostsARequestOneLook(t *testing.T) {
	t.Parallel()
	up, h := testkit.NewUpstream(t, numbered()), &hanging{}
	const budget = 20 * time.Millisecond
	b := start(t, oneModel(up), caches(recall.ModeSemantic), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [{name: small, weight: 1}, {name: big, weight: 1}], by: weight}" // looks for either
		s.cache.Shared, s.cache.MaxBytes = true, 1<<20
		var err error
		if s.answers, err = recall.NewAnswers(s.cache, cache.NewRedis(h, cache.RedisOptions{Budget: budget, Write: time.Nanosecond}), nil); err != nil {
			t.Fatal(err)
		}
	})
	id, action := b.memoOf(ask(lights)), b.state.Program.Actions()[0]
	for i, model := range []string{"small", "big"} {
		c := b.state.Caching
		elsewhere := &cache.Answer{Data: make([]byte, 512<<10)} // too long to be kept in this process
		if err := c.Cache.Keep(t.Context(), id, c.Partition(model, action), bag(lights), elsewhere); !errors.Is(err, errHangs) {
			t.Fatal(err)
		}
		id.Key[0] ^= byte(i + 1)
	}
	h.mu.Lock()
	h.waited, h.calls = 0, 0
	h.mu.Unlock()
	b.chat(ask(otherLights)).says(t, "while Redis hangs", "miss")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls < 3 || h.waited > budget+time.Millisecond {
		t.Errorf("%d looks would have waited %s, want three or more within %s", h.calls, h.waited, budget)
	}
}
