package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox/internal/config"
	"signalbox/internal/simulator"
	"signalbox/internal/testkit"
)

// cached serves a file with a cache in front of one model server.
func cached(t *testing.T, file string) *server {
	t.Helper()
	cfg, _, err := config.Load(file, os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, cfg, config.Settings{})
}

// cacheFile writes such a file. extra goes into the section of the cache.
func cacheFile(t *testing.T, file, url, redis, extra string) string {
	t.Helper()
	text := fmt.Sprintf("models: [{name: small, endpoints: [{name: a, url: %q}]}]\nauth: {mode: none}\ncache: {mode: exact%s}\nroutes: []\ndefault: {models: [small]}\n", url, extra)
	if redis != "" {
		text += fmt.Sprintf("memory: {redis: {url: %q, meta_timeout: 10s}}\n", redis)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// says fails the test unless the cache did what is wanted.
func (s *server) says(t *testing.T, what, prompt, want string) {
	t.Helper()
	if got := s.post(t, "/v1/chat/completions", chat("auto", prompt)); got.status != http.StatusOK || got.header.Get("X-Signalbox-Cache") != want {
		t.Errorf("%s: status %d, cache %q, want %q", what, got.status, got.header.Get("X-Signalbox-Cache"), want)
	}
}

// kept waits until n answers were kept.
func (s *server) kept(t *testing.T, n int) {
	t.Helper()
	want := fmt.Sprintf(`signalbox_cache_kept_total{result="kept"} %d`, n)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(time.Minute); ; <-poll.C {
		page := do(t, http.MethodGet, s.admin+"/metrics", "").body
		if strings.Contains(page, want+"\n") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s within a minute", want)
		}
	}
}

func TestAReloadKeepsTheAnswers(t *testing.T) {
	_, url := startBackend(t, nil)
	file := cacheFile(t, filepath.Join(t.TempDir(), "signalbox.yaml"), url, "", "")
	s := cached(t, file)
	reload := func(extra string) {
		t.Helper()
		cacheFile(t, file, url, "", extra)
		if err := s.app.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.says(t, "first", "hello", "miss")
	s.kept(t, 1)
	reload("")
	s.says(t, "after a reload of the same file", "hello", "exact")
	reload(", max_temperature: 0.5")
	s.says(t, "another file", "hello", "miss")
	s.kept(t, 2)
	reload("")
	s.says(t, "the first file again", "hello", "exact")
	reload(", ttl: 2h")
	s.says(t, "other room for answers", "hello", "miss")
}

func TestReplicasOfOneFileShareAnswers(t *testing.T) {
	redis := testkit.NewRedis(t)
	sim, url := startBackend(t, func(o *simulator.Options) { o.Record = 10 })
	file := cacheFile(t, filepath.Join(t.TempDir(), "signalbox.yaml"), url, redis.URL(), ", shared: true")
	a, b := cached(t, file), cached(t, file)
	a.says(t, "first", "hello", "miss")
	a.kept(t, 1)
	b.says(t, "on the other replica", "hello", "exact")
	if n := len(sim.Requests()); n != 1 {
		t.Errorf("%d requests went upstream", n)
	}
	off := cacheFile(t, filepath.Join(t.TempDir(), "signalbox.yaml"), url, redis.URL(), ", shared: false")
	cached(t, off).says(t, "a replica that shares nothing", "hello", "miss")
	// Without contexts the Redis is there for the answers alone.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(off, []byte(strings.Replace(string(text), "memory: {", "memory: {enabled: false, ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	c, d := cached(t, off), cached(t, off)
	c.says(t, "without contexts", "hello", "miss")
	c.kept(t, 1)
	d.says(t, "without contexts, on the other replica", "hello", "exact")
}

// parrot is a model server that answers with what it was asked.
func parrot(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Messages []struct{ Content string } }
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &in) != nil || len(in.Messages) == 0 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		said, _ := json.Marshal(in.Messages[len(in.Messages)-1].Content)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, said)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// questionPairs reads pairs of questions, the last two columns of a file.
func questionPairs(t *testing.T, file string) (pairs [][2]string) {
	t.Helper()
	data, err := os.ReadFile("../../memory/cache/testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		pairs = append(pairs, [2]string{f[len(f)-2], f[len(f)-1]})
	}
	return pairs
}

