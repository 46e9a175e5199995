package proxy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"signalbox/internal/testkit"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/pool"
	"signalbox/proxy/reasoning"
)

// counting returns a server that answers every chat and reports the given number of tokens for
// every prompt; with a negative number it has no tokenizer.
func counting(t *testing.T, tokens int) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path != "/tokenize":
			_, _ = io.WriteString(w, testkit.Completion)
		case tokens < 0:
			http.NotFound(w, r)
		default:
			var body struct {
				Model    string
				Messages []json.RawMessage
			}
			b, _ := io.ReadAll(r.Body)
			if json.Unmarshal(b, &body) != nil || body.Model != "m" || len(body.Messages) != 1 {
				t.Errorf("asked to count %.100s", b)
			}
			asked.Add(1)
			fmt.Fprintf(w, `{"count":%d,"max_model_len":8192,"tokens":[]}`, tokens)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", asked
}

// 4,000 times "configuration " are 56,000 bytes: 14,000 tokens by the estimate of 4 bytes each, and
// 4,011 by Qwen3's tokenizer.
func TestAPromptIsRefusedForWhatIsKnownOfItsLengthAndNoGuess(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("configuration ", 4000)
	for name, tt := range map[string]struct {
		tokens, asks int
		text         string
		says         string // of the refusal; empty for an answer
	}{
		"it fits by the model's own count": {4011, 1, words, ""},
		"it does not by the model's own count": {
			9000, 1, words,
			"maximum context length is 8192 tokens, and the prompt has 9000, counted by its tokenizer",
		},
		"nobody counts, and it may fit":    {-1, 0, words, ""},
		"it is short, and nobody is asked": {9000, 0, "hello", ""},
		"no tokenizer could make it fit": {
			4011, 0,
			strings.Repeat("configuration ", 160_000),
			"the prompt has at least 8750: a token has at most 256 bytes",
		},
		"space that templates take off is no text": {511, 1, strings.Repeat(" ", 3<<17), ""}, // of a window of 1024
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, asked := counting(t, tt.tokens)
			o := backend.ModelOptions{Name: "m", ContextWindow: 8192, Endpoints: []pool.EndpointOptions{{Name: "a", URL: url}}}
			if tt.tokens == 511 {
				// little to send within the second that the server has to count
				o.ContextWindow = 1024
			}
			b := start(t, []backend.ModelOptions{o}, func(s *setup) { s.routes = "routes: []\ndefault: {models: [m]}\n" })
			got := b.chat(ask(tt.text))
			switch {
			case tt.says == "" && got.status != http.StatusOK:
				t.Errorf("%d %s", got.status, got.body)
			case tt.says != "" && (got.status != http.StatusBadRequest || got.code(t) != fault.CodeTooLong ||
				*got.error(t).Param != "messages" || !strings.Contains(got.body, tt.says)):
				t.Errorf("%d %s, want it to say %q", got.status, got.body, tt.says)
			}
			if n := asked.Load(); n != int64(tt.asks) {
				t.Errorf("the server counted %d times, want %d", n, tt.asks)
			}
		})
	}
}

// A prompt that may be too long goes to the model with the most room, or to one with enough.
func TestOfSeveralModelsTheOneWithRoomGetsALongPrompt(t *testing.T) {
	t.Parallel()
	url, _ := counting(t, -1)
	var models []backend.ModelOptions
	for name, window := range map[string]int{"small": 4096, "middle": 8192, "big": 32768} {
		models = append(models, backend.ModelOptions{
			Name: name, ContextWindow: window,
			Endpoints: []pool.EndpointOptions{{Name: name, URL: url}},
		})
	}
	for among, want := range map[string]string{"small, middle": "middle", "small, middle, big": "big"} {
		b := start(t, models, func(s *setup) { s.routes = "routes: []\ndefault: {models: [" + among + "]}\n" })
		got := b.chat(ask(strings.Repeat("configuration ", 4000)))
		if model := got.header.Get("X-Signalbox-Model"); got.status != http.StatusOK || model != want {
			t.Errorf("among %s: %d from %q, want %q", among, got.status, model, want)
		}
	}
}

