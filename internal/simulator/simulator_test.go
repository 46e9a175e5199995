package simulator_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/simulator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// newServer returns a server named llama-70b that answers at once.
func newServer(tb testing.TB, change func(*simulator.Options)) *simulator.Server {
	tb.Helper()
	o := simulator.DefaultOptions()
	o.Model, o.TTFT, o.TPOT, o.Seed = "llama-70b", 0, 0, 7
	if change != nil {
		change(&o)
	}
	s, err := simulator.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// post sends body to the handler in this goroutine.
func post(tb testing.TB, h http.Handler, path, body string) *httptest.ResponseRecorder {
	tb.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodPost, path, strings.NewReader(body)))
	return w
}

func get(tb testing.TB, h http.Handler, path string) *httptest.ResponseRecorder {
	tb.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(tb.Context(), http.MethodGet, path, nil))
	return w
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

func TestWireFormat(t *testing.T) {
	const weather = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object",` +
		`"properties":{"city":{"type":"string"},"unit":{"enum":["celsius","kelvin"]},"days":{"type":"integer"}},` +
		`"required":["city","unit","days"]}}}]`
	for _, c := range []struct{ name, path, body string }{
		{"chat", "/v1/chat/completions", `{"model":"llama-70b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is the capital of France?"}]}`},
		{"chat_stream", "/v1/chat/completions", `{"model":"llama-70b","stream":true,"max_tokens":12,"messages":[{"role":"user","content":"Hi"}]}`},
		{
			"chat_stream_stop_usage", "/v1/chat/completions",
			`{"stream":true,"stream_options":{"include_usage":true},"stop":["simulated"],` +
				`"messages":[{"role":"user","content":"Hi"}]}`,
		},
		{"chat_stream_two_choices_every_usage", "/v1/chat/completions", `{"stream":true,"stream_options":{"continuous_usage_stats":true},"n":2,"max_completion_tokens":3,"messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_stream_reasoning", "/v1/chat/completions", `{"stream":true,"max_tokens":40,"chat_template_kwargs":{"enable_thinking":true},"messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_stream_tool_named", "/v1/chat/completions", `{"stream":true,` + weather + `,"tool_choice":{"type":"function","function":{"name":"get_weather"}},"messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_tool_required", "/v1/chat/completions", `{` + weather + `,"tool_choice":"required","messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_reasoning_effort", "/v1/chat/completions", `{"reasoning_effort":"high","messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_logprobs", "/v1/chat/completions", `{"logprobs":true,"max_tokens":2,"messages":[{"role":"user","content":"Hi"}]}`},
		{"chat_stream_logprobs", "/v1/chat/completions", `{"stream":true,"logprobs":true,"max_tokens":2,"messages":[{"role":"user","content":"Hi"}]}`},
		{"completion", "/v1/completions", `{"model":"llama-70b","prompt":["one","two"]}`},
		{"completion_stream", "/v1/completions", `{"model":"llama-70b","prompt":"one","stream":true,"max_tokens":5}`},
		{"response", "/v1/responses", `{"model":"llama-70b","instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"What is the capital of France?"}]}],"reasoning":{"effort":"low"}}`},
		{"response_stream", "/v1/responses", `{"stream":true,"max_output_tokens":12,"input":"Hi"}`},
		{"response_stream_reasoning", "/v1/responses", `{"stream":true,"max_output_tokens":40,"chat_template_kwargs":{"enable_thinking":true},"input":"Hi"}`},
		{"response_stream_tool", "/v1/responses", `{"stream":true,"tools":[{"type":"function","name":"get_weather","parameters":{"required":["city"],"properties":{"city":{"type":"string"}}}}],"tool_choice":{"type":"function","name":"get_weather"},"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"42"}]}`},
		{"tokenize", "/tokenize", `{"prompt":"Hello, internationalization 漢字漢字","return_token_strs":true}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := post(t, newServer(t, nil).Handler(), c.path, c.body)
				if w.Code != http.StatusOK {
					t.Fatalf("status %d: %s", w.Code, w.Body)
				}
				wantType := "application/json"
				if strings.Contains(c.body, `"stream":true`) {
					wantType = "text/event-stream; charset=utf-8"
				}
				if got := w.Header().Get("Content-Type"); got != wantType {
					t.Errorf("Content-Type %q, want %q", got, wantType)
				}
				golden(t, c.name+".golden", w.Body.Bytes())
			})
		})
	}
}

func TestErrorsHaveTheShapeOfVLLM(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		status           int
		param            string // "" for null
	}{
		{"a model that is not served", "/v1/chat/completions", `{"model":"gpt-4","messages":[{"role":"user","content":"a"}]}`, 404, "model"},
		{"a model that is not served, tokenized", "/tokenize", `{"model":"gpt-4","prompt":"a"}`, 404, "model"},
		{"a body that is not JSON", "/v1/chat/completions", `{"model"`, 400, ""},
		{"no messages", "/v1/chat/completions", `{"model":"llama-70b"}`, 400, "messages"},
		{"names are case-sensitive", "/v1/chat/completions", `{"Messages":[{"role":"user","content":"a"}]}`, 400, "messages"},
		{"content of the wrong type", "/v1/chat/completions", `{"messages":[{"role":"user","content":5}]}`, 400, "messages.0.content"},
		{"max_tokens of zero", "/v1/chat/completions", `{"max_tokens":0,"messages":[{"role":"user","content":"a"}]}`, 400, "max_tokens"},
		{"max_tokens with a fraction", "/v1/chat/completions", `{"max_tokens":1.5,"messages":[{"role":"user","content":"a"}]}`, 400, "max_tokens"},
		{"more tokens than the window holds", "/v1/chat/completions", `{"max_tokens":32768,"messages":[{"role":"user","content":"a"}]}`, 400, "messages"},
		{"n beyond the bound", "/v1/chat/completions", `{"n":1000,"messages":[{"role":"user","content":"a"}]}`, 400, "n"},
		{"min_tokens above max_tokens", "/v1/chat/completions", `{"min_tokens":9,"max_tokens":3,"messages":[{"role":"user","content":"a"}]}`, 400, "min_tokens"},
		{"stream options without a stream", "/v1/chat/completions", `{"stream_options":{},"messages":[{"role":"user","content":"a"}]}`, 400, "stream_options"},
		{"a forced tool that is not defined", "/v1/chat/completions", `{"tool_choice":{"function":{"name":"x"}},"messages":[{"role":"user","content":"a"}]}`, 400, "tool_choice"},
		{"a required tool without tools", "/v1/chat/completions", `{"tool_choice":"required","messages":[{"role":"user","content":"a"}]}`, 400, "tools"},
		{"an unknown tool choice", "/v1/chat/completions", `{"tool_choice":"maybe","messages":[{"role":"user","content":"a"}]}`, 400, "tool_choice"},
		{"no prompt", "/v1/completions", `{}`, 400, "prompt"},
		{"a prompt of the wrong type", "/v1/completions", `{"prompt":{}}`, 400, "prompt"},
		{"no input", "/v1/responses", `{}`, 400, "input"},
		{"a limit of zero", "/v1/responses", `{"input":"a","max_output_tokens":0}`, 400, "max_output_tokens"},
		{"a response that was not kept", "/v1/responses", `{"input":"a","previous_response_id":"resp_1"}`, 404, "response_id"},
		{"an item that is not simulated", "/v1/responses", `{"input":[{"type":"computer_call"}]}`, 400, "input"},
		{"nothing to tokenize", "/tokenize", `{}`, 400, "prompt"},
		{"a path that does not exist", "/v1/rerank", `{}`, 404, ""},
		{"a method that is not allowed", "/health", ``, 405, ""},
		{"a body that is too large", "/v1/chat/completions", `{"messages":"` + strings.Repeat("a", 5000) + `"}`, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, func(o *simulator.Options) { o.MaxBodyBytes = 4096 })
			w := post(t, s.Handler(), c.path, c.body)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			var body struct {
				Error map[string]any `json:"error"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatalf("%v: %s", err, w.Body)
			}
			var param any
			if c.param != "" {
				param = c.param
			}
			got := body.Error
			for _, key := range []string{"message", "type"} {
				if text, _ := got[key].(string); text == "" {
					t.Errorf("error.%s is missing: %s", key, w.Body)
				}
				delete(got, key)
			}
			if diff := cmp.Diff(map[string]any{"code": float64(c.status), "param": param}, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// chatText returns the content of a chat completion that is not streamed.
func chatText(t *testing.T, h http.Handler, body string) string {
	t.Helper()
	w := post(t, h, "/v1/chat/completions", body)
	var answer struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Choices) == 0 {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return answer.Choices[0].Message.Content
}

func TestAHeaderSaysWhatTheServerWasSent(t *testing.T) {
	h := newServer(t, nil).Handler()
	long := strings.Repeat("word ", 40)
	for _, c := range []struct{ name, body, want string }{
		{
			"a plain question",
			`{"messages":[{"role":"user","content":"Why is the sky blue?"}],"max_tokens":100}`,
			`[llama-70b] I am a simulated server. I was asked: "Why is the sky blue?". System ` +
				`prompt: none. Reasoning: not asked for. max_tokens: 100.`,
		},
		{
			"the last question of a conversation and its system prompt",
			`{"messages":[{"role":"system","content":"You are a\nlawyer."},{"role":"user","content":"One"},{"role":"assistant","content":"1"},{"role":"user","content":"Two"}]}`,
			`[llama-70b] I am a simulated server. I was asked: "Two". System prompt: "You are a ` +
				`lawyer.". Reasoning: not asked for. max_tokens: not set.`,
		},
		{
			"both reasoning dialects as sent",
			`{"messages":[{"role":"user","content":"Hi"}],"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking": false},"max_completion_tokens":90,"max_tokens":5}`,
			`[llama-70b] I am a simulated server. I was asked: "Hi". System prompt: none. ` +
				`Reasoning: effort low, chat_template_kwargs {"enable_thinking": false}. ` +
				`max_tokens: 90.`,
		},
		{
			"the text of an image question",
			`{"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`,
			`[llama-70b] I am a simulated server. I was asked: "What is this?".`,
		},
		{
			"a question that a header cannot hold",
			`{"messages":[{"role":"user","content":"Größe\u0007 漢"}],"stream":true}`,
			`[llama-70b] I am a simulated server. I was asked: "Gr\u00f6\u00dfe\a \u6f22".`,
		},
		{
			"a long question cut at 80 characters",
			`{"messages":[{"role":"user","content":"` + long + `"}]}`,
			`[llama-70b] I am a simulated server. I was asked: "` + strings.TrimSpace(long[:80]) + `...".`,
		},
		{
			"unknown fields and fields of the wrong spelling are ignored",
			`{"messages":[{"role":"user","content":"Hi","name":"x"}],"guided_json":{"a":1},"MAX_TOKENS":1,"top_k":null,"stop":null,"n":null}`,
			`[llama-70b] I am a simulated server. I was asked: "Hi". System prompt: none. ` +
				`Reasoning: not asked for. max_tokens: not set.`,
		},
		{
			"the last of two equal names holds, as in Python",
			`{"messages":[{"role":"user","content":"One"}],"messages":[{"role":"user","content":"Two"}]}`,
			`[llama-70b] I am a simulated server. I was asked: "Two".`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(t, h, "/v1/chat/completions", c.body)
			if got := w.Header().Get(simulator.PrefaceHeader); !strings.HasPrefix(got, c.want) {
				t.Errorf("header\n  %s\ndoes not begin with\n  %s", got, c.want)
			}
			if strings.Contains(w.Body.String(), "I was asked") {
				t.Errorf("the answer repeats it: %s", w.Body)
			}
		})
	}
}

func TestSameQuestionHasTheSameAnswerAndAnotherSeedAnother(t *testing.T) {
	const ask = `{"messages":[{"role":"user","content":"Hi"}]}`
	first := newServer(t, nil).Handler()
	chatText(t, first, `{"messages":[{"role":"user","content":"something else"}]}`)
	a, b := chatText(t, first, ask), chatText(t, newServer(t, nil).Handler(), ask)
	if a != b {
		t.Errorf("answers differ:\n%s\n%s", a, b)
	}
	if c := chatText(t, newServer(t, func(o *simulator.Options) { o.Seed = 8 }).Handler(), ask); c == a {
		t.Errorf("seeds 7 and 8 give the same answer: %s", a)
	}
	if d := chatText(t, first, `{"seed":5,"messages":[{"role":"user","content":"Hi"}]}`); d == a {
		t.Errorf("the request's seed changes nothing: %s", a)
	}
}

func TestLengthOfAnAnswer(t *testing.T) {
	h := newServer(t, nil).Handler()
	for _, c := range []struct {
		name, extra string
		low, high   int
		finish      string
	}{
		{"usual", ``, 30, 70, "stop"},
		{"cut", `,"max_tokens":9`, 9, 9, "length"},
		{"at least", `,"min_tokens":200`, 200, 220, "stop"},
		{"exact with ignore_eos", `,"max_tokens":321,"ignore_eos":true`, 321, 321, "length"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := post(t, h, "/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"}]`+c.extra+`}`)
			var got struct {
				Usage struct {
					CompletionTokens int `json:"completion_tokens"`
				} `json:"usage"`
				Choices []struct {
					FinishReason string `json:"finish_reason"`
				} `json:"choices"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if n := got.Usage.CompletionTokens; n < c.low || n > c.high {
				t.Errorf("%d completion tokens, want %d to %d", n, c.low, c.high)
			}
			if got.Choices[0].FinishReason != c.finish {
				t.Errorf("finish_reason %q, want %q", got.Choices[0].FinishReason, c.finish)
			}
		})
	}
}

func TestTokenizeCountsWhatUsageReports(t *testing.T) {
	h := newServer(t, nil).Handler()
	const chat = `{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url"}]}],` +
		`"tools":[{"type":"function","function":{"name":"f","description":"does it","parameters":{"a":1}}}]}`
	var tokenized struct {
		Count       int   `json:"count"`
		MaxModelLen int   `json:"max_model_len"`
		Tokens      []int `json:"tokens"`
	}
	if err := json.Unmarshal(post(t, h, "/tokenize", chat).Body.Bytes(), &tokenized); err != nil {
		t.Fatal(err)
	}
	var answered struct {
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(post(t, h, "/v1/chat/completions", chat).Body.Bytes(), &answered); err != nil {
		t.Fatal(err)
	}
	if tokenized.Count != answered.Usage.PromptTokens || tokenized.Count != len(tokenized.Tokens) || tokenized.MaxModelLen != 32768 {
		t.Errorf("tokenize: count %d, %d tokens, max_model_len %d; usage: %d", tokenized.Count, len(tokenized.Tokens),
			tokenized.MaxModelLen, answered.Usage.PromptTokens)
	}
}

func TestModelsHealthVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, nil).Handler()
		golden(t, "models.golden", get(t, h, "/v1/models").Body.Bytes())
		golden(t, "version.golden", get(t, h, "/version").Body.Bytes())
		if w := get(t, h, "/health"); w.Code != http.StatusOK || w.Body.Len() != 0 {
			t.Errorf("health: %d %q", w.Code, w.Body)
		}
	})
}

func TestMetricsAfterTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) { o.TTFT = 30 * time.Millisecond }).Handler()
		post(t, h, "/v1/chat/completions", `{"max_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`)
		post(t, h, "/v1/chat/completions", `{"stream":true,"n":2,"messages":[{"role":"user","content":"Hi"}]}`)
		post(t, h, "/v1/chat/completions", `not counted`)
		golden(t, "metrics.golden", get(t, h, "/metrics").Body.Bytes())
	})
}

