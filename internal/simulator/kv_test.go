package simulator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/simulator"
	"signalbox/internal/simulator/kv"
)

// cached adds a prefix cache to the options of a server.
func cached(o *simulator.Options) { o.KV = simulator.DefaultKV() }

// long is a system prompt of so many words, each a token.
func long(words int) string { return strings.TrimSpace(strings.Repeat("word ", words)) }

// ask is a chat request with a system prompt and more members.
func ask(system, question, extra string) string {
	return fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user","content":%q}]%s}`, system, question, extra)
}

type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Total   int `json:"total_tokens"`
	Details *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// cachedTokens is the cached tokens of a body that is not streamed.
func cachedTokens(t *testing.T, body []byte) int {
	t.Helper()
	var answer struct{ Usage usage }
	if err := json.Unmarshal(body, &answer); err != nil || answer.Usage.Details == nil {
		t.Fatalf("no cached tokens (%v) in %s", err, body)
	}
	return answer.Usage.Details.Cached
}

func TestUsageTellsCachedTokens(t *testing.T) {
	first := ask(long(100), "One", "")
	for _, c := range []struct {
		name, path, body string
		want             int
	}{
		{"the same request", "/v1/chat/completions", first, 96}, // 112 tokens, of which 6 full blocks
		{"another question after the same prompt", "/v1/chat/completions", ask(long(100), "Two", ""), 96},
		{"another system prompt", "/v1/chat/completions", ask("Hi. "+long(100), "One", ""), 0},
		{"a salt", "/v1/chat/completions", ask(long(100), "One", `,"cache_salt":"a"`), 0},
		{"a reasoning effort", "/v1/chat/completions", ask(long(100), "One", `,"reasoning_effort":"high"`), 0},
		{"several answers share one prompt", "/v1/chat/completions", ask(long(100), "One", `,"n":3`), 96},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newServer(t, cached).Handler()
			if n := cachedTokens(t, post(t, h, "/v1/chat/completions", first).Body.Bytes()); n != 0 {
				t.Errorf("the first request found %d tokens", n)
			}
			if n := cachedTokens(t, post(t, h, c.path, c.body).Body.Bytes()); n != c.want {
				t.Errorf("%d tokens cached, want %d", n, c.want)
			}
		})
	}
}

