package messages_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/anthropic"
	"signalbox/stream/messages"
	"signalbox/stream/response"
)

const done = "data: [DONE]\n\n"

// chunk is an event with one choice.
func chunk(choice string) string {
	return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"org/m",` +
		`"choices":[{"index":0,` + choice + `}]}` + "\n\n"
}

func text(s string) string  { return chunk(`"delta":{"content":"` + s + `"},"finish_reason":null`) }
func think(s string) string { return chunk(`"delta":{"reasoning_content":"` + s + `"}`) }
func finish(s string) string {
	return chunk(`"delta":{},"finish_reason":"` + s + `","stop_reason":null`)
}

func call(index int, id, name, arguments string) string {
	head := ""
	if id != "" {
		head = fmt.Sprintf(`"id":%q,"type":"function",`, id)
	}
	return chunk(
		fmt.Sprintf(
			`"delta":{"tool_calls":[{"index":%d,%s"function":{"name":%q,"arguments":%q}}]}`,
			index,
			head,
			name,
			arguments,
		),
	)
}

const usage = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"org/m",` +
	`"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,` +
	`"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\n"

// turned is what a stream that comes in pieces becomes.
func turned(a *messages.Answer, pieces ...string) string {
	s := response.NewStream()
	s.Reset(response.StreamOptions{})
	var out []byte
	for _, p := range pieces {
		s.Feed([]byte(p))
		for c := s.Next(); c != nil; c = s.Next() {
			out = a.Put(out, c)
		}
	}
	s.End(io.EOF)
	for c := s.Next(); c != nil; c = s.Next() {
		out = a.Put(out, c)
	}
	return string(out)
}

// brief tells each event in a word or two, and fails the test where the events are not those of the
// API: names and types agree, one block is open at a time, and their indexes ascend.
func brief(tb testing.TB, stream string) (out []string) {
	tb.Helper()
	open, next := -1, 0
	for e := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		head, data, ok := strings.Cut(e, "\ndata: ")
		if !ok {
			out = append(out, e)
			continue
		}
		var v struct {
			Type    string
			Index   int
			Message map[string]any
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   json.RawMessage
			Error   map[string]any
		}
		if err := json.Unmarshal([]byte(data), &v); err != nil || "event: "+v.Type != head {
			tb.Fatalf("%q: %v", e, err)
		}
		if strings.HasPrefix(v.Type, "content_block_") {
			switch {
			case v.Type == "content_block_start" && open < 0 && v.Index == next:
				open, next = v.Index, next+1
			case v.Type == "content_block_start" || v.Index != open:
				tb.Fatalf("%s while %d is open", e, open)
			case v.Type == "content_block_stop":
				open = -1
			}
		}
		switch v.Type {
		case "content_block_start":
			out = append(
				out,
				strings.TrimSpace(
					fmt.Sprint("start ", v.Block["type"], " ", or(v.Block["id"]), " ", or(v.Block["name"])),
				),
			)
		case "content_block_delta":
			out = append(
				out,
				fmt.Sprint(
					or(v.Delta["text"]),
					or(v.Delta["thinking"]),
					or(v.Delta["partial_json"]),
					or(v.Delta["signature"]),
				),
			)
		case "content_block_stop":
			out = append(out, "stop")
		case "message_delta":
			out = append(
				out,
				fmt.Sprint("end ", v.Delta["stop_reason"], " ", or(v.Delta["stop_sequence"]), string(v.Usage)),
			)
		case "error":
			out = append(out, fmt.Sprint(v.Error["type"], ": ", v.Error["message"]))
		default:
			out = append(out, v.Type)
		}
	}
	if open >= 0 {
		tb.Fatalf("block %d stays open", open)
	}
	return out
}

func or(v any) any {
	if v == nil {
		return ""
	}
	return v
}

const all = `{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":12}`

// tokens is the usage at the end of a stream whose server told none, by the length of its text.
func tokens(n int) string { return fmt.Sprintf(`{"output_tokens":%d}`, n) }

func TestAStreamBecomesEventsOfMessages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		thinking anthropic.Thinking
		in, want string
	}{
		"text": {
			0,
			text("he") + text(`l\"o`) + finish("stop") + usage + done,
			`start text|he|l"o|stop|end end_turn ` + all,
		},
		"a limit": {0, text("he") + finish("length") + done, "start text|he|stop|end max_tokens " + tokens(1)},
		"a cut":   {0, text("he") + finish("content_filter") + done, "start text|he|stop|end refusal " + tokens(1)},
		"a sequence": {
			0,
			text("he") + chunk(`"delta":{},"finish_reason":"stop","stop_reason":"END"`) + done,
			"start text|he|stop|end stop_sequence END" + tokens(1),
		},
		"a token id": {
			0,
			text("he") + chunk(`"delta":{},"finish_reason":"stop","stop_reason":7`) + done,
			"start text|he|stop|end end_turn " + tokens(1),
		},
		"thinking": {
			anthropic.Shown,
			think("hm") + text("he") + finish("stop") + done,
			"start thinking|hm|signalbox|stop|start text|he|stop|end end_turn " + tokens(1),
		},
		"thinking under two names": {
			anthropic.Shown,
			chunk(`"delta":{"reasoning":"h\u006d","reasoning_content":"hm","content":null}`) +
				chunk(`"delta":{"reasoning_content":"hm","reasoning":"hm","content":"he"}`) +
				chunk(`"delta":{"reasoning_content":"a","reasoning":"b"}`) + finish("stop") + done,
			`start thinking|hm|hm|signalbox|stop|start text|he|stop|start thinking|a|b|signalbox|stop|end end_turn ` + tokens(4),
		},
		"not asked for": {
			0,
			think("hm") + text("he") + finish("stop") + done,
			"start text|he|stop|end end_turn " + tokens(1),
		},
		"not shown": {
			anthropic.Omitted,
			think("hm") + text("he") + finish("stop") + done,
			"start thinking|signalbox|stop|start text|he|stop|end end_turn " + tokens(1),
		},
		"only thinking": {0, think("hm") + finish("length") + done, "start text|stop|end max_tokens " + tokens(1)},
		"nothing": {
			0,
			chunk(`"delta":{"role":"assistant","content":""}`) + finish("stop") + done,
			"start text|stop|end end_turn " + tokens(0),
		},
		"a call": {
			0,
			text("a") + call(0, "t1", "f", "") + call(0, "", "", `{"x"`) + call(0, "", "", `:1}`) +
				finish("tool_calls") + done,
			`start text|a|stop|start tool_use t1 f|{"x"|:1}|stop|end tool_use ` + tokens(3),
		},
		"without input": {
			0,
			call(0, "t1", "f", "") + finish("tool_calls") + done,
			`start tool_use t1 f|stop|end tool_use ` + tokens(1),
		},
		"called to": {
			0,
			call(0, "t1", "f", "{}") + finish("stop") + done,
			`start tool_use t1 f|{}|stop|end tool_use ` + tokens(1),
		},
		"two calls": {
			0,
			call(0, "t1", "f", "{}") + call(1, "t2", "g", `{"y"`) + call(1, "", "", ":2}") + finish("tool_calls") + done,
			`start tool_use t1 f|{}|stop|start tool_use t2 g|{"y":2}|stop|end tool_use ` + tokens(4),
		},
		"interleaved": {
			0,
			call(
				0,
				"t1",
				"f",
				`{"x"`,
			) + call(
				1,
				"t2",
				"g",
				"{}",
			) + call(
				0,
				"",
				"",
				":1}",
			) + text(
				"b",
			) + finish(
				"tool_calls",
			) + done,
			`start tool_use t1 f|{"x"|:1}|stop|start tool_use t2 g|{}|stop|start text|b|stop|end tool_use ` + tokens(4),
		},
		"two calls of one index": {
			0,
			call(0, "t1", "f", `{"x"`) + call(0, "", "", ":1}") + call(0, "t2", "f", `{"x"`) + call(0, "", "", ":2}") +
				finish("tool_calls") + done,
			`start tool_use t1 f|{"x"|:1}|stop|start tool_use t2 f|{"x":2}|stop|end tool_use ` + tokens(5),
		},
		"two calls of one index in one event": {
			0,
			chunk(`"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"f","arguments":"{}"}},`+
				`{"index":0,"id":"t2","function":{"name":"g","arguments":"{}"}}]}`) + finish("tool_calls") + done,
			`start tool_use t1 f|{}|stop|start tool_use t2 g|{}|stop|end tool_use ` + tokens(2),
		},
		"two calls without an index": {
			0,
			strings.ReplaceAll(
				call(0, "t1", "f", `{"x":1}`)+call(0, "t2", "g", `{"x":2}`), `"tool_calls":[{"index":0,`, `"tool_calls":[{`,
			) + finish("tool_calls") + done,
			`start tool_use t1 f|{"x":1}|stop|start tool_use t2 g|{"x":2}|stop|end tool_use ` + tokens(5),
		},
		"a new id with each piece": {
			0,
			call(0, "t1", "f", `{"x"`) + call(0, "t2", "", ":1}") + finish("tool_calls") + done,
			`start tool_use t1 f|{"x"|:1}|stop|end tool_use ` + tokens(3),
		},
		"no id": {
			0,
			call(0, "", "f", "{}") + finish("tool_calls") + done,
			`start tool_use toolu_req_0 f|{}|stop|end tool_use ` + tokens(1),
		},
		"name in pieces": {
			0,
			call(0, "t1", "f", "") + call(0, "", "oo", "") + call(0, "", "", "{}") + finish("tool_calls") + done,
			`start tool_use t1 foo|{}|stop|end tool_use ` + tokens(2),
		},
		"a refusal": {
			0,
			chunk(`"delta":{"refusal":"no"}`) + finish("stop") + done,
			"start text|no|stop|end refusal " + tokens(1),
		},
		"no refusal": {
			0,
			chunk(`"delta":{"content":"a","refusal":""}`) + finish("stop") + done,
			"start text|a|stop|end end_turn " + tokens(1),
		},
		"a refusal that is cut": {
			0,
			chunk(`"delta":{"refusal":"no"}`) + finish("length") + done,
			"start text|no|stop|end max_tokens " + tokens(1),
		},
		"another choice": {
			0,
			strings.Replace(text("x"), `"index":0`, `"index":1`, 1) + text("a") + finish("stop") + done,
			"start text|a|stop|end end_turn " + tokens(1),
		},
		"not for us": {
			0,
			`data: {"nothing":1}` + "\n\n" + text("a") + finish("stop") + done,
			"start text|a|stop|end end_turn " + tokens(1),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &messages.Answer{ID: "req", Thinking: tt.thinking}
			got := brief(t, turned(a, tt.in))
			want := append(append([]string{"message_start", "ping"}, strings.Split(tt.want, "|")...), "message_stop")
			if d := cmp.Diff(want, got); d != "" || a.Err() != nil {
				t.Errorf("(-want +got, %v):\n%s", a.Err(), d)
			}
		})
	}
}

