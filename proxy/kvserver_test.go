package proxy

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox/internal/simulator/kv"
)

// kvServer is a model server with a prefix cache: internal/simulator/kv with enough of the API for
// placement.
type kvServer struct {
	*httptest.Server
	tb testing.TB

	mu      sync.Mutex // guards what follows
	engine  *kv.Engine
	bodies  []map[string]json.RawMessage // of the requests so far
	silent  bool                         // /metrics is not there
	details bool                         // usage tells cached tokens
	scraped int
	down    bool
	window  int    // max_model_len of /v1/models; 0 for none
	asleep  bool   // as the metrics tell; requests are answered nevertheless
	paused  bool   // as it tells when it is asked; requests are answered nevertheless
	refusal string // the body of the 400 that answers every request; empty for none
}

// quick returns the options of a server on which 4,000 tokens take 8 ms.
func quick() kv.Options {
	o := kv.DefaultOptions()
	o.Blocks, o.Seats = 3000, 64
	o.Prefill, o.Overhead, o.Decode, o.Crowd = 2*time.Microsecond, time.Millisecond, 0, 0
	return o
}

func newKVServer(tb testing.TB, o kv.Options) *kvServer {
	tb.Helper()
	e, err := kv.New(o, time.Now().Add(-time.Hour))
	if err != nil {
		tb.Fatal(err)
	}
	s := &kvServer{tb: tb, engine: e, details: true}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.chat)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { s.metrics(w, o) })
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.window == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintf(w,
			`{"object":"list","data":[{"id":"lora","max_model_len":1},{"id":"Org/Small-7B",`+
				`"max_model_len":%d}]}`, s.window)
	})
	// As vLLM 0.32 does: its metrics say that it is awake, and requests wait.
	mux.HandleFunc("GET /is_paused", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"is_paused":%t}`, s.is(&s.paused))
	})
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		if s.is(&s.down) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s.Server = httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	return s
}

func (s *kvServer) is(flag *bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *flag
}

func (s *kvServer) set(flag *bool, to bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*flag = to
}

// refuse makes every request fail with status 400 and the body; an empty body ends this.
func (s *kvServer) refuse(body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = body
}

// serves makes /v1/models report a window.
func (s *kvServer) serves(window int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window = window
}

func (s *kvServer) refuses() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal
}

func (s *kvServer) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.Restart(time.Now())
}

// counters returns the server's counters.
func (s *kvServer) counters() kv.Counters {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine.Advance(time.Now())
	return s.engine.Counters()
}

// pages returns how often its metrics were requested.
func (s *kvServer) pages() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scraped
}

// requests returns the bodies received.
func (s *kvServer) requests() []map[string]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

func (s *kvServer) metrics(w io.Writer, o kv.Options) {
	c := s.counters()
	s.mu.Lock()
	s.scraped++
	s.mu.Unlock()
	if s.is(&s.silent) {
		return
	}
	c.Each(func(name string, value float64) { fmt.Fprintf(w, "%s{engine=\"0\"} %g\n", name, value) })
	awake := 1
	if s.is(&s.asleep) {
		awake = 0
	}
	fmt.Fprintf(w, "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} %d\n", awake)
	fmt.Fprintf(w, "vllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} %d\n", 1-awake)
	fmt.Fprintf(w, "vllm:cache_config_info{block_size=\"%d\",enable_prefix_caching=\"True\",num_gpu_blocks=\"%d\"} 1\n", o.BlockTokens, o.Blocks)
}

// tokensOf divides a prompt into tokens of four bytes.
func tokensOf(text string) []uint32 {
	var out []uint32
	for len(text) > 0 {
		n := min(4, len(text))
		h := fnv.New32a()
		_, _ = h.Write([]byte(text[:n]))
		out, text = append(out, h.Sum32()), text[n:]
	}
	return out
}

func (s *kvServer) chat(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	refusal := s.refuses()
	if kind := r.Header.Get("Content-Type"); kind != "application/json" { // as vLLM, whose answer to this it is
		refusal = `{"error":{"message":"Unsupported Media Type: Only 'application/json' is allowed",` +
			`"type":"Bad Request","param":null,"code":400}}`
	}
	if refusal != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, refusal)
		return
	}
	var body struct {
		Messages []struct{ Role, Content string }
		Stream   bool
		Salt     string `json:"cache_salt"`
		Effort   string `json:"reasoning_effort"`
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &body) != nil || json.Unmarshal(raw, &all) != nil {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	var prompt strings.Builder
	for _, m := range body.Messages {
		prompt.WriteString("<" + m.Role + ">" + m.Content)
	}
	sequence, ok := s.run(r, all, kv.Request{
		Seed: kv.Seed{Salt: body.Salt, Effort: body.Effort}, Prompt: tokensOf(prompt.String()), Answer: tokensOf("a short answer."),
	})
	if !ok {
		panic(http.ErrAbortHandler)
	}
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":4,"total_tokens":%d}`, sequence.Prompt(), sequence.Prompt()+4)
	if s.is(&s.details) && sequence.Cached > 0 { // as vLLM: nothing is said of 0
		usage = fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":4,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`,
			sequence.Prompt(), sequence.Prompt()+4, sequence.Cached)
	}
	if !body.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a short answer."},"finish_reason":"stop"}],"usage":%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a short answer.\"},\"finish_reason\":null}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n")
	fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":%s}\n\ndata: [DONE]\n\n", usage)
}

// run waits for a request to be answered; it returns false if its client or the server's process
// has gone.
func (s *kvServer) run(r *http.Request, body map[string]json.RawMessage, req kv.Request) (kv.Sequence, bool) {
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	sequence, err := s.engine.Submit(time.Now(), req)
	s.mu.Unlock()
	if err != nil {
		s.tb.Errorf("submit: %v", err)
		return kv.Sequence{}, false
	}
	for {
		s.mu.Lock()
		s.engine.Advance(time.Now())
		state, copied := sequence.State, *sequence
		next, ok := s.engine.Next()
		s.mu.Unlock()
		switch {
		case state == kv.Finished:
			return copied, true
		case state == kv.Gone:
			return copied, false
		case !ok:
			s.tb.Error("a request waits for nothing")
			return copied, false
		}
		timer := time.NewTimer(max(time.Until(next), 100*time.Microsecond))
		select {
		case <-timer.C:
		case <-r.Context().Done():
			timer.Stop()
			s.mu.Lock()
			s.engine.Cancel(time.Now(), sequence)
			s.mu.Unlock()
			return copied, false
		}
	}
}
