package redact

import (
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/stream/response"
)

// spoken returns what a client assembles from a stream: the texts of its choices, by field.
func spoken(tb testing.TB, stream string) map[string]string {
	tb.Helper()
	out := make(map[string]string)
	finished := make(map[int]bool)
	for event := range strings.SplitSeq(stream, "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c struct {
			ID      string
			Choices []struct {
				Index        int
				Delta        map[string]any
				FinishReason *string `json:"finish_reason"`
			}
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			tb.Fatalf("event %q: %v", event, err)
		}
		if c.ID != "c-1" && len(c.Choices) > 0 {
			tb.Errorf("event %q has not the stream's id", event)
		}
		for _, choice := range c.Choices {
			if finished[choice.Index] {
				tb.Errorf("choice %d goes on after its end: %q", choice.Index, event)
			}
			finished[choice.Index] = choice.FinishReason != nil
			for name, v := range choice.Delta {
				key := strconv.Itoa(choice.Index) + "." + name
				switch v := v.(type) {
				case string:
					out[key] += v
				case []any:
					for _, call := range v {
						c := call.(map[string]any)
						f := c["function"].(map[string]any)
						if s, ok := f["arguments"].(string); ok {
							out[key+strconv.Itoa(int(c["index"].(float64)))] += s
						}
					}
				}
			}
		}
	}
	return out
}

func event(choice int, delta string) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":` + strconv.Itoa(choice) + `,"delta":{` + delta + `},"logprobs":null,"finish_reason":null}]}` + "\n\n"
}