func TestTokensKeepTheSchedule(t *testing.T) {
	const ttft, tpot = 30 * time.Millisecond, 5 * time.Millisecond
	paced := func(o *simulator.Options) { o.TTFT, o.TPOT = ttft, tpot }
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, paced).Handler()
		start := time.Now()
		post(t, h, "/v1/chat/completions", `{"max_tokens":11,"messages":[{"role":"user","content":"Hi"}]}`)
		if took := time.Since(start); took != ttft+10*tpot {
			t.Errorf("11 tokens took %v, want %v", took, ttft+10*tpot)
		}
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions",
			strings.NewReader(`{"stream":true,"max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}`)))
		// The role chunk and the first token, three more tokens, and [DONE] with the last of them.
		want := []time.Duration{ttft, ttft, ttft + tpot, ttft + 2*tpot, ttft + 3*tpot, ttft + 3*tpot}
		if diff := cmp.Diff(want, w.flushes); diff != "" {
			t.Errorf("flush times (-want +got):\n%s", diff)
		}
	})
}

// timedWriter notes when it is flushed.
type timedWriter struct {
	*httptest.ResponseRecorder
	start   time.Time
	flushes []time.Duration
}

func (w *timedWriter) Flush() { w.flushes = append(w.flushes, time.Since(w.start)) }

func TestRequestsBeyondTheSeatsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newServer(t, func(o *simulator.Options) { o.TTFT, o.MaxNumSeqs = time.Second, 1 }).Handler()
		done := make(chan time.Duration, 2)
		start := time.Now()
		for range 2 {
			go func() {
				post(t, h, "/v1/chat/completions", `{"max_tokens":1,"messages":[{"role":"user","content":"Hi"}]}`)
				done <- time.Since(start)
			}()
		}
		synctest.Wait()
		page := get(t, h, "/metrics").Body.String()
		for _, line := range []string{
			"vllm:num_requests_running{engine=\"0\",model_name=\"llama-70b\"} 1\n",
			"vllm:num_requests_waiting{engine=\"0\",model_name=\"llama-70b\"} 1\n",
			// 8 prompt tokens and 1 of completion, of a capacity of 262144.
			"vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"llama-70b\"} 3.4332275390625e-05\n",
		} {
			if !strings.Contains(page, line) {
				t.Errorf("metrics lack %s in:\n%s", line, page)
			}
		}
		if got := []time.Duration{<-done, <-done}; !cmp.Equal(got, []time.Duration{time.Second, 2 * time.Second}) {
			t.Errorf("answers came after %v, want 1s and 2s", got)
		}
	})
}

func TestRecordedRequestsAreByteForByte(t *testing.T) {
	s := newServer(t, func(o *simulator.Options) { o.Record = 2 })
	h := s.Handler()
	bodies := []string{
		`{"messages":[{"role":"user","content":"one"}]}`,
		"{\"messages\" : [ {\"role\":\"user\",\"content\":\"\\u00e9\\ud83d\"} ],\n \"x\":1e400, \"x\":1.0}",
		"not JSON \xff",
	}
	for i, body := range bodies {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		r.Header.Set("X-Number", string(rune('0'+i)))
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	var want []simulator.Request
	for i, body := range bodies[1:] {
		want = append(want, simulator.Request{
			Method: http.MethodPost, Path: "/v1/chat/completions",
			Header: http.Header{"X-Number": {string(rune('1' + i))}}, Body: []byte(body),
		})
	}
	if diff := cmp.Diff(want, s.Requests()); diff != "" {
		t.Errorf("Requests (-want +got):\n%s", diff)
	}
	var page struct{ Requests []simulator.Request }
	if err := json.Unmarshal(get(t, h, "/sim/requests").Body.Bytes(), &page); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, page.Requests); diff != "" {
		t.Errorf("GET /sim/requests (-want +got):\n%s", diff)
	}
	if w := get(t, newServer(t, nil).Handler(), "/sim/requests"); w.Code != http.StatusNotFound {
		t.Errorf("without recording /sim/requests is %d, want 404", w.Code)
	}
}