func TestCompletionsAndResponsesTellCachedTokens(t *testing.T) {
	h := newServer(t, cached).Handler()
	prompts := fmt.Sprintf(`{"prompt":[%q,%q]}`, long(40), "other "+long(40))
	post(t, h, "/v1/completions", prompts)
	if n := cachedTokens(t, post(t, h, "/v1/completions", prompts).Body.Bytes()); n != 64 {
		t.Errorf("%d tokens cached of two prompts, want 32 each", n)
	}
	ids := `{"prompt":[` + strings.Repeat("7,", 40) + `7]}`
	post(t, h, "/v1/completions", ids)
	if n := cachedTokens(t, post(t, h, "/v1/completions", ids).Body.Bytes()); n != 32 {
		t.Errorf("%d tokens cached of 41 token ids, want 32", n)
	}
	response := fmt.Sprintf(`{"instructions":%q,"input":"Hi"}`, long(50))
	post(t, h, "/v1/responses", response)
	var got struct {
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"input_tokens_details"`
		}
	}
	if err := json.Unmarshal(post(t, h, "/v1/responses", response).Body.Bytes(), &got); err != nil || got.Usage.Details.Cached != 48 {
		t.Errorf("%d tokens cached of a response (%v), want 48", got.Usage.Details.Cached, err)
	}
}

func TestStreamsTellCachedTokensInTheLastChunk(t *testing.T) {
	h := newServer(t, cached).Handler()
	body := ask(long(100), "One", `,"stream":true,"stream_options":{"include_usage":true,"continuous_usage_stats":true},"max_tokens":3`)
	post(t, h, "/v1/chat/completions", body)
	chunks := strings.Split(strings.TrimSpace(post(t, h, "/v1/chat/completions", body).Body.String()), "\n\n")
	told := 0
	for i, chunk := range chunks[:len(chunks)-1] {
		var c struct{ Usage *usage }
		if err := json.Unmarshal([]byte(strings.TrimPrefix(chunk, "data: ")), &c); err != nil || c.Usage == nil {
			t.Fatalf("chunk %d: %v: %s", i, err, chunk)
		}
		if c.Usage.Details != nil {
			told++
			if i != len(chunks)-2 || c.Usage.Details.Cached != 96 {
				t.Errorf("chunk %d of %d tells %d cached tokens, want 96 in the last one", i, len(chunks), c.Usage.Details.Cached)
			}
		}
	}
	if told != 1 || chunks[len(chunks)-1] != "data: [DONE]" {
		t.Errorf("%d chunks tell cached tokens; the stream ends with %q", told, chunks[len(chunks)-1])
	}
}

func TestAnAnswerIsFoundByTheNextTurn(t *testing.T) {
	h := newServer(t, cached).Handler()
	answer := chatText(t, h, ask(long(100), "One", ""))
	next := fmt.Sprintf(`{"messages":[{"role":"system","content":%q},{"role":"user","content":"One"},{"role":"assistant","content":%q},{"role":"user","content":"Two"}]}`,
		long(100), answer)
	if n, least := cachedTokens(t, post(t, h, "/v1/chat/completions", next).Body.Bytes()), 112+simulator.CountTokens(answer)-16; n < least {
		t.Errorf("%d tokens cached, want the prompt and nearly all of the answer, at least %d", n, least)
	}
}

func TestTimesWithAPrefixCache(t *testing.T) {
	const ttft, tpot = 30 * time.Millisecond, 5 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) { cached(o); o.TTFT, o.TPOT, o.KV.Prefill = ttft, tpot, time.Millisecond }).Handler()
		for _, computed := range []int{112, 112 - 96} {
			w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions",
				strings.NewReader(ask(long(100), "One", `,"stream":true,"max_tokens":3`))))
			first := ttft + time.Duration(computed)*time.Millisecond
			want := []time.Duration{first, first, first + tpot, first + 2*tpot, first + 2*tpot}
			if diff := cmp.Diff(want, w.flushes); diff != "" {
				t.Errorf("flush times (-want +got):\n%s", diff)
			}
		}
	})
}

func TestOthersSlowAnAnswerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) {
			o.KV, o.TPOT = simulator.DefaultKV(), 10*time.Millisecond
			o.KV.Crowd = 10 * time.Millisecond
		}).Handler()
		start, done := time.Now(), make(chan time.Duration, 2)
		for _, tokens := range []int{11, 6} {
			go func() {
				post(t, h, "/v1/chat/completions", fmt.Sprintf(`{"max_tokens":%d,"messages":[{"role":"user","content":"Hi"}]}`, tokens))
				done <- time.Since(start)
			}()
			synctest.Wait()
		}
		// Five tokens each at 20 ms, then five of the longer one alone at 10 ms.
		if got := []time.Duration{<-done, <-done}; !cmp.Equal(got, []time.Duration{100 * time.Millisecond, 150 * time.Millisecond}) {
			t.Errorf("answers came after %v, want 100ms and 150ms", got)
		}
	})
}

func TestSeatsOfAPrefixCacheAreGivenInOrderAndFreedByWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan string, 1)
		h := newServer(t, func(o *simulator.Options) {
			o.KV, o.TTFT, o.MaxNumSeqs = simulator.DefaultKV(), time.Second, 1
			o.OnCancel = func(id string) { left <- id }
		}).Handler()
		start, done := time.Now(), make(chan time.Duration, 3)
		ctx, leave := context.WithCancel(t.Context())
		send := func(ctx context.Context) {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions",
				strings.NewReader(`{"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`)))
			done <- time.Since(start)
		}
		for _, c := range []context.Context{ctx, t.Context(), t.Context()} {
			go send(c)
			synctest.Wait()
		}
		page := get(t, h, "/metrics").Body.String()
		for _, line := range []string{
			"vllm:num_requests_running{engine=\"0\",model_name=\"llama-70b\"} 1\n",
			"vllm:num_requests_waiting{engine=\"0\",model_name=\"llama-70b\"} 2\n",
			"vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"llama-70b\"} 6.103515625e-05\n", // a block of 16384
		} {
			if !strings.Contains(page, line) {
				t.Errorf("metrics lack %s in:\n%s", line, page)
			}
		}
		time.Sleep(500 * time.Millisecond)
		leave()
		want := []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond}
		if got := []time.Duration{<-done, <-done, <-done}; !cmp.Equal(got, want) {
			t.Errorf("requests ended after %v, want %v", got, want)
		}
		if id := <-left; !strings.HasPrefix(id, "chatcmpl-") {
			t.Errorf("%q left", id)
		}
	})
}