func TestTheBeginningOfAStreamTellsTheLengthOfThePrompt(t *testing.T) {
	t.Parallel()
	early := `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0}}` + "\n\n"
	for name, tt := range map[string]struct {
		prompt      int
		in          string
		start, last string
	}{
		"an estimate, then the figures": {30, text("a") + finish("stop") + usage + done, `{"input_tokens":30,"output_tokens":0}`, all},
		"an estimate alone":             {30, text("a") + finish("stop") + done, `{"input_tokens":30,"output_tokens":0}`, tokens(1)},
		"what the server tells first":   {30, early + text("a") + finish("stop") + done, `{"input_tokens":9,"output_tokens":0}`, `{"input_tokens":9,"output_tokens":0}`},
		"nothing is known":              {0, text("a") + finish("stop") + done, `{"input_tokens":0,"output_tokens":0}`, tokens(1)},
	} {
		a := &messages.Answer{ID: "req", Prompt: tt.prompt}
		got := turned(a, tt.in)
		start, _, _ := strings.Cut(got, "\n\n")
		if !strings.HasSuffix(start, `"usage":`+tt.start+"}}") || !strings.Contains(got, `"stop_sequence":null},"usage":`+tt.last) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestAnErrorInAStreamIsToldAndEndsIt(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"error":{"message":"boom","type":"server_error","code":null}}`:   "api_error: boom",
		`{"error":{"message":"long","type":"BadRequestError","code":400}}`: "invalid_request_error: long",
		`{"error":"boom"}`: "api_error: boom",
	} {
		a := &messages.Answer{ID: "req"}
		got := turned(a, text("a")+"data: "+in+"\n\n"+text("b")+done)
		if !strings.HasSuffix(got, "\"}\n\n") || strings.Contains(got, "message_stop") || strings.Contains(got, `"b"`) {
			t.Errorf("%s: %s", in, got)
		}
		tail := got[strings.LastIndex(got, "event: "):]
		if b := brief(t, tail); len(b) != 1 || b[0] != want {
			t.Errorf("%s: %q, want %q", in, b, want)
		}
	}
}

func TestWhatCannotBeReadFails(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"data: {\n\n", `data: {"choices":[],"choices":[]}` + "\n\n", done,
		`data: {"object":"text_completion","choices":[{"index":0,"text":"a"}]}` + "\n\n",
	} {
		a := &messages.Answer{ID: "req"}
		if got := turned(a, in+text("b")); !errors.Is(a.Err(), messages.ErrUnreadable) || got != "" {
			t.Errorf("%q became %q, %v", in, got, a.Err())
		}
	}
}

func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	for name, next := range map[string]func(i int) string{
		"bytes": func(int) string { return call(1, "", "", long) },
		"calls": func(i int) string { return call(i, "t", "f", "{}") },
		"texts": func(int) string { return text(long) },
	} {
		a := &messages.Answer{ID: "req"}
		size := len(turned(a, call(0, "t0", "f", "{")))
		for i := 0; i < 2000 && a.Err() == nil; i++ {
			size += len(turned(a, next(i+1)))
		}
		size += len(turned(a, next(2000)))
		if !errors.Is(a.Err(), messages.ErrUnreadable) || size > 1<<20 {
			t.Errorf("%s: %v, %d bytes", name, a.Err(), size)
		}
	}
}

func TestAnyChunkingGivesTheSameEvents(t *testing.T) {
	t.Parallel()
	stream := ": hello\n\n" + think(
		"h\\u00e9 é",
	) + text(
		"he",
	) + text(
		`l\"o 😀`,
	) + call(
		0,
		"t1",
		"f",
		`{"x"`,
	) + call(
		1,
		"t2",
		"g",
		"{}",
	) +
		call(
			0,
			"",
			"",
			":1}",
		) + finish(
		"tool_calls",
	) + usage + done
	want := turned(&messages.Answer{ID: "req", Thinking: anthropic.Shown}, stream)
	rapid.Check(t, func(t *rapid.T) {
		var pieces []string
		for rest := stream; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 200)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := turned(&messages.Answer{ID: "req", Thinking: anthropic.Shown}, pieces...); got != want {
			t.Fatalf("%q became\n%s, not\n%s", pieces, got, want)
		}
	})
}