func finish(choice int) string {
	return `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":` + strconv.Itoa(choice) + `,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
}

const done = "data: [DONE]\n\n"

// vault returns the vault for the streams below: [EMAIL_1], [PERSON_1] and [EMAIL_2].
func vault(tb testing.TB) *Vault {
	tb.Helper()
	_, v := hide(tb, `{"model":"auto","messages":[{"role":"user","content":"ann@example.com Jo \"JJ\" Doe bob@example.org"}]}`)
	return v
}

// feeder passes a stream through the restoring filter.
type feeder struct {
	*Stream

	in  *response.Stream
	out []byte
}

func feed(v *Vault) *feeder {
	f := &feeder{in: response.NewStream()}
	f.in.Reset(response.StreamOptions{API: v.api})
	f.Stream = v.Stream(&collected{&f.out}).(*Stream)
	return f
}

// collected is a Sink.
type collected struct{ out *[]byte }

func (c *collected) Put(chunk *response.Chunk) { *c.out = append(*c.out, chunk.Raw...) }

func (f *feeder) Feed(piece []byte) []byte {
	f.out = f.out[:0]
	f.in.Feed(piece)
	return f.pass()
}

func (f *feeder) pass() []byte {
	for c := f.in.Next(); c != nil; c = f.in.Next() {
		f.Put(c)
	}
	return f.out
}

// Rest returns what leaves at the end, after having been held back.
func (f *feeder) Rest() []byte {
	f.out = f.out[:0]
	f.in.End(io.ErrUnexpectedEOF)
	f.pass()
	f.flush(nil)
	return f.out
}

func restored(v *Vault, pieces ...string) string {
	s := feed(v)
	var out strings.Builder
	for _, p := range pieces {
		out.Write(s.Feed([]byte(p)))
	}
	out.Write(s.Rest())
	return out.String()
}

func TestAStreamIsRestored(t *testing.T) {
	v := vault(t)
	content := func(s string) string { return `"content":` + strconv.Quote(s) }
	call := func(tool int, arguments string) string {
		return `"tool_calls":[{"index":` + strconv.Itoa(tool) + `,"function":{"arguments":` + strconv.Quote(arguments) + `}}]`
	}
	tests := []struct {
		name   string
		stream string
		want   map[string]string
	}{
		{"a placeholder in one chunk", event(0, content("To [EMAIL_1]!")) + finish(0) + done, map[string]string{"0.content": "To ann@example.com!"}},
		{"a placeholder over four chunks", event(0, content("To [")) + event(0, content("EMAIL")) + event(0, content("_1")) + event(0, content("]!")) + finish(0) + done, map[string]string{"0.content": "To ann@example.com!"}},
		{"two choices that take turns", event(0, content("[EMA")) + event(1, content("[PER")) + event(0, content("IL_1]")) + event(1, content("SON_1]")) + finish(1) + finish(0) + done, map[string]string{"0.content": "ann@example.com", "1.content": `Jo "JJ" Doe`}},
		{"reasoning and content of one choice", event(0, `"reasoning_content":"[EMAIL"`) + event(0, `"reasoning_content":"_1] ["`) + event(0, content("[EMAIL_2]")) + finish(0) + done, map[string]string{"0.reasoning_content": "ann@example.com [", "0.content": "bob@example.org"}},
		{"arguments of two calls", event(0, call(0, `{"a":"[PERS`)) + event(0, call(0, `ON_1]"}`)) + event(0, call(1, `["[EMAIL_`)) + event(0, call(1, `2]"]`)) + finish(0) + done, map[string]string{"0.tool_calls0": `{"a":"Jo \"JJ\" Doe"}`, "0.tool_calls1": `["bob@example.org"]`}},
		{"a front that becomes nothing", event(0, content("a [EMA")) + event(0, content("X] b")) + finish(0) + done, map[string]string{"0.content": "a [EMAX] b"}},
		{"a front at the end leaves before the end", event(0, content("a [EMAIL_1")) + finish(0) + done, map[string]string{"0.content": "a [EMAIL_1"}},
		{"a front in the last chunk itself", event(0, content("a [EM")) + strings.Replace(finish(0), `"delta":{}`, `"delta":{"content":"AIL_1"}`, 1) + done, map[string]string{"0.content": "a [EMAIL_1"}},
		{"a front in a stream that never finishes its choice", event(0, content("a [EMAIL_1")) + done, map[string]string{"0.content": "a [EMAIL_1"}},
		{"a front in a stream that is cut", event(0, content("a [EMAIL_1")), map[string]string{"0.content": "a [EMAIL_1"}},
		{"a placeholder that is not ours", event(0, content("[EMAIL_3] [PERSON_11] [EMAIL_")) + event(0, content("12]")) + finish(0) + done, map[string]string{"0.content": "[EMAIL_3] [PERSON_11] [EMAIL_12]"}},
		{"brackets in brackets", event(0, content("[[EMAIL_1][")) + event(0, content("EMAIL_2]]")) + finish(0) + done, map[string]string{"0.content": "[ann@example.combob@example.org]"}},
		{"the index behind the text", `data: {"id":"c-1","choices":[{"delta":{"content":"[EMAIL"},"index":1}]}` + "\n\n" + event(1, content("_1]")) + finish(1) + done, map[string]string{"1.content": "ann@example.com"}},
		{"two choices in one chunk", `data: {"id":"c-1","choices":[{"index":0,"delta":{"content":"[EMAIL"}},{"index":1,"delta":{"content":"_1]"}}]}` + "\n\n" + event(0, content("_1]")) + finish(0) + done, map[string]string{"0.content": "ann@example.com", "1.content": "_1]"}},
		{
			"escapes of Markdown",
			event(0, content(`\[EMAIL_1\], [PERSON\_1] and \[EMAIL\_2\] or [EMAIL_1\]`)) + finish(0) + done,
			map[string]string{"0.content": `ann@example.com, Jo "JJ" Doe and bob@example.org or ann@example.com`},
		},
		{
			"escapes of Markdown over chunks",
			event(0, content(`To \`)) + event(0, content(`[EMAIL`)) + event(0, content(`\`)) +
				event(0, content(`_1`)) + event(0, content(`\`)) + event(0, content(`]!`)) + finish(0) + done,
			map[string]string{"0.content": "To ann@example.com!"},
		},
		{
			"escapes in arguments of calls",
			event(0, call(0, `{"a":"\\[EMAIL`)) + event(0, call(0, `_1\\]","b":"[PERSON\\_`)) +
				event(0, call(0, `1]","c":"\[EMAIL\_2\]"}`)) + finish(0) + done,
			map[string]string{"0.tool_calls0": `{"a":"ann@example.com","b":"Jo \"JJ\" Doe","c":"bob@example.org"}`},
		},
		{
			"backslashes of a path",
			event(0, content(`C:\Users\`)) + event(0, content(`[PERSON_1]`)) + event(0, content(`\docs`)) + finish(0) + done,
			map[string]string{"0.content": `C:\Users\Jo "JJ" Doe\docs`},
		},
		{
			"more backslashes than escape one",
			event(0, content(`\\\[EMAIL_1\] \[EMAIL_1\\] \[EMAIL_1\x] \[x\] \\`)) + finish(0) + done,
			map[string]string{"0.content": `\\ann@example.com \ann@example.com \[EMAIL_1\x] \[x\] \\`},
		},
		{"a backslash at the end", event(0, content(`a\`)) + finish(0) + done, map[string]string{"0.content": `a\`}},
		{
			"a front with a backslash at the end", event(0, content(`\[EMAIL_1\`)) + finish(0) + done,
			map[string]string{"0.content": `\[EMAIL_1\`},
		},
		{"usage after the end", event(0, content("[EMAIL_1]")) + finish(0) + `data: {"id":"c-1","choices":[],"usage":{"total_tokens":1}}` + "\n\n" + done, map[string]string{"0.content": "ann@example.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, ends := range []string{"\n", "\r\n", "\r"} {
				stream := strings.ReplaceAll(tt.stream, "\n", ends)
				for size := 1; size <= len(stream); size += 1 + len(stream)/40 {
					var pieces []string
					for from := 0; from < len(stream); from += size {
						pieces = append(pieces, stream[from:min(len(stream), from+size)])
					}
					got := restored(v, pieces...)
					got = strings.ReplaceAll(strings.ReplaceAll(got, "\r\n", "\n"), "\r", "\n")
					if diff := cmp.Diff(tt.want, spoken(t, got)); diff != "" {
						t.Fatalf("line ends %q, in pieces of %d (-want +got):\n%s\n%s", ends, size, diff, got)
					}
				}
			}
		})
	}
}

// Text that cannot begin a placeholder leaves with the piece that it arrived in, unchanged.
func TestAStreamDelaysOnlyTheFrontOfAPlaceholder(t *testing.T) {
	s := feed(vault(t))
	tests := []struct{ name, in, want string }{
		{"a text without a bracket", event(0, `"content":"hello"`), event(0, `"content":"hello"`)},
		{"a comment", ": ping\n\n", ": ping\n\n"},
		{"a bracket that is no front", event(0, `"content":"a [b"`), event(0, `"content":"a [b"`)},
		{"an event that is no JSON", "event: x\ndata: {[\"\n\n", "event: x\ndata: {[\"\n\n"},
		{"the text before a front", event(0, `"content":"a [PER"`), event(0, `"content":"a "`)},
		{"the front with what follows", event(0, `"content":"haps"`), event(0, `"content":"[PERhaps"`)},
		{"a backslash that is no front", event(0, `"content":"a \\nb\\\\c\\n"`), event(0, `"content":"a \\nb\\\\c\\n"`)},
		{"the text before a backslash", event(0, `"content":"a \\\\"`), event(0, `"content":"a "`)},
		{"the backslash with what follows", event(0, `"content":"b [EMAIL\\\\"`), event(0, `"content":"\\\\b "`)},
		{"an escaped front that becomes none", event(0, `"content":"1"`), event(0, `"content":"[EMAIL\\\\1"`)},
		{"a front that no backslash follows", event(0, `"content":"[EMA\\\\"`), event(0, `"content":"[EMA"`)},
		{"its backslash", event(0, `"content":"x"`), event(0, `"content":"\\\\x"`)},
		{"other lines of an event", "event: x\nid: 7\n" + event(0, `"content":"[EMAIL_1]"`), "event: x\nid: 7\n" + event(0, `"content":"ann@example.com"`)},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, string(s.Feed([]byte(tt.in)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if rest := s.Rest(); len(rest) > 0 {
		t.Errorf("%q was held back", rest)
	}
}

func TestDataOfSeveralLinesIsRestoredOnOne(t *testing.T) {
	const in = "data: {\"id\":\"c-1\",\"choices\":[{\"index\":0,\ndata: \"delta\":{\"content\":\"[EMAIL_1]\"}}]}\n\n"
	got := restored(vault(t), in)
	if diff := cmp.Diff(map[string]string{"0.content": "ann@example.com"}, spoken(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, got)
	}
}

func TestAStreamWithoutBracketsCostsNoAllocation(t *testing.T) {
	s := feed(vault(t))
	plain := []byte(event(0, `"content":"hello there, \"you\", of C:\\temp\n"`))
	cut := plain[:len(plain)/2]
	s.Feed(cut) // the buffers grow
	s.Feed(plain[len(cut):])
	if n := testing.AllocsPerRun(200, func() { s.Feed(plain) }); n > 0 {
		t.Errorf("a whole event costs %v allocations", n)
	}
	if n := testing.AllocsPerRun(200, func() { s.Feed(cut); s.Feed(plain[len(cut):]) }); n > 0 {
		t.Errorf("an event in two pieces costs %v allocations", n)
	}
}

// FuzzStream checks that the same bytes, in any pieces, are restored to the same text, in which
// each placeholder is replaced by its value.
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		"To [EMAIL_1]!", "[[PERSON_1]", "[EMAIL_1][EMAIL_2]", "[EMAIL_", "\"[PERSON_1]\"\\", "é[EMAIL_1]ü", "[EMAIL_1", "]]][[[",
		`\[EMAIL\_1\]`, `\\[PERSON\\_1\\]`, `\\\[EMAIL_1\]\[EMAIL_2\\]`, `C:\[PERSON_1]\`, `[EMAIL\\\_1]\`,
	} {
		f.Add(s, uint64(0x9E3779B97F4A7C15), uint8(3))
	}
	v := vault(f)
	const word = `\[(EMAIL\\{0,2}_1|EMAIL\\{0,2}_2|PERSON\\{0,2}_1)`
	placeholder := regexp.MustCompile(`\\\\` + word + `\\\\\]|\\` + word + `\\\]|` + word + `\\{0,2}\]`)
	values := map[string]string{"[EMAIL_1]": "ann@example.com", "[EMAIL_2]": "bob@example.org", "[PERSON_1]": `Jo "JJ" Doe`}
	f.Fuzz(func(t *testing.T, text string, cuts uint64, step uint8) {
		if len(text) > 1<<12 {
			return
		}
		text = strings.ToValidUTF8(text, "?")
		runes := []rune(text)
		var stream strings.Builder
		for i, at := 0, 0; at < len(runes); i++ { // the text over chunks
			n := min(len(runes)-at, 1+int(cuts>>(i%60)&7))
			b, _ := json.Marshal(string(runes[at : at+n]))
			stream.WriteString(event(0, `"content":`+string(b)))
			at += n
		}
		stream.WriteString(finish(0) + done)
		all := stream.String()
		var pieces []string // the bytes over reads
		for from := 0; from < len(all); {
			n := min(len(all)-from, 1+int(step))
			pieces = append(pieces, all[from:from+n])
			from += n
		}
		want := placeholder.ReplaceAllStringFunc(text, func(s string) string { return values[strings.ReplaceAll(s, `\`, "")] })
		for _, got := range []string{restored(v, all), restored(v, pieces...)} {
			if said := spoken(t, got)["0.content"]; said != want {
				t.Fatalf("restored to %q, want %q", said, want)
			}
		}
	})
}

// FuzzHide checks that no value remains and that a response that repeats the request restores all
// of them.
func FuzzHide(f *testing.F) {
	for _, s := range []string{
		"ann@example.com", "Ann O'Neil wrote to bob@example.org [EMAIL_1]", "4111111111111111 \n Jo \"JJ\" Doe", "José\u0000José", "1 Elm St\nSpringfield", "\U0001F600ann@example.com\U0001F600",
	} {
		f.Add(s, s)
	}
	f.Add("Springfield", "1 Elm St")
	f.Add("1 Elm St Springfield", "1 Elm St\nSpringfield")
	f.Add("1 Elm St\nSpringfield", "1 Elm St Springfield")
	f.Add("1 Elm St\nSpringfield or 1 ELM ST", "Springfield")
	f.Add("SPRINGFIELD is not 1 Elm St\nSpringfield", "1 Elm St")
	f.Fuzz(func(t *testing.T, one, two string) {
		one, two = strings.ToValidUTF8(one, "?"), strings.ToValidUTF8(two, "?")
		a, _ := json.Marshal(one)
		b, _ := json.Marshal(two)
		req := parse(t, `{"model":"auto","messages":[{"role":"user","content":`+string(a)+`},{"role":"user","content":[{"type":"text","text":`+string(b)+`},`+string(a)+`]}]}`)
		out, v, err := Hide(t.Context(), req, spansOf(req), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v == nil {
			return
		}
		for _, s := range out.Text().Segments {
			for _, x := range secrets {
				if worth(x.kind, x.value) && strings.Contains(s.Text, x.value) {
					t.Fatalf("%q is left in %q", x.value, s.Text)
				}
			}
		}
		back := v.Body().Feed(out.Raw)
		// Other spellings of a value are restored as one of them.
		if got, want := textsOf(parse(t, string(back))), textsOf(req); got != want {
			t.Errorf("restored to %q, want %q", got, want)
		}
		// A value on one line is restored on one line, even if it is on several lines elsewhere.
		for i, m := range parse(t, string(back)).Messages {
			if strings.Contains(m.Text, "\n") && !strings.Contains(req.Messages[i].Text, "\n") {
				t.Errorf("%q became %q", req.Messages[i].Text, m.Text)
			}
		}
	})
}

// textsOf returns all text of a request without differences in case and spacing.
func textsOf(req *openai.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		b.WriteString(strings.Join(strings.Fields(fold(m.Text)), "") + "\n")
	}
	return b.String()
}

func TestWhatAStreamHoldsIsBounded(t *testing.T) {
	const more = 10
	s := feed(vault(t))
	var out strings.Builder
	feed := func(piece string) {
		out.Write(s.Feed([]byte(piece)))
		if len(s.tails) > maxTails || cap(s.tails) > 2*maxTails {
			t.Fatalf("%d fields are held, room for %d", len(s.tails), cap(s.tails))
		}
	}
	for c := range maxTails + more {
		feed(event(c, `"content":"[EMA"`))
	}
	for c := range maxTails + more {
		feed(event(c, `"content":"IL_1]"`))
	}
	if len(s.tails) > 0 {
		t.Errorf("%d fields are held after they were restored", len(s.tails))
	}
	feed(event(maxTails, `"content":" [EMA"`)) // there is room again
	feed(event(maxTails, `"content":"IL_1]"`))
	feed(done)
	got := spoken(t, out.String())
	for c := range maxTails + more {
		want := "ann@example.com"
		switch {
		case c == maxTails:
			want = "[EMAIL_1] ann@example.com"
		case c > maxTails:
			want = "[EMAIL_1]"
		}
		if said := got[strconv.Itoa(c)+".content"]; said != want {
			t.Errorf("choice %d says %q, want %q", c, said, want)
		}
	}
}

func TestALongHeadIsNotRepeated(t *testing.T) {
	s := feed(vault(t))
	for c := range 8 {
		s.Feed([]byte(strings.Replace(event(c, `"content":"[EMA"`), "c-1", strings.Repeat("x", 1<<16), 1)))
	}
	if n := len(s.Rest()); n == 0 || n > 8*maxFrame {
		t.Errorf("the held texts of 8 choices leave in %d bytes", n)
	}
}

func TestTheInputOfACustomToolIsRestored(t *testing.T) {
	v := vault(t)
	call := func(input string) string {
		return event(0, `"tool_calls":[{"index":0,"type":"custom","custom":{"input":`+strconv.Quote(input)+`}}]`)
	}
	stream := call(`to "[EMAIL`) + call(`_1]" of [PERSON_`) + call("1] [EMA") + finish(0) + done
	said := ""
	for event := range strings.SplitSeq(restored(v, stream), "\n\n") {
		var c struct {
			Choices []struct {
				Delta struct {
					Calls []struct{ Custom struct{ Input string } } `json:"tool_calls"`
				}
			}
		}
		data := strings.TrimPrefix(event, "data: ")
		if err := json.Unmarshal([]byte(data), &c); err == nil && len(c.Choices[0].Delta.Calls) > 0 {
			said += c.Choices[0].Delta.Calls[0].Custom.Input
		}
	}
	if want := `to "ann@example.com" of Jo "JJ" Doe [EMA`; said != want {
		t.Errorf("the input is %q, want %q", said, want)
	}
}

// A request may ask for 128 choices, and servers send them in turns.
func TestAsManyChoicesAsTheAPIAllowsAreRestored(t *testing.T) {
	const n = 128
	var stream strings.Builder
	for _, piece := range []string{"To [EM", "AIL_1", "]!"} {
		for i := range n {
			stream.WriteString(event(i, `"content":`+strconv.Quote(piece)))
		}
	}
	for i := range n {
		stream.WriteString(finish(i))
	}
	for key, said := range spoken(t, restored(vault(t), stream.String()+done)) {
		if want := "To ann@example.com!"; said != want {
			t.Fatalf("%s is %q, want %q", key, said, want)
		}
	}
}

// Mistral streams its thinking as parts of the content.
func TestPartsOfTheContentAreRestored(t *testing.T) {
	v := vault(t)
	part := func(text string) string {
		return event(0, `"content":[{"type":"text","text":`+strconv.Quote(text)+`}]`)
	}
	thought := func(text string) string {
		return event(0, `"content":[{"type":"thinking","thinking":[{"type":"text","text":`+strconv.Quote(text)+`}]}]`)
	}
	stream := thought("So [PER") + thought("SON_1] [EM") + part("To [EMAIL") + part("_1]! [EM") + finish(0) + done
	thoughts, said := "", ""
	for event := range strings.SplitSeq(restored(v, stream), "\n\n") {
		var c struct {
			Choices []struct {
				Delta struct {
					Content []struct {
						Text     string
						Thinking []struct{ Text string }
					}
				}
			}
		}
		data, _ := strings.CutPrefix(event, "data: ")
		if data == "" || data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		for _, p := range c.Choices[0].Delta.Content {
			said += p.Text
			for _, x := range p.Thinking {
				thoughts += x.Text
			}
		}
	}
	if thoughts != `So Jo "JJ" Doe [EM` || said != "To ann@example.com! [EM" {
		t.Errorf("thought %q, said %q", thoughts, said)
	}
}
