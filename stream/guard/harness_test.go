package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"signalbox/stream/check"
	"signalbox/stream/evidence"
	"signalbox/stream/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// judge is a Checker that decides by words: a claim with "false" is contradicted, one with "slow"
// needs a model.
type judge struct {
	gate  chan struct{} // if set, every Check takes a value from it first, or ends with its context
	deaf  bool          // it ignores the end of the context at the gate
	calls chan int      // if set, receives the number of claims of each call
}

func verdictOf(text string) check.Result {
	r := check.Result{Verdict: check.Supported, Score: 1, Source: 0, ID: "fact-1"}
	if strings.Contains(text, "false") {
		r.Verdict, r.Score = check.Contradicted, 0.125
	}
	return r
}

func (*judge) Quick(_ *evidence.Evidence, c check.Claim) (check.Result, bool) {
	if strings.Contains(c.Text, "slow") {
		return check.Result{Verdict: check.Unchecked, Source: -1}, false
	}
	return verdictOf(c.Text), true
}

func (j *judge) Check(ctx context.Context, _ *evidence.Evidence, _ string, list []check.Claim) []check.Result {
	if j.calls != nil {
		j.calls <- len(list)
	}
	out := make([]check.Result, len(list))
	ended := ctx.Done()
	if j.deaf {
		ended = nil
	}
	if j.gate != nil {
		select {
		case <-j.gate:
		case <-ended:
			for i := range out {
				out[i] = check.Result{Verdict: check.Unchecked, Source: -1, Err: ctx.Err()}
			}
			return out
		}
	}
	for i, c := range list {
		out[i] = verdictOf(c.Text)
	}
	return out
}

// evidenceOf is short for the tests.
type evidenceOf = evidence.Evidence

// tally is an Observer that counts.
type tally struct {
	mu     sync.Mutex
	claims map[check.Verdict]int
	acts   map[guard.Action]int
}

func newTally() *tally {
	return &tally{claims: make(map[check.Verdict]int), acts: make(map[guard.Action]int)}
}

func (o *tally) Claim(v check.Verdict, _ time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.claims[v]++
}

func (o *tally) Action(a guard.Action) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.acts[a]++
}

func (o *tally) of(v check.Verdict) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.claims[v]
}

func (o *tally) done(a guard.Action) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.acts[a]
}

// script is a Source of given pieces. With hangs, Read waits after them until Cancel.
type script struct {
	pieces   []string
	err      error // io.EOF by default
	hangs    bool
	gate     chan struct{} // if set, every Read takes a value from it first
	buf      []byte
	gone     chan struct{}
	canceled time.Time
}

var errCanceled = errors.New("source was cancelled")

func newScript(pieces ...string) *script { return &script{pieces: pieces, gone: make(chan struct{})} }

func (s *script) Read() ([]byte, error) {
	clear(s.buf) // what was read before is no longer valid
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-s.gone:
			return nil, errCanceled
		}
	}
	if len(s.pieces) == 0 && s.hangs {
		<-s.gone
		return nil, errCanceled
	}
	if len(s.pieces) == 0 && s.err != nil {
		return nil, s.err
	}
	if len(s.pieces) == 0 {
		return nil, io.EOF
	}
	s.buf = append(s.buf[:0], s.pieces[0]...)
	s.pieces = s.pieces[1:]
	return s.buf, nil
}

func (s *script) Cancel() {
	s.canceled = time.Now()
	close(s.gone)
}

// record is a Sink.
type record struct {
	mu     sync.Mutex
	b      []byte
	writes int
	fail   error
	wrote  chan struct{} // if set, receives a value for each write
}

func (r *record) Write(b []byte) error {
	r.mu.Lock()
	r.b = append(r.b, b...)
	r.writes++
	r.mu.Unlock()
	if r.wrote != nil {
		r.wrote <- struct{}{}
	}
	return r.fail
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.b)
}