// asked sends a question and returns the text of the answer, and what the cache did.
func (s *server) asked(t *testing.T, question string) (text, cached string) {
	t.Helper()
	got := s.post(t, "/v1/chat/completions", chat("auto", question))
	var out struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if err := json.Unmarshal([]byte(got.body), &out); err != nil || got.status != http.StatusOK || len(out.Choices) != 1 {
		t.Errorf("%q: status %d, %v %s", question, got.status, err, got.body)
		return "", ""
	}
	return out.Choices[0].Message.Content, got.header.Get("X-Signalbox-Cache")
}

// The bars of the product, over HTTP and with the embedded model: of 320 pairs of questions that
// differ in what matters none gets the answer of the other, and 60 of 100 of 320 pairs that ask the
// same do. Every question may meet every other one.
func TestNoQuestionGetsTheAnswerOfAnother(t *testing.T) {
	needModels(t)
	url := parrot(t)
	text := fmt.Sprintf("models: [{name: small, endpoints: [{name: a, url: %q}]}]\nauth: {mode: none}\ncache: {mode: semantic}\nroutes: []\ndefault: {models: [small]}\n", url)
	cfg, _, err := config.Parse("test.yaml", []byte(text), os.LookupEnv, Catalog)
	if err != nil {
		t.Fatal(err)
	}
	cfg.File = ""
	s := serve(t, cfg, memoryOnly(flags(t)))
	minimal, same := questionPairs(t, "minimal_pairs.tsv"), questionPairs(t, "paraphrases.tsv")
	if len(minimal) < 300 || len(same) < 300 {
		t.Fatalf("%d minimal pairs and %d paraphrases, want 300 of each", len(minimal), len(same))
	}
	each := func(pairs [][2]string, do func(p [2]string)) {
		var wg sync.WaitGroup
		queue := make(chan [2]string)
		for range 4 {
			wg.Go(func() {
				for p := range queue {
					do(p)
				}
			})
		}
		for _, p := range pairs {
			queue <- p
		}
		close(queue)
		wg.Wait()
	}
	var first, hits, wrong, others atomic.Int64
	alike := map[string]string{ // of different lines of the files, compared by hand
		"What is the distance between the Earth and the Moon?": "What is the distance from the Earth to the Moon?",
		"Summarise the plot of Hamlet.":                        "Summarise the plot of Hamlet",
	}
	firsts := map[string]bool{}
	for _, p := range slices.Concat(minimal, same) {
		firsts[p[0]] = true
	}
	for _, pairs := range [][][2]string{minimal, same} {
		each(pairs, func(p [2]string) {
			if _, cached := s.asked(t, p[0]); cached == "miss" {
				first.Add(1)
			}
		})
	}
	s.kept(t, int(first.Load()))
	second := func(pairs [][2]string, to *atomic.Int64) {
		each(pairs, func(p [2]string) {
			switch said, cached := s.asked(t, p[1]); {
			case cached != "semantic":
			case said == p[0]:
				to.Add(1)
			case said == p[1]: // some lines share a question
			case firsts[said] && alike[p[1]] != said:
				t.Errorf("%q got the answer to %q", p[1], said)
			default: // of two lines that ask the same
				others.Add(1)
				t.Logf("%q got the answer to %q", p[1], said)
			}
		})
	}
	second(minimal, &wrong)
	second(same, &hits)
	t.Logf("%d of %d paraphrases hit, %d of %d minimal pairs wrong", hits.Load(), len(same), wrong.Load(), len(minimal))
	if most := int64(len(minimal)+len(same)) / 100; others.Load() > most {
		t.Errorf("%d second questions met those of other lines, which are not alike but for %d at most", others.Load(), most)
	}
	if wrong.Load() > 0 {
		t.Errorf("%d minimal pairs got the answer of the other", wrong.Load())
	}
	if hits.Load()*100 < int64(len(same))*60 {
		t.Errorf("%d of %d paraphrases hit, want 60 of 100", hits.Load(), len(same))
	}
}
