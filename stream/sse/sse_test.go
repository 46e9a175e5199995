package sse

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	text     = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
	finish   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done     = "data: [DONE]\n\n"
	failure  = `data: {"error":{"message":"out of memory","type":"server_error","param":null,"code":null}}` + "\n\n"
	unnamed  = `data: {"type":"response.completed"}` + "\n\n"
	complete = "event: response.completed\n" + unnamed
)

// Every stream is read whole, byte by byte and in pieces of two sizes.
func TestAStreamIsReadTheSameInAnyPieces(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			units, out, _, err := cut([]byte(c.in), 0, len(c.in)+1)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(reference(c.in), messages(units)); diff != "" {
				t.Errorf("events (-reference +got):\n%s", diff)
			}
			for _, sizes := range [][]int{{1}, {2, 3}, {7, 1, 30}} {
				pieces, cutOut, _, err := cut([]byte(c.in), 0, sizes...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(units, pieces); diff != "" {
					t.Errorf("units in pieces of %v (-whole +pieces):\n%s", sizes, diff)
				}
				if out != cutOut {
					t.Errorf("output in pieces of %v:\n%q\nwhole:\n%q", sizes, cutOut, out)
				}
			}
		})
	}
}

// streams are the cases of the WHATWG grammar and of servers that misread it, with what a client is
// to get. An empty want means the same bytes.
var streams = []struct{ name, in, want string }{
	{"events that end in LF stay", text + finish + done, text + finish + done},
	{"CRLF stays", strings.ReplaceAll(text+done, "\n", "\r\n"), strings.ReplaceAll(text+done, "\n", "\r\n")},
	{"bare CR becomes LF", strings.ReplaceAll(text+done, "\n", "\r"), text + done},
	{"bare CR becomes LF where CRLF stays", "id: 1\r\ndata: x\r\r\ndata: y\r\n\r\n", "id: 1\r\ndata: x\n\ndata: y\r\n\r\n"},
	{"line ends may be mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r", "data: a\r\n\ndata: b\n\r\ndata: c\n\n"},
	{"a byte order mark is dropped", "\ufeff" + text, text},
	{"a second one would be taken for the first", "\ufeff\ufeff" + text, text},
	{"half a byte order mark is none", "\xef\xbbdata: x\n\n" + text, "\xef\xbbdata: x\n\n" + text},
	{"comments pass as they are", ": ping\n\n:\n" + text + "data: x\n: inside\n\n", ": ping\n\n:\n" + text + "data: x\n: inside\n\n"},
	{"blank lines pass as they are", "\n\n\r\n" + text, "\n\n\r\n" + text},
	{"other fields pass as they are", "id: \x00\nretry: 10\n\nevent: ping\nnope\nx:y\ndata:z\n\n", "id: \x00\nretry: 10\n\nevent: ping\nnope\nx:y\ndata:z\n\n"},
	{"data on several lines is joined", "event: e\ndata: {\"a\":\ndata: 1}\nid: 2\n\n", "event: e\ndata: {\"a\": 1}\nid: 2\n\n"},
	{"joined data may begin with an empty line", "data\ndata:x\r\ndata\n\n", "data:  x \n\n"},
	{"a field without a colon has an empty value", "data\n\n", "data\n\n"},
	{"only one blank behind the colon is dropped", "data:  x\n\n", "data:  x\n\n"},
	{"an error loses its name", "event: error\n" + failure, failure},
	{"an error loses its last name only when it is error", "event: error\nevent: e\ndata: x\n\n", "event: error\nevent: e\ndata: x\n\n"},
	{"what follows [DONE] is dropped", text + done + text + ": ping\n\n" + done, text + done},
	{"[DONE] without a blank line is completed", finish + "data: [DONE]", finish + done},
	{"[DONE] with half a blank line is completed", finish + "data: [DONE]\n\r", finish + "data: [DONE]\n\n"},
	{"an event without its blank line is dropped", text + "data: {\"choices\":[]}\n", text},
	{"text is cut inside a character", "data: h\u00e9\u00e9\u6f22\u5b57\U0001f642\n\n", "data: h\u00e9\u00e9\u6f22\u5b57\U0001f642\n\n"},
	{"bytes that are no text stay", "data: \xff\xfe\xc3\x00 \\ud83d\n\n", "data: \xff\xfe\xc3\x00 \\ud83d\n\n"},
	{"a name that only begins like data is another", "database: x\ndata: y\n\n", "database: x\ndata: y\n\n"},
	{"a name with a blank in front is another", " data: x\n\n", " data: x\n\n"},
}

