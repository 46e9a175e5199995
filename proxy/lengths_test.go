package proxy

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
)

func observed(l *lengths, k kind, how ending, tokens ...int64) {
	for _, n := range tokens {
		l.observe(k, n, how)
	}
}

func repeat(n int, tokens int64) []int64 { return slices.Repeat([]int64{tokens}, n) }

// near reports whether got is within the error of a sketch of want.
func near(got, want float64) bool {
	return got >= want*(1-sketchError)-1 && got <= want*(1+sketchError)+1
}

func TestALimitLearnsFromAnswers(t *testing.T) {
	o := defaultAutoMaxTokens()
	math, law := kind{model: "m", domain: "math", complexity: "high", effort: "low"}, kind{model: "m", domain: "law", effort: "low"}
	other := kind{model: "other", domain: "math", complexity: "high", effort: "low"}
	tests := []struct {
		name string
		see  func(l *lengths)
		of   kind
		want float64
	}{
		{"nothing seen: the table", func(*lengths) {}, math, 4096},
		{"too few seen: the table", func(l *lengths) { observed(l, math, ended, repeat(99, 100)...) }, math, 4096},
		{"enough seen: their 99th percentile and headroom", func(l *lengths) {
			observed(l, math, ended, repeat(990, 1000)...)
			observed(l, math, ended, repeat(5, 9000)...)
		}, math, 1500},
		{"one in fifty is longer", func(l *lengths) {
			for i := range 1000 {
				l.observe(math, []int64{1000, 3000}[(i%50)/49], ended)
			}
		}, math, 4500},
		{"short answers: the floor", func(l *lengths) { observed(l, math, ended, repeat(200, 3)...) }, math, 256},
		{"very long ones: the bound", func(l *lengths) { observed(l, math, ended, repeat(200, 1<<40)...) }, math, longestAnswer},
		{"no tokens say nothing", func(l *lengths) { observed(l, math, ended, repeat(200, 0)...) }, math, 4096},
		{"another subject, too few of its own: all of the model", func(l *lengths) { observed(l, math, ended, repeat(100, 1000)...) }, law, 1500},
		{"a subject that is not known: all of the model", func(l *lengths) {
			observed(l, math, ended, repeat(60, 1000)...)
			observed(l, law, ended, repeat(60, 2000)...)
		}, kind{model: "m", effort: "low"}, 3000},
		{"another model: the table", func(l *lengths) { observed(l, math, ended, repeat(100, 1000)...) }, other, 4096},
		{"another effort: the table", func(l *lengths) { observed(l, math, ended, repeat(100, 1000)...) }, kind{model: "m", domain: "math", complexity: "high", effort: "high"}, 16384},
		{"answers under the limits of others: the table", func(l *lengths) { observed(l, math, bounded, repeat(500, 10)...) }, math, 4096},
		{"an answer cut short: at once twice the limit", func(l *lengths) { observed(l, math, cut, 4096) }, math, 8192},
		{"cut again", func(l *lengths) { observed(l, math, cut, 4096, 8192) }, math, 16384},
		{"cut for ever", func(l *lengths) { observed(l, math, cut, repeat(1, longestAnswer)...) }, math, longestAnswer},
		{"widening does not reach other subjects", func(l *lengths) { observed(l, math, cut, 4096) }, law, 4096},
		{"widening fades when it is not needed", func(l *lengths) {
			observed(l, math, cut, 4096)
			observed(l, math, ended, repeat(6*halfLife, 1000)...)
		}, math, 1500},
		{"old behaviour fades", func(l *lengths) {
			observed(l, math, ended, repeat(5000, 4000)...)
			observed(l, math, ended, repeat(8*halfLife, 400)...)
		}, math, 600},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLengths()
			tt.see(l)
			if got := l.limit(tt.of, &o); !near(float64(got), tt.want) {
				t.Errorf("limit %d, want about %v", got, tt.want)
			}
		})
	}
}

func TestTheMeanLengthIsKnownAfterSomeAnswers(t *testing.T) {
	l := newLengths()
	if n, known := l.mean("m", "math"); known {
		t.Errorf("of no answers the mean is %v", n)
	}
	for range 20 {
		l.observe(kind{model: "m", domain: "math", effort: "low"}, 100, ended)
		l.observe(kind{model: "m", domain: "math", effort: "high"}, 300, bounded)
	}
	for range 5 {
		l.observe(kind{model: "m", domain: "law"}, 1000, cut)
	}
	for domain, want := range map[string]float64{"math": 200, "law": (40*200 + 5*1000) / 45., "": (40*200 + 5*1000) / 45.} {
		if n, known := l.mean("m", domain); !known || n < want-1e-6 || n > want+1e-6 {
			t.Errorf("domain %q: mean %v (known: %v), want %v", domain, n, known, want)
		}
	}
	for range 10 * halfLife {
		l.observe(kind{model: "m", domain: "math"}, 50, ended)
	}
	if n, _ := l.mean("m", "math"); n > 51 {
		t.Errorf("after many answers of 50 tokens the mean is %v", n)
	}
}