func TestPriorities(t *testing.T) {
	body := `{"max_tokens":1,"priority":%d,"messages":[{"role":"user","content":"Hi"}]}`
	if w := post(t, newServer(t, cached).Handler(), "/v1/chat/completions", fmt.Sprintf(body, 1)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"priority"`) {
		t.Errorf("a priority without priority scheduling: %d %s", w.Code, w.Body)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) {
			o.KV, o.TTFT, o.MaxNumSeqs, o.PriorityScheduling = simulator.DefaultKV(), time.Second, 1, true
		}).Handler()
		order := make(chan int, 3)
		for _, priority := range []int{0, 7, -7} {
			go func() {
				post(t, h, "/v1/chat/completions", fmt.Sprintf(body, priority))
				order <- priority
			}()
			synctest.Wait()
		}
		if got := []int{<-order, <-order, <-order}; !cmp.Equal(got, []int{0, -7, 7}) {
			t.Errorf("priorities were served in the order %v", got)
		}
	})
}

func TestSaltsAreChecked(t *testing.T) {
	h := newServer(t, cached).Handler()
	for _, salt := range []string{"", strings.Repeat("a", 1025)} {
		if w := post(t, h, "/v1/chat/completions", ask("", "Hi", fmt.Sprintf(`,"cache_salt":%q`, salt))); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"cache_salt"`) {
			t.Errorf("a salt of %d bytes: %d %s", len(salt), w.Code, w.Body)
		}
	}
}

func TestMetricsOfAPrefixCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) {
			cached(o)
			o.KV.OffloadBlocks, o.KV.Prefill, o.DevMode = 100, time.Millisecond, true
		}).Handler()
		for range 2 {
			post(t, h, "/v1/chat/completions", ask(long(100), "One", `,"max_tokens":5`))
		}
		golden(t, "metrics_kv.golden", get(t, h, "/metrics").Body.Bytes())
		post(t, h, "/reset_prefix_cache", "")
		if n := cachedTokens(t, post(t, h, "/v1/chat/completions", ask(long(100), "One", "")).Body.Bytes()); n != 96 {
			t.Errorf("%d tokens after a reset of the cache that leaves main memory, want 96", n)
		}
		post(t, h, "/reset_prefix_cache?reset_external=true", "")
		if n := cachedTokens(t, post(t, h, "/v1/chat/completions", ask(long(100), "One", "")).Body.Bytes()); n != 0 {
			t.Errorf("%d tokens after a reset of both, want 0", n)
		}
	})
}

func TestSleepForgetsAndLetsRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) { cached(o); o.DevMode = true }).Handler()
		post(t, h, "/v1/chat/completions", ask(long(100), "One", ""))
		post(t, h, "/sleep?level=1", "")
		if body := get(t, h, "/is_sleeping").Body.String(); body != `{"is_sleeping":true}` {
			t.Errorf("asleep: %s", body)
		}
		done := make(chan []byte)
		go func() { done <- post(t, h, "/v1/chat/completions", ask(long(100), "One", "")).Body.Bytes() }()
		synctest.Wait()
		select {
		case body := <-done:
			t.Fatalf("a server that sleeps answered %s", body)
		default:
		}
		post(t, h, "/wake_up", "")
		if n := cachedTokens(t, <-done); n != 0 {
			t.Errorf("%d tokens survived sleep", n)
		}
		if body := get(t, h, "/is_sleeping").Body.String(); body != `{"is_sleeping":false}` {
			t.Errorf("awake: %s", body)
		}
	})
	if w := post(t, newServer(t, cached).Handler(), "/sleep", ""); w.Code != http.StatusNotFound {
		t.Errorf("/sleep without dev mode: %d", w.Code)
	}
}