func TestWhatAUnitIs(t *testing.T) {
	units, _, _, err := cut([]byte(": ping\n\nretry: 5\n\nevent: e\ndata: a\ndata: b\n\ndata: c\n\ndata: d"), 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	want := []copied{
		{Kind: Comment, Raw: ": ping\n", At: -1},
		{Kind: Blank, Raw: "\n", At: -1},
		{Kind: Fields, Raw: "retry: 5\n\n", At: -1},
		{Kind: Message, Raw: "event: e\ndata: a\ndata: b\n\n", Name: "e", Data: "a\nb", At: -1},
		{Kind: Message, Raw: "data: c\n\n", Data: "c", At: 6},
		{Kind: Message, Raw: "data: d", Data: "d", At: 6, Cut: true},
	}
	if diff := cmp.Diff(want, units); diff != "" {
		t.Errorf("units (-want +got):\n%s", diff)
	}
}

func TestAnEventOverTheLimitEndsTheReading(t *testing.T) {
	const limit = 64
	long := "data: " + strings.Repeat("A", 4*limit)
	for name, in := range map[string]string{
		"a whole event":       "data: x\n\n" + long + "\n\n",
		"a line without end":  "data: x\n\n" + long,
		"many short lines":    "data: x\n\n" + strings.Repeat("data: y\n", limit),
		"comments inside one": "data: x\n\ndata: y\n" + strings.Repeat(":\n", limit),
		"a long comment":      "data: x\n\n:" + strings.Repeat("p", 4*limit) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 5, len(in)} {
				units, out, _, err := cut([]byte(in), limit, size)
				var large *TooLargeError
				if !errors.As(err, &large) || large.Limit != limit {
					t.Errorf("pieces of %d: error %v", size, err)
				}
				if len(units) != 1 || out != "data: x\n\n" {
					t.Errorf("pieces of %d: %d units, output %q", size, len(units), out)
				}
			}
		})
	}
}

func TestALimitLeavesRoomForWhatIsNoEvent(t *testing.T) {
	in := strings.Repeat(":\n", 1000) + strings.Repeat("\n", 1000) + text
	if _, out, _, err := cut([]byte(in), 128, 333); err != nil || out != in {
		t.Errorf("error %v, %d of %d bytes", err, len(out), len(in))
	}
}

func TestAPieceBeforeTheLastWasReadIsRefused(t *testing.T) {
	p := NewParser(0)
	p.Feed([]byte(text + text))
	p.Next()
	p.Feed([]byte(text))
	if e := p.Next(); e != nil || !errors.Is(p.Err(), ErrUnread) {
		t.Errorf("next %v, error %v", e, p.Err())
	}
	p.Reset()
	p.Feed([]byte(text))
	if p.Next() == nil {
		t.Errorf("nothing after a reset: %v", p.Err())
	}
}

func TestTheStateBehindAnEvent(t *testing.T) {
	for _, c := range []struct {
		name, in string
		state    State
	}{
		{"with [DONE]", text + finish + done, Done},
		{"with [DONE] and no finish_reason", text + done, Done},
		{"with finish_reason alone", text + finish, Finished},
		{"in the middle", text, Running},
		{"before anything", "", Running},
		{"with a comment alone", ": ping\n\n", Running},
		{"with an error", text + failure, Failed},
		{"with a named error", "event: error\ndata: {}\n\n", Failed},
		{"with an error and [DONE]", text + failure + done, Failed},
		{"with an error behind the finish_reason", finish + failure, Failed},
		{"with an error member that is null", `data: {"error":null,"choices":[]}` + "\n\n", Running},
		{"with the last event of a response", complete, Done},
		{"with the last event of a response, unnamed", unnamed, Done},
		{"with a finish_reason inside a text", `data: {"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""}}]}` + "\n\n", Running},
		{"with a spaced finish_reason", `data: {"choices": [{"finish_reason" : "stop"}]}` + "\n\n", Finished},
		{"with finish_reason in an event that is cut", text + strings.TrimSuffix(finish, "\n"), Running},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, w := NewParser(0), new(passer)
			p.Feed([]byte(c.in))
			for e := p.Next(); e != nil; e = p.Next() {
				w.pass(*e)
			}
			if e := p.End(); e != nil {
				w.pass(*e)
			}
			if w.state != c.state {
				t.Errorf("state %v, want %v", w.state, c.state)
			}
		})
	}
}