func TestTheMemoryOfSketchesIsBounded(t *testing.T) {
	l := newLengths()
	o := defaultAutoMaxTokens()
	busy := kind{model: "busy", domain: "d", effort: "low"}
	observed(l, busy, ended, repeat(200, 1000)...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 3 * maxSketches {
		l.observe(kind{model: "m", domain: fmt.Sprint(i), effort: "low"}, rand.Int64N(longestAnswer)+1, ended)
		if i%100 == 0 {
			l.observe(busy, 1000, ended)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(l.kinds) > maxSketches {
		t.Errorf("%d sketches, at most %d are allowed", len(l.kinds), maxSketches)
	}
	if size := int64(after.HeapAlloc) - int64(before.HeapAlloc); size > 5<<20 {
		t.Errorf("%d sketches take %d bytes", len(l.kinds), size)
	} else {
		t.Logf("%d sketches take %d bytes", len(l.kinds), size)
	}
	if got := l.limit(busy, &o); !near(float64(got), 1500) {
		t.Errorf("a sketch in use was forgotten: limit %d", got)
	}
}

func TestNotingAnAnswerAllocatesNothing(t *testing.T) {
	l := newLengths()
	o := defaultAutoMaxTokens()
	k := kind{model: "m", domain: "math", complexity: "high", effort: "low"}
	l.observe(k, 1, ended)
	n := int64(1)
	if got := testing.AllocsPerRun(4*halfLife, func() {
		n = n*5%longestAnswer + 1 // all over the range
		l.observe(k, n, ending(n%3))
		l.limit(k, &o)
		l.mean("m", "math")
	}); got > 0 {
		t.Errorf("%v allocations an answer", got)
	}
}

func TestLengthsAreSafeForConcurrentUse(t *testing.T) {
	l := newLengths()
	o := defaultAutoMaxTokens()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k := kind{model: "m", domain: fmt.Sprint(i % 3), effort: "low"}
			for range 500 {
				l.observe(k, 1000, ended)
				l.limit(k, &o)
				l.mean("m", k.domain)
			}
		})
	}
	wg.Wait()
	if got := l.limit(kind{model: "m", effort: "low"}, &o); !near(float64(got), 1500) {
		t.Errorf("limit %d, want about 1500", got)
	}
	if n, known := l.mean("m", ""); !known || n != 1000 {
		t.Errorf("mean %v (known: %v), want 1000", n, known)
	}
}

// answerOf is a whole answer of n tokens.
func answerOf(n int, finish string) testkit.Answer {
	return testkit.JSON(200, fmt.Sprintf(`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"say \"finish_reason\":\"length\""},"logprobs":null,"finish_reason":%q,"stop_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":%d,"completion_tokens":%d}}`, finish, n+9, n))
}

// streamOf is a stream of n chunks of one word, which does not tell its usage.
func streamOf(n int, word, finish string) testkit.Answer {
	pieces := []string{testkit.Event("")}
	for range n {
		pieces = append(pieces, testkit.Event(word))
	}
	return testkit.Stream(append(pieces, strings.Replace(testkit.Finish, `"stop"`, `"`+finish+`"`, 1)+testkit.Done)...)
}