func TestARestartCutsConnectionsAndForgets(t *testing.T) {
	s := newServer(t, func(o *simulator.Options) { cached(o); o.DevMode, o.TPOT = true, time.Hour })
	server := listen(t, s)
	send := func(extra string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/v1/chat/completions", strings.NewReader(ask(long(100), "One", extra)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	read := func(extra string) []byte {
		res := send(extra)
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	read(`,"max_tokens":1`)
	stream := send(`,"stream":true`)
	defer stream.Body.Close()
	post(t, s.Handler(), "/sim/restart", "")
	if body, err := io.ReadAll(stream.Body); err == nil || bytes.Contains(body, []byte("[DONE]")) {
		t.Errorf("a stream survived the restart: %v, %s", err, body)
	}
	if n := cachedTokens(t, read(`,"max_tokens":1`)); n != 0 {
		t.Errorf("%d tokens survived the restart", n)
	}
	if page := get(t, s.Handler(), "/metrics").Body.String(); !strings.Contains(page, `vllm:prefix_cache_queries_total{engine="0",model_name="llama-70b"} 112`) {
		t.Errorf("counts did not begin anew:\n%s", page)
	}
}

func TestServersOfANetworkTakeBlocksFromEachOther(t *testing.T) {
	var network simulator.Network
	server := func(port int) http.Handler {
		return newServer(t, func(o *simulator.Options) {
			cached(o)
			o.KV.OffloadBlocks, o.Network, o.TransferAddr = 100, &network, fmt.Sprintf("10.0.0.5:%d", port)
		}).Handler()
	}
	a, b := server(5710), server(5711)
	post(t, a, "/v1/chat/completions", ask(long(100), "One", ""))
	for _, c := range []struct {
		port, want int
	}{{5712, 0}, {5710, 96}} {
		source := fmt.Sprintf(`,"cache_salt":"%d","kv_transfer_params":{"remote_kv_source":{"kv_request_id":"x","remote_host":"10.0.0.5","remote_port":%d}}`, c.port, c.port)
		if c.want > 0 {
			source = strings.Replace(source, fmt.Sprintf(`"cache_salt":"%d",`, c.port), "", 1)
		}
		if n := cachedTokens(t, post(t, b, "/v1/chat/completions", ask(long(100), "One", source)).Body.Bytes()); n != c.want {
			t.Errorf("from port %d: %d tokens, want %d", c.port, n, c.want)
		}
	}
}

func TestOptionsOfAPrefixCache(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*simulator.Options)
	}{
		{
			"a window that does not fit", "--max-model-len: 32768 tokens do not fit into the 1600",
			func(o *simulator.Options) { o.KV.Blocks = 100 },
		},
		{"no block size", "--block-size: 0 is less than 1", func(o *simulator.Options) { o.KV.BlockTokens = 0 }},
		{
			"dev mode without a cache", "--dev: needs a prefix cache",
			func(o *simulator.Options) { o.KV, o.DevMode = kv.Options{}, true },
		},
		{"a pace that is none", "--crowd: -1ns is negative", func(o *simulator.Options) { o.KV.Crowd = -1 }},
		{
			"fewer blocks than none", "--num-gpu-blocks-override: -1 is less than 0",
			func(o *simulator.Options) { o.KV.Blocks = -1 },
		},
		{
			"an address without main memory", "transfer_addr: needs --offload-blocks",
			func(o *simulator.Options) { o.TransferAddr = "a:1" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := simulator.DefaultOptions()
			o.Model, o.KV = "m", simulator.DefaultKV()
			c.change(&o)
			if _, err := simulator.New(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestTokenizeWithoutAnOpenAnswer(t *testing.T) {
	h := newServer(t, cached).Handler()
	count := func(extra string) int {
		var got struct{ Count int }
		if err := json.Unmarshal(post(t, h, "/tokenize", ask(long(10), "Hi", extra)).Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got.Count
	}
	if with, without := count(""), count(`,"add_generation_prompt":false`); with != without+3 {
		t.Errorf("%d tokens with an open answer, %d without; want 3 more", with, without)
	}
}

func BenchmarkChatWithAPrefixCache(b *testing.B) {
	h := newServer(b, cached).Handler()
	body := ask(long(8000), "Hi", "")
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		h.ServeHTTP(&discard{header: http.Header{}}, r)
	}
}
