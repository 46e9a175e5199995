package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox/internal/telemetry"
	"signalbox/internal/testkit"
	"signalbox/memory/cache"
	"signalbox/proxy/backend"
	"signalbox/proxy/choose"
	"signalbox/proxy/downstream"
	"signalbox/proxy/pool"
	"signalbox/proxy/recall"
	"signalbox/proxy/upstream"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// cuts is a body that delivers a stream in pieces of random sizes.
type cuts struct {
	pieces

	r *rand.Rand
}

func (c *cuts) Read(b []byte) (int, error) {
	c.step = 1 + c.r.IntN(1+c.r.IntN(400))
	return c.pieces.Read(b)
}

// filtered passes a stream through filters, cut according to seed, and returns what the client gets
// and what is cached.
func filtered(t *testing.T, stream string, seed uint64, f filters) (got, kept string, err error) {
	t.Helper()
	tel := telemetry.Discard()
	m := &backend.Model{Model: &choose.Model{Name: "m"}, Group: &pool.Group{}, Gap: time.Minute}
	body := &cuts{pieces{s: []byte(stream)}, rand.New(rand.NewPCG(seed, 1))}
	u := upstream.Open(t.Context(), m, &pool.Endpoint{}, 0, func(context.Context) io.ReadCloser { return body }, &response.StreamOptions{})
	defer u.Close()
	taken, counted := &recall.Tape{Recorder: cache.NewRecorder(recall.LongestKept, time.Now, true)}, &meter{metrics: tel.Metrics, model: "m"}
	if u.Observe(counted); f.kept {
		u.Observe(taken)
	}
	rec := httptest.NewRecorder()
	w := downstream.New(rec, &http.Request{Header: http.Header{}})
	err = new(Stage).copyStream(t.Context(), w, u, f.outcome(t, tel), counted)
	if f.kept {
		a, err := taken.Finish("m", "r", "")
		if err != nil {
			t.Fatal(err)
		}
		kept = string(a.Data)
	}
	return rec.Body.String(), kept, err
}

// usage is the event with the usage.
const usage = `data: {"id":"c","object":"chat.completion.chunk","choices":[],` +
	`"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18}}` + "\n\n"

// randomStream returns a stream with events of all kinds. texts are the possible texts of the
// response.
func randomStream(r *rand.Rand, texts []string) string {
	var b strings.Builder
	event := func(choice int, delta string) {
		fmt.Fprintf(&b, `data: {"id":"c-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":%s,"logprobs":null,"finish_reason":null}]}`, choice, delta)
		b.WriteString("\n\n")
	}
	quoted := func() string {
		q, _ := json.Marshal(texts[r.IntN(len(texts))])
		return string(q)
	}
	for range 1 + r.IntN(30) {
		switch choice := r.IntN(2); r.IntN(12) {
		case 0:
			b.WriteString(": ping\n\n")
		case 1:
			b.WriteString("id: 7\r\nevent: x\r\n" + strings.ReplaceAll(testkit.Event("crlf"), "\n", "\r\n"))
		case 2:
			event(choice, `{"role":"assistant","content":""}`)
		case 3:
			event(choice, `{"reasoning_content":`+quoted()+`}`)
		case 4:
			event(choice, `{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":`+quoted()+`}}]}`)
		case 5:
			b.WriteString("data: {\"vendor\":[1,\"two\"]}\n\n" + "retry: 3\n\n")
		default:
			event(choice, `{"content":`+quoted()+`}`)
		}
	}
	for c := range 2 {
		b.WriteString(strings.Replace(strings.Replace(testkit.Finish, `"stop"`, `"length"`, 1), `"index":0`, fmt.Sprintf(`"index":%d`, c), 1))
	}
	return b.String() + usage + testkit.Done
}

// Through any subset of the filters, and however it is cut, a stream leaves unchanged if no filter
// has anything to change.
func TestFiltersThatChangeNothingLeaveEveryByte(t *testing.T) {
	t.Parallel()
	texts := []string{" word", "It is \"so\". ", "é漢字🙂", "a [b] c", "The tower is 330 m high. ", "line\nbreak"}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		stream := randomStream(r, texts)
		for mask := range 16 {
			f := filters{restored: mask&1 != 0, saved: mask&2 != 0, kept: mask&4 != 0}
			if mask&8 != 0 {
				f.mode = guard.Observe
			}
			got, kept, err := filtered(t, stream, seed+uint64(mask), f)
			if got != stream || err != nil || f.kept && kept != stream {
				t.Fatalf("seed %d, %v: %v\n%q\nbecame\n%q\nkept\n%q", seed, f, err, stream, got, kept)
			}
		}
	}
}

// When filters do change something, the result depends on the stream and not on how it was cut.
func TestFiltersGiveTheSameForAnyPieces(t *testing.T) {
	t.Parallel()
	texts := []string{" word", "Write to [EM", "AIL_1", "] now. ", "[EMAIL_1]", "The tower is 330 m high. ", "The tower is 390 m high. ", "390 m", "It is known. "}
	for seed := range uint64(testkit.Fewer(25)) {
		stream := randomStream(rand.New(rand.NewPCG(seed, 3)), texts)
		for mode := guard.Off; mode <= guard.Hold; mode++ {
			for mask := range 4 {
				// What the guard ends is not cached.
				f := filters{mode: mode, restored: mask&1 != 0, saved: mask&2 != 0, kept: mode < guard.Terminate}
				var first []string
				for cut := range uint64(3) {
					got, kept, err := filtered(t, stream, seed+cut, f)
					all := []string{got, kept, fmt.Sprint(err)}
					if first == nil {
						first = all
					}
					if !slices.Equal(all, first) {
						t.Fatalf("seed %d, %v, cut %d: %q\nand\n%q", seed, f, cut, all, first)
					}
				}
			}
		}
	}
}