func TestWhatAServerSaysOfATooLongPromptHasTheShapeOfTheAPI(t *testing.T) {
	t.Parallel()
	const other = `{"error":{"message":"'max_tokens' is too large: 9000. This model's maximum ` +
		`context length is 8192 tokens.",` +
		`"type":"BadRequestError","param":"max_tokens","code":400}}`
	const same = `{"error":{"message":"m","type":"invalid_request_error","param":"messages",` +
		`"code":"context_length_exceeded","x":1}}`
	for name, body := range map[string]string{
		"vLLM": tooLongForVLLM,
		"older vLLM": `{"object":"error","message":"This model's maximum context length is 8192 ` +
			`tokens. However, you requested 9000","type":"BadRequestError","param":null,"code":400}`,
		"SGLang": `{"object":"error","message":"The input (9000 tokens) is longer than the ` +
			`model's context length (8192 tokens).","type":"BadRequestError","param":null,` +
			`"code":400}`,
		"llama.cpp": `{"error":{"code":400,"message":"request (9000 tokens) exceeds the ` +
			`available context size (8192 tokens)","type":"exceed_context_size_error",` +
			`"n_ctx":8192}}`,
	} {
		up := testkit.NewUpstream(t, testkit.JSON(400, body))
		b := start(t, oneModel(up))
		for _, e := range routed() {
			for _, stream := range []string{"", `,"stream":true`} {
				got := b.post(e.path, e.ask("hi", stream))
				x := got.error(t)
				if got.status != 400 || got.code(t) != fault.CodeTooLong || x.Param == nil || *x.Param != e.field() ||
					x.Type != "invalid_request_error" || !strings.Contains(x.Message, "8192 tokens") {
					t.Errorf("%s at %s: %d %s", name, e.path, got.status, got.body)
				}
			}
		}
		if f := b.state.Models[1].Endpoints[0].Failures(); f != 0 {
			t.Errorf("%s: the endpoint is blamed for %d failures", name, f)
		}
	}
	for _, body := range []string{other, same, `{"error":"maximum context length"}`, `{"error":null}`} {
		b := start(t, oneModel(testkit.NewUpstream(t, testkit.JSON(400, body))))
		if got := b.chat(ask("hi")); got.status != 400 || got.body != body {
			t.Errorf("%d %s, want what the server said: %s", got.status, got.body, body)
		}
	}
}

// If the prompt alone would fit, the error names the client's limit on the response.
func TestALimitThatDoesNotFitBesideThePromptIsNamed(t *testing.T) {
	t.Parallel()
	const (
		window = `This model's maximum context length is 8192 tokens. `
		coded  = `"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"`
		plain  = `"type":"BadRequestError","param":null,"code":400`
	)
	long := strings.Repeat("configuration ", 2000) // 7,000 tokens by the estimate
	for name, tt := range map[string]struct {
		message, rest, text string
		limit               int
		alone               bool // the prompt is too long by itself
	}{
		"vLLM": {
			window + `However, you requested 9000 output tokens and your prompt contains at least 1 input tokens, for a ` +
				`total of at least 9001 tokens.`,
			`"type":"BadRequestError","param":"input_tokens","code":400`, "hi", 9000, false,
		},
		"vLLM, of whose prompt nobody knows": {
			window + `However, you requested 4000 output tokens and your prompt contains at least 4193 input tokens, for ` +
				`a total of at least 8193 tokens.`,
			plain, long, 4000, true,
		},
		"vLLM, of a prompt that is known": {
			window + `However, you requested 4000 output tokens and your prompt contains 4193 input tokens.`,
			plain, long, 4000, false,
		},
		"vLLM, of a prompt without room": {
			window + `However, you requested 9 output tokens and your prompt contains at least 8192 input tokens.`,
			plain, "hi", 9, true,
		},
		"vLLM, in older words": {
			window + `However, you requested 9100 tokens (100 in the messages, 9000 in the completion).`,
			plain, "hi", 9000, false,
		},
		"vLLM, in older words of a long one": {
			window + `However, you requested 9100 tokens (9000 in the messages, 100 in the completion).`,
			plain, "hi", 100, true,
		},
		"vLLM, of the limit": {
			`'max_tokens' is too large: 9000. ` + window + `and your request has 100 input tokens (9000 > 8192 - 100).`,
			plain, "hi", 9000, false,
		},
		"SGLang": {
			`Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of ` +
				`9100 tokens: 100 tokens from the input messages and 9000 tokens for the completion.`,
			plain, "hi", 9000, false,
		},
		"SGLang, of a long prompt": {
			`The input (9000 tokens) is longer than the model's context length (8192 tokens).`, plain, "hi",
			9000, true,
		},
		"llama.cpp, of a long prompt": {
			`request (9000 tokens) exceeds the available context size (8192 tokens)`,
			`"code":400,"type":"exceed_context_size_error"`, "hi", 9000, true,
		},
		"OpenAI": {
			window + `However, you requested 9100 tokens (100 in your prompt; 9000 for the completion).`,
			coded, "hi", 9000, false,
		},
		"words without numbers":                {`maximum context length`, plain, "hi", 9000, false},
		"words without numbers of a long text": {`maximum context length`, plain, long, 9000, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, testkit.JSON(400, `{"error":{"message":"`+tt.message+`",`+tt.rest+`}}`))
			b := start(t, oneModel(up))
			for _, stream := range []string{"", `,"stream":true`} {
				for _, c := range []struct{ path, prompt, ask, limit string }{
					{chatPath, "messages", `"messages":[{"role":"user","content":"` + tt.text + `"}]`, "max_tokens"},
					{chatPath, "messages", `"messages":[{"role":"user","content":"` + tt.text + `"}]`, "max_completion_tokens"},
					{"/v1/completions", "prompt", `"prompt":"` + tt.text + `"`, "max_tokens"},
					{"/v1/responses", "input", `"input":"` + tt.text + `"`, "max_output_tokens"},
				} {
					got := b.post(c.path, fmt.Sprintf(`{"model":"auto",%q:%d,%s%s}`, c.limit, tt.limit, c.ask, stream))
					want := c.limit
					if tt.alone {
						want = c.prompt
					}
					x := got.error(t)
					if got.status != 400 || got.code(t) != fault.CodeTooLong || x.Param == nil || *x.Param != want ||
						x.Message != tt.message {
						t.Errorf("%s with %s: %d %s, want it to name %s", c.path, c.limit, got.status, got.body, want)
					}
				}
			}
		})
	}
}