func facts(tb testing.TB) *evidence.Evidence {
	tb.Helper()
	e, err := evidence.New(tb.Context(), []evidence.Source{{ID: "fact-1", Text: "The tower is 330 metres tall.", Fact: true}}, evidence.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func jobOf(tb testing.TB, m guard.Mode) guard.Job {
	tb.Helper()
	return guard.Job{Evidence: facts(tb), Policy: guard.Policy{Mode: m}, MayAnnotate: true}
}

// guardOf returns a Guard that ends with the test.
func guardOf(tb testing.TB, c guard.Checker, o guard.Options) *guard.Guard {
	tb.Helper()
	g := guard.New(c, o)
	tb.Cleanup(g.Close)
	return g
}

// pass takes a stream, in pieces, through a guard.
func pass(tb testing.TB, g *guard.Guard, job guard.Job, pieces ...string) (string, guard.Outcome, error) {
	tb.Helper()
	var dst record
	out, err := g.Copy(tb.Context(), source(newScript(pieces...)), sink(&dst), job)
	return dst.String(), out, err
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// chunk returns a chat chunk with text.
func chunk(text string) string { return chunkOf(0, `{"content":`+quote(text)+`}`, "null") }

func chunkOf(choice int, delta, finish string) string {
	return `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":` + string(rune('0'+choice)) +
		`,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}` + "\n\n"
}

const (
	done  = "data: [DONE]\n\n"
	usage = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}` + "\n\n"
)

func stop() string { return chunkOf(0, `{}`, `"stop"`) }

func role() string { return chunkOf(0, `{"role":"assistant","content":""}`, "null") }

// words returns a stream of one choice with a chunk per word.
func words(text string) []string {
	list := []string{role()}
	for _, w := range strings.SplitAfter(text, " ") {
		list = append(list, chunk(w))
	}
	return append(list, stop(), usage, done)
}

// told is what an independent reader receives from a stream.
type told struct {
	texts   map[int]string
	tools   map[int]string
	finish  map[int]string
	summary map[string]any // of the last chunk that had one
	marks   int            // chunks without a finish_reason that carry x_signalbox
	usage   bool
	done    bool
	events  int
	after   bool // text came after the finish_reason of its choice
}

// listen reads a stream of chat chunks as a client does, without the packages under test.
func listen(tb testing.TB, stream string) told {
	tb.Helper()
	t := told{texts: map[int]string{}, tools: map[int]string{}, finish: map[int]string{}}
	data := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(stream, "\r\n", "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "data:"); ok {
			data = strings.TrimPrefix(rest, " ")
		}
		if line != "" || data == "" {
			continue
		}
		t.events++
		if t.done {
			tb.Errorf("an event behind [DONE]: %s", data)
		}
		if data == "[DONE]" {
			t.done = true
		} else {
			t.hear(tb, data)
		}
		data = ""
	}
	return t
}

func (t *told) hear(tb testing.TB, data string) {
	tb.Helper()
	var c struct {
		Choices []struct {
			Index int
			Delta struct {
				Content   string
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish *string `json:"finish_reason"`
		}
		Usage   *struct{}
		Summary map[string]any `json:"x_signalbox"`
	}
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		tb.Fatalf("%v: %s", err, data)
	}
	ends := false
	for _, ch := range c.Choices {
		if _, over := t.finish[ch.Index]; over && ch.Delta.Content != "" {
			t.after = true
		}
		t.texts[ch.Index] += ch.Delta.Content
		for _, call := range ch.Delta.ToolCalls {
			t.tools[ch.Index] += call.Function.Name + call.Function.Arguments
		}
		if ch.Finish != nil {
			t.finish[ch.Index], ends = *ch.Finish, true
		}
	}
	if c.Summary != nil {
		if t.summary = c.Summary; !ends {
			t.marks++
		}
		if len(c.Choices) == 0 {
			tb.Errorf("a summary on a chunk without choices: %s", data)
		}
	}
	if c.Usage != nil {
		t.usage = true
		if len(t.finish) < len(t.texts) {
			tb.Errorf("the usage comes before the end of a choice")
		}
	}
}