func TestABodyBecomesAMessage(t *testing.T) {
	t.Parallel()
	const head = `{"id":"msg_req","type":"message","role":"assistant","model":"org/m","content":`
	tests := map[string]struct {
		thinking       anthropic.Thinking
		message, rest  string
		content, after string
	}{
		"text": {
			0,
			`"content":"h\u00e9"`,
			`"finish_reason":"stop"`,
			`[{"type":"text","text":"h\u00e9"}]`,
			`"stop_reason":"end_turn","stop_sequence":null`,
		},
		"thinking": {
			anthropic.Shown,
			`"content":"a","reasoning_content":"hm"`,
			`"finish_reason":"length"`,
			`[{"type":"thinking","thinking":"hm","signature":"signalbox"},{"type":"text","text":"a"}]`,
			`"stop_reason":"max_tokens","stop_sequence":null`,
		},
		"thinking under two names": {
			anthropic.Shown,
			`"reasoning":"hm","content":"a","reasoning_content":"h\u006d"`,
			`"finish_reason":"length"`,
			`[{"type":"thinking","thinking":"hm","signature":"signalbox"},{"type":"text","text":"a"}]`,
			`"stop_reason":"max_tokens","stop_sequence":null`,
		},
		"unasked": {
			0,
			`"content":"a","reasoning":"hm"`,
			`"finish_reason":"stop","stop_reason":"E"`,
			`[{"type":"text","text":"a"}]`,
			`"stop_reason":"stop_sequence","stop_sequence":"E"`,
		},
		"calls": {
			0,
			`"content":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"f",` +
				`"arguments":"{\"a\":1}"}},{"id":"t2","type":"function","function":{"name":"g",` +
				`"arguments":"{\"a\":"}},{"id":"t3","type":"function","function":{"name":"h",` +
				`"arguments":""}}]`,
			`"finish_reason":"tool_calls"`,
			`[{"type":"tool_use","id":"t1","name":"f","input":{"a":1}},{"type":"tool_use",` +
				`"id":"t2","name":"g","input":{"INVALID_JSON":"{\"a\":"}},{"type":"tool_use",` +
				`"id":"t3","name":"h","input":{}}]`,
			`"stop_reason":"tool_use","stop_sequence":null`,
		},
		"calls of one index": {
			0,
			`"content":null,"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}},` +
				`{"index":0,"function":{"name":"g","arguments":"{\"a\":1}"}}]`,
			`"finish_reason":"tool_calls"`,
			`[{"type":"tool_use","id":"toolu_req_0","name":"f","input":{}},` +
				`{"type":"tool_use","id":"toolu_req_1","name":"g","input":{"a":1}}]`,
			`"stop_reason":"tool_use","stop_sequence":null`,
		},
		"refusal": {
			0,
			`"content":null,"refusal":"no"`,
			`"finish_reason":"stop"`,
			`[{"type":"text","text":"no"}]`,
			`"stop_reason":"refusal","stop_sequence":null`,
		},
		"nothing": {
			0,
			`"content":null,"refusal":""`,
			`"finish_reason":"stop"`,
			`[{"type":"text","text":""}]`,
			`"stop_reason":"end_turn","stop_sequence":null`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &messages.Answer{ID: "req", Thinking: tt.thinking}
			body := `{"id":"c","object":"chat.completion","created":1,"model":"org/m",` +
				`"choices":[{"index":0,"message":{"role":"assistant",` + tt.message + `},` + tt.rest +
				`}],"usage":{"prompt_tokens":9,"completion_tokens":12,` +
				`"prompt_tokens_details":{"cached_tokens":4}},"x_signalbox":{"k":1}}`
			got, err := a.Body([]byte(body))
			want := head + tt.content + "," + tt.after + `,"usage":` + all + `,"x_signalbox":{"k":1}}`
			if err != nil || string(got) != want || !json.Valid(got) {
				t.Errorf("%s, %v, want\n%s", got, err, want)
			}
		})
	}
	for _, body := range []string{"", "{", `{"object":"response","output":[]}`, `{"choices":[]}`, `{"error":{}}`} {
		if got, err := new(messages.Answer).Body([]byte(body)); !errors.Is(err, messages.ErrUnreadable) {
			t.Errorf("%s became %s", body, got)
		}
	}
}