// The client cannot change a limit that the route sets.
func TestALimitOfTheRouteIsNotNamed(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(400, `{"error":{"message":"This model's maximum context length is `+
		`8192 tokens. `+
		`However, you requested 9100 tokens (100 in the messages, 9000 in the `+
		`completion).","type":"BadRequestError","param":null,"code":400}}`))
	b := start(t, oneModel(up), func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small], max_tokens: 9000, override: true}\n"
	})
	got := b.chat(`{"model":"auto","max_tokens":9500,"messages":[` + hi + `]}`)
	if x := got.error(t); got.status != 400 || x.Param == nil || *x.Param != "messages" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// The words are those of vLLM 0.32. Only the server's own tokenizer shows that the prompt exceeds
// its window, which is not known before.
func TestAPromptThatIsTooLongForOneServerGoesOnToALargerWindow(t *testing.T) {
	t.Parallel()
	refuses := testkit.JSON(400, tooLongForVLLM)
	for name, tt := range map[string]struct {
		windows [3]int // of the models in the order of the route
		third   testkit.Answer
		status  int
		asked   [3]int
		from    string
	}{
		"it has one":                {[3]int{8192, 4096, 32768}, testkit.JSON(200, testkit.Completion), 200, [3]int{1, 0, 1}, "third"},
		"none is larger":            {[3]int{8192, 4096, 8192}, testkit.JSON(200, testkit.Completion), 400, [3]int{1, 0, 0}, "first"},
		"windows are not known":     {[3]int{0, 0, 0}, testkit.JSON(200, testkit.Completion), 400, [3]int{1, 0, 0}, "first"},
		"it is too long there, too": {[3]int{8192, 4096, 32768}, refuses, 400, [3]int{1, 0, 1}, "third"},
		"the larger one is busy":    {[3]int{8192, 4096, 32768}, testkit.JSON(503, `{"error":{"message":"busy"}}`), 503, [3]int{1, 0, 1}, "third"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replies := [3]testkit.Answer{refuses, testkit.JSON(200, testkit.Completion), tt.third}
			var ups [3]*testkit.Upstream
			var models []backend.ModelOptions
			for i, name := range [3]string{"first", "second", "third"} {
				ups[i] = testkit.NewUpstream(t, replies[i])
				endpoints := []*testkit.Upstream{ups[i]}
				if i == 0 {
					endpoints = append(endpoints, ups[i]) // another one would refuse it as well
				}
				o := modelOptions(name, "", reasoning.Options{}, endpoints...)
				o.ContextWindow = tt.windows[i]
				models = append(models, o)
			}
			b := start(t, models, func(s *setup) {
				s.routes = "routes: []\ndefault: {models: [first, second, third]}\n"
			})
			got := b.chat(ask("hi"))
			if model := got.header.Get("X-Signalbox-Model"); got.status != tt.status || model != tt.from {
				t.Errorf("%d from %q, want %d from %q: %s", got.status, model, tt.status, tt.from, got.body)
			}
			if tt.status == 400 && got.code(t) != fault.CodeTooLong {
				t.Errorf("refused with %s", got.body)
			}
			for i, want := range tt.asked {
				if n := len(ups[i].Requests()); n != want {
					t.Errorf("model %d was asked %d times, want %d", i+1, n, want)
				}
			}
			if f := b.state.Models[0].Endpoints[0].Failures(); f != 0 {
				t.Errorf("the endpoint is blamed for %d failures", f)
			}
		})
	}
}