// Each case plays answers and tells the limit that the upstream receives with the request after them.
func TestTheUpstreamReceivesALimitThatLearned(t *testing.T) {
	t.Parallel()
	const routes = `
routes:
  - {name: fixed, when: {header: {name: X-Route, equals: fixed}}, use: {models: [small], max_tokens: 50}}
  - {name: set, when: {header: {name: X-Route, equals: set}}, use: {models: [small], max_tokens: auto, set: {body: {max_tokens: 50}}}}
default: {models: [small], max_tokens: auto}
`
	plain, streamed := ask("hi"), askStream("hi")
	with := func(field string) string { return strings.Replace(plain, "{", "{"+field+",", 1) }
	tests := []struct {
		name, body, route string
		answer            testkit.Answer
		times             int
		want              float64 // 0: no limit
	}{
		{"nothing seen", plain, "", nil, 0, 2048},
		{"too few", plain, "", answerOf(800, "stop"), 9, 2048},
		{"enough", plain, "", answerOf(800, "stop"), 10, 1200},
		{"answers that call tools", plain, "", answerOf(800, "tool_calls"), 10, 1200},
		{"answers that a filter ended", plain, "", answerOf(800, "content_filter"), 10, 2048},
		{"one cut short by the automatic limit", plain, "", answerOf(2048, "length"), 1, 4096},
		{"one cut short by the client's own", with(`"max_tokens":800`), "", answerOf(800, "length"), 10, 2048},
		{"answers within the client's own", with(`"max_completion_tokens":800`), "", answerOf(300, "stop"), 10, 2048},
		{"one cut short by the route's", plain, "fixed", answerOf(50, "length"), 10, 2048},
		{"one cut short by what the route sets", plain, "set", answerOf(50, "length"), 10, 2048},
		{"several answers in one", with(`"n":2`), "", answerOf(800, "stop"), 10, 2048},
		{"one answer, said so", with(`"n":1`), "", answerOf(800, "stop"), 10, 1200},
		{"errors", plain, "", testkit.JSON(400, `{"error":{"message":"m","type":"t","param":null,"code":null},"usage":{"completion_tokens":800}}`), 10, 2048},
		{"streams without usage: their chunks", streamed, "", streamOf(800, "word", "stop"), 10, 1200},
		{"streams without usage and several tokens a chunk: their text", streamed, "", streamOf(100, strings.Repeat("four", 8), "stop"), 10, 1200},
		{"a stream cut short", streamed, "", streamOf(8, "word", "length"), 1, 4096},
		{"streams that were broken off", streamed, "", testkit.Stream(testkit.Event("a")), 10, 2048},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			up := testkit.NewUpstream(t, answerOf(1, "stop"))
			b := start(t, oneModel(up), func(s *setup) {
				s.routes = routes
				s.options.AutoMaxTokens.MinAnswers = 10
			})
			for i := range tt.times {
				up.Next(tt.answer)
				b.chat(tt.body, "X-Route", tt.route)
				b.recorded(i + 1)
			}
			want := b.state.lengths.limit(kind{model: "small", effort: "none"}, &b.state.opts.AutoMaxTokens)
			b.chat(plain)
			if !near(float64(want), tt.want) {
				t.Errorf("limit %d, want about %v", want, tt.want)
			}
			body := strings.Replace(plain, "auto", "Org/Small-7B", 1)
			body = strings.TrimSuffix(body, "}") + fmt.Sprintf(`,"max_tokens":%d}`, limitSent(t, up))
			if diff := cmp.Diff(body, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
			if sent := limitSent(t, up); !near(float64(sent), tt.want) {
				t.Errorf("the upstream received %d, want about %v", sent, tt.want)
			}
		})
	}
}

// recorded waits until n requests were recorded, which is after their answers have reached the client.
func (b *bench) recorded(n int) {
	b.tb.Helper()
	waitFor(b.tb, "the record", func() bool { return strings.Count(b.log.String(), `"msg":"request"`) >= n })
}

// limitSent reads the last limit that an upstream received; 0 when there was none.
func limitSent(tb testing.TB, up *testkit.Upstream) int {
	tb.Helper()
	return int(numberAfter(up.Last(tb).Body, `"max_tokens"`))
}

func TestWhatWasLearnedSurvivesAReload(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, answerOf(2048, "length"))
	routes := func(s *setup) { s.routes = "routes: []\ndefault: {models: [small], max_tokens: auto}" }
	b := start(t, oneModel(up), routes)
	b.chat(ask("hi"))
	b.recorded(1)
	s := setup{options: DefaultOptions(), auth: DefaultAuthOptions(), models: oneModel(up), classifier: b.classifier}
	routes(&s)
	b.proxy.Swap(b.newState(s, 2))
	b.chat(ask("hi"))
	if got := limitSent(t, up); got != 4096 {
		t.Errorf("after the reload the limit is %d, want 4096", got)
	}
	if page := b.metrics(); !strings.Contains(page, `signalbox_auto_limit_widened_total{model="small"`) {
		t.Errorf("the widened limit is not counted:\n%s", page)
	}
}