// FuzzPut: whatever a server sends, what is told are events of the API, each valid JSON.
func FuzzPut(f *testing.F) {
	f.Add(
		[]byte(
			think(
				"h",
			) + text(
				"a",
			) + call(
				0,
				"t",
				"f",
				"{}",
			) + call(
				2,
				"",
				"",
				"x",
			) + text(
				"b",
			) + finish(
				"stop",
			) + usage + done,
		),
	)
	f.Add([]byte(text("a") + `data: {"error":{"message":"x"},"choices":[]}` + "\n\n"))
	f.Add([]byte("retry: 5\n\n: c\r\rdata: x\r\n\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		a := &messages.Answer{ID: "req", Thinking: anthropic.Shown}
		got := turned(a, string(stream))
		for _, e := range strings.Split(got, "event: ")[1:] {
			_, data, ok := strings.Cut(e, "\ndata: ")
			data, _, _ = strings.Cut(data, "\n")
			if ok && !json.Valid([]byte(data)) {
				t.Fatalf("%q became %q", stream, e)
			}
		}
		if a.Err() == nil && strings.Contains(got, "message_stop") {
			brief(t, got[strings.Index(got, "event: message_start"):strings.Index(got, "event: message_stop")])
		}
		_, _ = new(messages.Answer).Body(stream)
	})
}