func TestAnEventIsGivenOtherData(t *testing.T) {
	p := NewParser(0)
	p.Feed([]byte("id: 1\r\ndata:{\"a\":1}\r\nx: y\r\n\r\n"))
	e, buf := p.Next().Mended(nil)
	if buf != nil {
		t.Error("an event that needs no mending was copied")
	}
	got, _ := e.With(nil, []byte("{\"a\":\n2}"))
	if want := "id: 1\r\ndata:{\"a\": 2}\r\nx: y\r\n\r\n"; string(got.Raw) != want || string(got.Raw[got.At:got.At+len(got.Data)]) != string(got.Data) {
		t.Errorf("became %q with the data %q", got.Raw, got.Data)
	}
}

func TestAnEventOfOurOwnIsOneOfTheirs(t *testing.T) {
	for name, data := range map[string]string{"": `{"marker":true}`, "response.output_text.delta": "{\n}"} {
		e, _ := NewEvent(nil, name, []byte(data))
		p := NewParser(0)
		p.Feed(e.Raw)
		again := p.Next()
		if again == nil {
			t.Fatalf("%q: no event", name)
		}
		if diff := cmp.Diff(copied{again.Kind, again.Cut, string(again.Raw), string(again.Name), string(again.Data), again.At},
			copied{e.Kind, e.Cut, string(e.Raw), string(e.Name), string(e.Data), e.At}); diff != "" {
			t.Errorf("%q (-read +made):\n%s", name, diff)
		}
	}
	if string(DoneEvent().Raw) != done {
		t.Errorf("the end is %q", DoneEvent().Raw)
	}
}

func TestBuffersAreReleasedAfterALargeEvent(t *testing.T) {
	p, w := NewParser(0), new(passer)
	large := []byte("data: " + strings.Repeat("A", 1<<20) + "\ndata: B\n\n")
	for _, piece := range [][]byte{large[:100], large[100:], []byte(text), []byte(text)} {
		p.Feed(piece)
		for e := p.Next(); e != nil; e = p.Next() {
			w.pass(*e)
		}
		w.take()
	}
	if cap(p.held) > keptBytes || cap(p.data) > keptBytes {
		t.Errorf("kept %d and %d bytes", cap(p.held), cap(p.data))
	}
}

// chunks is what an upstream sends in one piece: n events of an ordinary size.
func chunks(n int) []byte {
	return bytes.Repeat([]byte(`data: {"id":"chatcmpl-7f3a1c","object":"chat.completion.chunk","created":1760000000,`+
		`"model":"qwen-32b","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`+"\n\n"), n)
}

// copier returns a function that passes pieces on.
func copier() func(pieces ...[]byte) int {
	p, w := NewParser(0), new(passer)
	return func(pieces ...[]byte) int {
		n := 0
		for _, piece := range pieces {
			p.Feed(piece)
			for e := p.Next(); e != nil; e = p.Next() {
				w.pass(*e)
			}
			n += len(w.take())
		}
		return n
	}
}

func TestAPieceCostsNoAllocation(t *testing.T) {
	pass := copier()
	event := chunks(1)
	crlf := bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
	cr := bytes.ReplaceAll(event, []byte("\n"), []byte("\r"))
	joined := []byte("data: {\"choices\":\ndata: []}\n\n")
	for range 3 { // the buffers grow
		pass(event, event[:50], event[50:], crlf, cr, joined)
	}
	for name, pieces := range map[string][][]byte{
		"an event": {event}, "an event in two": {event[:50], event[50:]}, "CRLF": {crlf}, "CR": {cr}, "two data lines": {joined},
	} {
		if n := testing.AllocsPerRun(100, func() { pass(pieces...) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkEvent(b *testing.B) {
	for name, pieces := range map[string][][]byte{
		"whole":      {chunks(1)},
		"in_two":     {chunks(1)[:100], chunks(1)[100:]},
		"100_a_read": {chunks(100)},
	} {
		b.Run(name, func(b *testing.B) {
			pass := copier()
			b.ReportAllocs()
			for b.Loop() {
				pass(pieces...)
			}
		})
	}
}

// BenchmarkCopy is the least that passing a chunk on can cost: copying it.
func BenchmarkCopy(b *testing.B) {
	chunk, out := chunks(1), make([]byte, 0, 4096)
	for b.Loop() {
		out = append(out[:0], chunk...)
	}
}