func TestTheFieldOfALimitIsTheOneThatTheModelTakes(t *testing.T) {
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	old, wide := modelOptions("old", "", ReasoningOptions{}, up), modelOptions("wide", "", ReasoningOptions{}, up)
	old.MaxTokensField, wide.ContextWindow = "max_completion_tokens", 0
	models := []ModelOptions{modelOptions("vllm", "", ReasoningOptions{}, up), modelOptions("gpt", "", ReasoningOptions{Dialect: "openai"}, up), old, wide}
	var routes strings.Builder
	routes.WriteString("routes:\n")
	for _, m := range models {
		for name, use := range map[string]string{"auto": "max_tokens: auto", "fixed": "max_tokens: 9", "force": "max_tokens: 9, override: true", "none": "override: true"} {
			fmt.Fprintf(&routes, "  - {name: %s-%s, when: {header: {name: X-Route, equals: %s %s}}, use: {models: [%s], %s}}\n", m.Name, name, m.Name, name, m.Name, use)
		}
	}
	routes.WriteString("default: {models: [vllm]}\n")
	b := start(t, models, func(s *setup) { s.routes = routes.String() })
	for _, tt := range []struct{ route, client, want string }{
		{"vllm auto", "", `,"max_tokens":2048`},
		{"wide auto", "", `,"max_tokens":2048`},
		{"gpt auto", "", `,"max_completion_tokens":8186`},
		{"old fixed", "", `,"max_completion_tokens":9`},
		{"gpt auto", `,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"gpt none", `,"max_tokens":5`, `,"max_completion_tokens":5`},
		{"gpt force", `,"max_tokens":5`, `,"max_completion_tokens":9`},
		{"gpt auto", `,"max_tokens":5,"max_completion_tokens":6`, `,"max_tokens":5,"max_completion_tokens":6`},
		{"vllm auto", `,"max_completion_tokens":5`, `,"max_completion_tokens":5`},
		{"vllm fixed", `,"max_completion_tokens":5`, `,"max_completion_tokens":5`},
		{"vllm force", `,"max_completion_tokens":5`, `,"max_completion_tokens":9`},
		{"vllm force", `,"max_tokens":5`, `,"max_tokens":9`},
		{"vllm auto", `,"max_tokens":null`, `,"max_tokens":2048`},
		{"vllm auto", `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 22000) + `"}}]`, `,"tools":[{"type":"function","function":{"name":"` + strings.Repeat("f", 22000) + `"}}],"max_tokens":1022`},
	} {
		t.Run(tt.route+" "+tt.client[:min(len(tt.client), 40)], func(t *testing.T) {
			b.chat(`{"model":"auto","messages":[{"role":"user","content":"hi"}]`+tt.client+"}", "X-Route", tt.route)
			model, _, _ := strings.Cut(tt.route, " ")
			want := `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]` + tt.want + "}"
			if diff := cmp.Diff(want, string(up.Last(t).Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAnAnswerTellsOfItsEnd(t *testing.T) {
	event := func(s string) string { return "data: " + s + "\n\n" }
	tests := []struct {
		name   string
		chunks []string
		finish string
		tokens int64
	}{
		{"nothing", nil, "", 0},
		{"null all the way", []string{event(`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`)}, "", 0},
		{"spaces", []string{event(`{"choices":[{"delta":{}, "finish_reason" : "tool_calls"}]}`)}, "tool_calls", 0},
		{"a word of its own", []string{event(`{"choices":[{"delta":{},"finish_reason":"eos"}]}`)}, "other", 0},
		{"several events in one read", []string{strings.Repeat(event(`{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}`), 5) + event(`{"choices":[{"delta":{},"finish_reason":"length"}]}`) + testkit.Done}, "length", 5},
		{"a text that looks like it", []string{event(`{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""},"finish_reason":null}]}`)}, "", 26 / 4},
		{"text in several places", []string{event(`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"0123456789\"\\","tool_calls":[{"function":{"arguments":"{\"a\": \"bc\"}"}}]},"logprobs":{"content":[{"token":"a long one that is no text"}]},"finish_reason":null}]}`)}, "", (9 + 14 + 15) / 4},
		{"text that does not end", []string{`{"delta":{"content":"0123456789`, `{"delta":{"content":"01234567\`}, "", 4},
		{"cut in the name", []string{`{"finish_rea`, `son":"stop"}`}, "", 0},
		{"cut in the value", []string{`{"finish_reason":`}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m measure
			for _, c := range tt.chunks {
				m.chunk([]byte(c))
			}
			if m.finish != tt.finish || m.tokens() != tt.tokens {
				t.Errorf("finish %q after %d tokens, want %q after %d", m.finish, m.tokens(), tt.finish, tt.tokens)
			}
		})
	}
}

func BenchmarkObserve(b *testing.B) {
	l := newLengths()
	k := kind{model: "m", domain: "math", complexity: "high", effort: "low"}
	b.ReportAllocs()
	for i := range b.N {
		l.observe(k, int64(i%4096)+1, ended)
	}
}

func BenchmarkLimit(b *testing.B) {
	l := newLengths()
	o := defaultAutoMaxTokens()
	k := kind{model: "m", domain: "math", complexity: "high", effort: "low"}
	for i := range 1000 {
		l.observe(k, int64(i)+1, ended)
	}
	b.ReportAllocs()
	for range b.N {
		l.limit(k, &o)
	}
}

func BenchmarkMeasureChunk(b *testing.B) {
	chunk := []byte(testkit.Event(" token"))
	var m measure
	b.ReportAllocs()
	for range b.N {
		m.chunk(chunk)
	}
}
