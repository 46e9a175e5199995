package response

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/stream/sse"
)

// passed returns what a stream gives the client when fed in pieces of the given size, and how it
// ended.
func passed(o StreamOptions, size int, stream string, cause error) (out string, err error) {
	s := NewStream()
	s.Reset(o)
	return drained(s, size, stream, cause)
}

func drained(s *Stream, size int, stream string, cause error) (out string, err error) {
	for {
		for c := s.Next(); c != nil; c = s.Next() {
			out += string(c.Raw)
		}
		if ended, err := s.Ended(); ended {
			return out, err
		}
		piece := []byte(stream[:min(size, len(stream))])
		stream = stream[len(piece):]
		s.Feed(piece)
		if len(piece) == 0 {
			s.End(cause)
		}
	}
}

const (
	textEvent    = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
	finishEvent  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	doneEvent    = "data: [DONE]\n\n"
	failureEvent = `data: {"error":{"message":"out of memory","type":"server_error","param":null,"code":null}}` + "\n\n"
	lastEvent    = `data: {"type":"response.completed","response":{}}` + "\n\n"
)

func TestHowAStreamEnds(t *testing.T) {
	t.Parallel()
	broken := io.ErrUnexpectedEOF
	two := StreamOptions{Choices: 2}
	second := strings.Replace(finishEvent, `"index":0`, `"index":1`, 1)
	for name, c := range map[string]struct {
		o     StreamOptions
		in    string
		cause error
		want  string
		err   error
	}{
		"with [DONE]": {in: textEvent + finishEvent + doneEvent, want: textEvent + finishEvent + doneEvent},
		"with [DONE] before the connection breaks":         {in: textEvent + doneEvent, cause: broken, want: textEvent + doneEvent},
		"with events behind [DONE]":                        {in: textEvent + doneEvent + textEvent + ": ping\n\n" + doneEvent, want: textEvent + doneEvent},
		"with [DONE] without a blank line":                 {in: textEvent + "data: [DONE]", cause: broken, want: textEvent + doneEvent},
		"with a finish_reason alone, in order":             {in: textEvent + finishEvent, want: textEvent + finishEvent + doneEvent},
		"with a finish_reason, the connection broken":      {in: textEvent + finishEvent, cause: broken, want: textEvent + finishEvent, err: broken},
		"with a finish_reason and an error":                {in: finishEvent + failureEvent, want: finishEvent + failureEvent, err: ErrNoEnd},
		"with one of two finish reasons":                   {o: two, in: textEvent + finishEvent, want: textEvent + finishEvent, err: ErrNoEnd},
		"with both of two finish reasons":                  {o: two, in: finishEvent + second, want: finishEvent + second + doneEvent},
		"with a finish_reason in an event that is cut":     {in: textEvent + strings.TrimSuffix(finishEvent, "\n"), want: textEvent, err: ErrNoEnd},
		"in the middle":                                    {in: textEvent, want: textEvent, err: ErrNoEnd},
		"before anything":                                  {err: ErrNoEnd},
		"with the last event of a response":                {o: StreamOptions{API: openai.Response}, in: "event: x\n" + lastEvent + textEvent, want: "event: x\n" + lastEvent},
		"with [DONE] behind the last event of a response":  {o: StreamOptions{API: openai.Response}, in: lastEvent + ": x\n" + doneEvent + doneEvent, want: lastEvent + doneEvent},
		"with [DONE] alone where a response was asked for": {o: StreamOptions{API: openai.Response}, in: doneEvent, want: doneEvent, err: ErrNoEnd},
		"with a bare CR behind the last event":             {in: strings.ReplaceAll(textEvent+doneEvent, "\n", "\r"), want: textEvent + doneEvent},
		"with a finish_reason in an event nobody can read": {in: `data: {"choices":[{"finish_reason":"stop"}],"choices":[]}` + "\n\n", want: `data: {"choices":[{"finish_reason":"stop"}],"choices":[]}` + "\n\n" + doneEvent},
		"with a last event of a response nobody can read":  {o: StreamOptions{API: openai.Response}, in: `data: {"type":"response.completed","type":"x"}` + "\n\n", want: `data: {"type":"response.completed","type":"x"}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.cause == nil {
				c.cause = io.EOF
			}
			for _, size := range []int{1, 7, 1 << 20} {
				if got, err := passed(c.o, size, c.in, c.cause); got != c.want || !errors.Is(err, c.err) {
					t.Errorf("in pieces of %d: %v, %q; want %v, %q", size, err, got, c.err, c.want)
				}
			}
		})
	}
}

func TestWhatAClientFailsOnIsMended(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"event: error\n" + failureEvent:                         failureEvent,
		"data: {\"a\":\ndata: 1}\nid: 2\n\n":                    "data: {\"a\": 1}\nid: 2\n\n",
		"\ufeff" + textEvent:                                    textEvent,
		"event:e\rdata:{\rdata:}\r\r":                           "event:e\ndata:{ }\n\n",
		"data: {\"choices\":[]}\nevent: error\ndata: {}\n\n":    "data: {\"choices\":[]} {}\n\n",
		strings.ReplaceAll(textEvent, "\n", "\r\n") + ": c\r\n": strings.ReplaceAll(textEvent, "\n", "\r\n") + ": c\r\n",
	} {
		if got, _ := passed(StreamOptions{}, 5, in, io.EOF); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	in := "event: error\rdata: {\"type\":\"error\",\"message\":\"x\"}\r\r"
	for _, o := range []StreamOptions{{API: openai.Response}, {Messages: true}} {
		if got, _ := passed(o, 5, in, io.EOF); got != strings.ReplaceAll(in, "\r", "\n") {
			t.Errorf("where events have names %q became %q", in, got)
		}
	}
}

func TestTheLastEventOfAResponseIsFound(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		data string
		last bool
	}{
		"the type behind":           {`{"response":{"id":"r","output":[{"type":"message"}]},"sequence_number":3,"type":"response.completed"}`, true},
		"incomplete":                {`{"type":"response.incomplete"}`, true},
		"failed, with blanks":       {` { "a" : [1,2] , "type" : "response.failed" }`, true},
		"under way":                 {`{"type":"response.in_progress"}`, false},
		"in a text":                 {`{"delta":"\"type\":\"response.completed\"","type":"response.output_text.delta"}`, false},
		"in an object inside":       {`{"type":"response.created","response":{"metadata":{"type":"response.completed"}}}`, false},
		"as the name of a member":   {`{"response.completed":"type"}`, false},
		"as another member's value": {`{"kind":"response.completed"}`, false},
		"in a list":                 {`["type","response.completed"]`, false},
		"a longer word":             {`{"type":"response.incomplete.not"}`, false},
		"nothing":                   {"", false},
		"with a line break":         {"{\"type\":\ndata: \"response.completed\"}", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := passed(StreamOptions{API: openai.Response}, 1000, "data: "+tt.data+"\n\n", io.EOF)
			if (err == nil) != tt.last {
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// TestUsageThatNobodyAskedForIsTakenOut checks that what only the proxy requested is not passed on.
func TestUsageThatNobodyAskedForIsTakenOut(t *testing.T) {
	t.Parallel()
	const rest = `"choices":[{"index":0,"delta":{"content":"x"}}]`
	for data, want := range map[string]string{
		`{"usage":null,` + rest + `}`:                    `{` + rest + `}`,
		`{` + rest + `,"usage":null}`:                    `{` + rest + `}`,
		`{` + rest + `, "usage" : null , "b":2}`:         `{` + rest + ` , "b":2}`,
		`{ "usage" : null , ` + rest + `}`:               `{  ` + rest + `}`,
		`{"a":{"usage":1},"b":["usage"],` + rest + `}`:   "",
		`{"a":"\"usage\":1,",` + rest + `,"usage":null}`: `{"a":"\"usage\":1,",` + rest + `}`,
		// usage that the server sends without a request
		`{"a":"usage",` + rest + `,"usage":{"prompt_tokens":1}}`:      "",
		`{` + rest + `,"usage":12}`:                                   "",
		`{"choices":[],"usage":{"prompt_tokens":7,"total_tokens":8}}`: "dropped",
		`{"choices":[ ],"usage":null}`:                                `{"choices":[ ]}`,
		`{"usage":null`:                                               "",
		`["usage",1]`:                                                 "",
	} {
		s := NewStream()
		s.Reset(StreamOptions{Quiet: true})
		got, _ := drained(s, 1000, "data: "+data+"\n\n", io.EOF)
		switch want {
		case "":
			want = "data: " + data + "\n\n"
		case "dropped":
			if want = ""; s.HiddenUsage() != (Usage{Input: 7, Total: 8}) {
				t.Errorf("the usage is %+v", s.HiddenUsage())
			}
		default:
			want = "data: " + want + "\n\n"
		}
		if got != want {
			t.Errorf("%s became %q, want %q", data, got, want)
		}
		if got, _ := passed(StreamOptions{}, 1000, "data: "+data+"\n\n", io.EOF); got != "data: "+data+"\n\n" {
			t.Errorf("%s became %q where the client asked", data, got)
		}
	}
}

func TestAPeekReadsNoFurtherThanTheFirstMessage(t *testing.T) {
	t.Parallel()
	s := NewStream()
	s.Reset(StreamOptions{})
	s.Feed([]byte(": one\n\nretry: 1\n\n"))
	if s.Peek() || s.Begun() || s.Ahead() == 0 || !s.Progress() {
		t.Fatalf("begun %v, %d bytes ahead, progress %v", s.Begun(), s.Ahead(), s.Progress())
	}
	s.Feed([]byte(textEvent + doneEvent))
	if !s.Peek() || !s.Begun() || s.Done() {
		t.Fatalf("begun %v, done %v", s.Begun(), s.Done())
	}
	if got, err := drained(s, 1, "", io.EOF); got != ": one\n\nretry: 1\n\n"+textEvent+doneEvent || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	s.Reset(StreamOptions{Alive: false})
	s.Feed([]byte(": one\n\n"))
	s.Peek()
	if s.Progress() {
		t.Error("a comment is progress")
	}
	s.End(io.EOF)
	if ended, err := s.Ended(); !s.Peek() || ended {
		t.Errorf("ended %v, %v", ended, err)
	}
	if ended, err := s.Ended(); !ended || !errors.Is(err, ErrNoEnd) || s.Begun() {
		t.Errorf("ended %v, %v", ended, err)
	}
}

// TestAChunkIsReadAnewWhenItChanges checks that a filter reads the changes of another one.
func TestAChunkIsReadAnewWhenItChanges(t *testing.T) {
	t.Parallel()
	s := NewStream()
	s.Reset(StreamOptions{})
	s.Feed([]byte("id: 1\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}\r\nx: y\r\n\r\n"))
	c := s.Next()
	if e := c.Content(); string(e.Deltas[0].Text) != "a" || e.Bare() {
		t.Fatalf("read %+v", e)
	}
	for _, text := range []string{"bc", "d", "e\n"} {
		at := c.Content().Deltas[0].At
		c.SetData(slices.Concat(c.Data[:at.Start], []byte(strings.ReplaceAll(text, "\n", `\n`)), c.Data[at.End:]))
		if e := c.Content(); string(e.Deltas[0].Text) != text || e.Bare() {
			t.Errorf("read %q, bare %v, want %q", e.Deltas[0].Text, e.Bare(), text)
		}
	}
	if want := "id: 1\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"e\\n\"}}]}\r\nx: y\r\n\r\n"; string(c.Raw) != want {
		t.Errorf("became %q", c.Raw)
	}
	c.SetData([]byte("{\"choices\":\n[]}"))
	if got := string(c.Data); got != "{\"choices\": []}" || !strings.Contains(string(c.Raw), got) {
		t.Errorf("a line break became %q", c.Raw)
	}
}

func TestAPassingChunkCostsNoAllocation(t *testing.T) {
	s := NewStream()
	s.Reset(StreamOptions{Quiet: true})
	var m Tally
	event := []byte(testkit.Event(" token"))
	null := bytes.Replace(event, []byte(`"choices"`), []byte(`"usage":null,"choices"`), 1)
	mended := bytes.ReplaceAll(event, []byte("\n"), []byte("\r"))
	pass := func() {
		for _, piece := range [][]byte{event, event[:20], event[20:], mended, null, null} {
			s.Feed(piece)
			for c := s.Next(); c != nil; c = s.Next() {
				if c.IsMessage() {
					m.Note(c.Content())
				}
			}
		}
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAStreamThatIsTooLargeEnds(t *testing.T) {
	t.Parallel()
	var large *sse.TooLargeError
	_, err := passed(StreamOptions{}, 1<<16, textEvent+"data: "+strings.Repeat("x", sse.DefaultMaxEventBytes), io.EOF)
	if !errors.As(err, &large) {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(sse.DefaultMaxEventBytes, large.Limit); diff != "" {
		t.Error(diff)
	}
}