func TestAPIKeyGuardsPathsBelowV1(t *testing.T) {
	h := newServer(t, func(o *simulator.Options) { o.APIKey = "secret" }).Handler()
	for _, c := range []struct {
		name, path, header string
		want               int
	}{
		{"no key", "/v1/models", "", 401},
		{"a wrong key", "/v1/models", "Bearer secrets", 401},
		{"the key", "/v1/models", "Bearer secret", 200},
		{"health needs none", "/health", "", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			if c.header != "" {
				r.Header.Set("Authorization", c.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("status %d, want %d", w.Code, c.want)
			}
		})
	}
}

func TestReasoningFieldAndRequestID(t *testing.T) {
	h := newServer(t, func(o *simulator.Options) { o.ReasoningField = simulator.ReasoningField }).Handler()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions",
		strings.NewReader(`{"reasoning_effort":"low","messages":[{"role":"user","content":"Hi"}]}`))
	r.Header.Set("X-Request-Id", `a"b`)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var got struct {
		ID      string
		Choices []struct{ Message map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.ID != `chatcmpl-a"b` {
		t.Errorf("id %q", got.ID)
	}
	message := got.Choices[0].Message
	if _, old := message["reasoning_content"]; old || message["reasoning"] != `I am llama-70b. The user asks: "Hi"` {
		t.Errorf("message %v", message)
	}
}

func TestOptionsNameEveryProblem(t *testing.T) {
	_, err := simulator.New(simulator.Options{TTFT: -1, TPOT: -1, MaxNumSeqs: -1, Record: -1})
	if err == nil {
		t.Fatal("no error")
	}
	var got []string
	for line := range strings.Lines(err.Error()) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "simulator options: "), ":")
		got = append(got, name)
	}
	want := []string{"--model", "--ttft", "--tpot", "--max-model-len", "--max-num-seqs", "kv_cache_tokens", "max_body_bytes", "--record", "reasoning_field"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func FuzzChatNeverPanicsAndFramesItsAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"messages":[{"role":"user","content":"Hi"}]}`,
		`{"messages":[{"role":"user","content":"Hi"}],"stream":true,"n":3,"max_tokens":2}`,
		`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}]}],"stream":true,"stop":"a"}`,
		`{"messages":[{"role":"user","content":null}],"tools":[{"function":{"name":"f","parameters":{"required":["a"]}}}],"tool_choice":"required","stream":true}`,
		`{"messages":[{"role":"user","content":"\ud800"}],"stream":true,"stop":["",null]}`,
		`{"messages":[{}],"chat_template_kwargs":{"thinking":true},"reasoning_effort":"max","logprobs":true}`,
		`{"messages":[{}],"max_tokens":1e9}`,
		"\xff", `[]`, `null`, `{"messages":{}}`,
	} {
		f.Add([]byte(seed))
	}
	h := newServer(f, func(o *simulator.Options) { o.MaxModelLen = 512 }).Handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		w := post(t, h, "/v1/chat/completions", string(body))
		out := w.Body.Bytes()
		if w.Header().Get("Content-Type") == "application/json" {
			if !json.Valid(out) {
				t.Fatalf("status %d, not JSON: %q", w.Code, out)
			}
			return
		}
		rest, ended := bytes.CutSuffix(out, []byte("data: [DONE]\n\n"))
		if w.Code != http.StatusOK || !ended {
			t.Fatalf("status %d, stream without end: %q", w.Code, out)
		}
		for event := range bytes.SplitSeq(bytes.TrimSuffix(rest, []byte("\n\n")), []byte("\n\n")) {
			data, ok := bytes.CutPrefix(event, []byte("data: "))
			if !ok || !json.Valid(data) {
				t.Fatalf("bad event %q", event)
			}
		}
	})
}