// endless gives the same chunk again and again.
func endless(tb testing.TB, event string) (next func(a *messages.Answer, out []byte) []byte) {
	tb.Helper()
	s := response.NewStream()
	s.Reset(response.StreamOptions{})
	data := []byte(event)
	return func(a *messages.Answer, out []byte) []byte {
		s.Feed(data)
		for c := s.Next(); c != nil; c = s.Next() {
			out = a.Put(out, c)
		}
		return out
	}
}

func TestAChunkAllocatesNothing(t *testing.T) {
	for name, event := range map[string]string{"text": text("token"), "thinking": think("token"), "a call": call(0, "", "", "token")} {
		a := &messages.Answer{ID: "req", Thinking: anthropic.Shown}
		next := endless(t, event)
		out := next(a, make([]byte, 0, 4096))
		out = next(a, out)
		if n := testing.AllocsPerRun(100, func() { out = next(a, out[:0]) }); n != 0 {
			t.Errorf("%s: %v allocations for a chunk", name, n)
		}
	}
}

// BenchmarkPut compares reading a chunk, and passing it on, with turning it.
func BenchmarkPut(b *testing.B) {
	event := []byte(text(" token"))
	for _, turn := range []bool{false, true} {
		b.Run(map[bool]string{false: "passed", true: "turned"}[turn], func(b *testing.B) {
			a := &messages.Answer{ID: "req"}
			s := response.NewStream()
			s.Reset(response.StreamOptions{})
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				s.Feed(event)
				for c := s.Next(); c != nil; c = s.Next() {
					if turn {
						out = a.Put(out[:0], c)
						continue
					}
					_ = c.Content()
					out = append(out[:0], c.Raw...)
				}
			}
		})
	}
}
