package cache_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/testkit"
	"signalbox/memory/cache"
)

const done = testkit.Done

// failed ends a stream as a filter does.
var filtered = strings.Replace(testkit.Finish, `"stop"`, `"content_filter"`, 1)

// record takes down pieces, a second apart.
func record(streamed bool, pieces ...string) (*cache.Answer, error) {
	clock := testkit.NewClock()
	r := cache.NewRecorder(1<<20, clock.Now, streamed)
	for _, p := range pieces {
		clock.Pass(time.Second)
		r.Write([]byte(p))
	}
	return r.Finish("m", "route", "text/event-stream")
}

func mustRecord(tb testing.TB, streamed bool, pieces ...string) *cache.Answer {
	tb.Helper()
	a, err := record(streamed, pieces...)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func TestOnlyWholeAnswersAreKept(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		streamed bool
		pieces   []string
		good     bool
	}{
		{"a body", false, []string{testkit.Completion[:40], testkit.Completion[40:]}, true},
		{"half a body", false, []string{testkit.Completion[:40]}, false},
		{"nothing", false, nil, false},
		{"an error", false, []string{`{"error":{"message":"x"}}`}, false},
		{"an error that is null", false, []string{`{"error":null,"choices":[{"finish_reason":"length"}]}`}, true},
		{"a filtered body", false, []string{strings.Replace(testkit.Completion, `"stop"`, `"content_filter"`, 1)}, false},
		{"a body without an end", false, []string{strings.Replace(testkit.Completion, `"stop"`, `null`, 1)}, false},
		{"a response", false, []string{`{"object":"response","status":"completed"}`}, true},
		{"a response that broke off", false, []string{`{"object":"response","status":"incomplete"}`}, false},
		{"a stream", true, []string{testkit.Event("a"), testkit.Event("b"), testkit.Finish, done}, true},
		{"a stream in odd pieces", true, []string{testkit.Event("a")[:9], testkit.Event("a")[9:] + testkit.Finish + "data: [DO", "NE]\n\n"}, true},
		{"a stream with comments and CRLF", true, []string{": hi\r\n\r\n", strings.ReplaceAll(testkit.Finish+done, "\n", "\r\n")}, true},
		{"a stream without its end", true, []string{testkit.Event("a"), testkit.Finish}, false},
		{"a stream without a reason to end", true, []string{testkit.Event("a"), done}, false},
		{"a stream cut in its last event", true, []string{testkit.Event("a"), testkit.Finish, "data: [DONE]\n"}, false},
		{"a stream that goes on", true, []string{testkit.Finish, done, testkit.Event("a")}, false},
		{"a stream with an error", true, []string{testkit.Event("a"), "data: {\"error\":{}}\n\n", testkit.Finish, done}, false},
		{"a filtered stream", true, []string{testkit.Event("a"), filtered, done}, false},
		{"a stream of a response", true, []string{"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{}}\n\n"}, true},
		{"a stream of a response that failed", true, []string{"data: {\"type\":\"response.failed\"}\n\n"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, err := record(tt.streamed, tt.pieces...)
			if (err == nil) != tt.good {
				t.Fatalf("error %v, want kept %v", err, tt.good)
			}
			if err != nil && !errors.Is(err, cache.ErrIncomplete) {
				t.Errorf("error %v, want ErrIncomplete", err)
			}
			if err == nil && (string(a.Data) != strings.Join(tt.pieces, "") || a.Streamed() != tt.streamed) {
				t.Errorf("kept %q, streamed %v", a.Data, a.Streamed())
			}
		})
	}
}

func TestATooLongAnswerIsDropped(t *testing.T) {
	t.Parallel()
	r := cache.NewRecorder(len(testkit.Completion)-1, time.Now, false)
	r.Write([]byte(testkit.Completion[:100]))
	r.Write([]byte(testkit.Completion[100:]))
	r.Write([]byte("x"))
	if a, err := r.Finish("", "", ""); !errors.Is(err, cache.ErrTooLarge) {
		t.Errorf("%v, %v; want ErrTooLarge", a, err)
	}
}

func TestAStreamIsGivenAtItsPace(t *testing.T) {
	t.Parallel()
	a := mustRecord(t, true, testkit.Event("a"), testkit.Event("b"), testkit.Event("c"), testkit.Finish+done) // a second apart
	tests := map[string]struct {
		pace cache.Pace
		want []time.Duration // when pieces come
	}{
		"as it came":       {cache.Pace{Speed: 1, MaxGap: time.Minute, MaxTotal: time.Minute}, []time.Duration{1000, 2000, 3000, 4000}},
		"four times":       {cache.Pace{Speed: 4, MaxGap: time.Minute, MaxTotal: time.Minute}, []time.Duration{250, 500, 750, 1000}},
		"bounded gaps":     {cache.Pace{Speed: 1, MaxGap: 10 * time.Millisecond, MaxTotal: time.Minute}, []time.Duration{10, 20, 30, 40}},
		"bounded in total": {cache.Pace{Speed: 1, MaxGap: time.Minute, MaxTotal: 1500 * time.Millisecond}, []time.Duration{1000, 1500, 1500, 1500}},
		"at once":          {cache.Pace{}, []time.Duration{0, 0, 0, 0}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var got []time.Duration
				var data []byte
				if err := a.Replay(t.Context(), tt.pace, func(b []byte) error {
					got, data = append(got, time.Since(start)/time.Millisecond), append(data, b...)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tt.want, got); d != "" || !bytes.Equal(data, a.Data) {
					t.Errorf("pieces come at (-want +got):\n%s\n%q", d, data)
				}
			})
		})
	}
}

func TestAReplayEndsWithItsContextAndItsClient(t *testing.T) {
	t.Parallel()
	a := mustRecord(t, true, testkit.Event("a"), testkit.Finish+done)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := a.Replay(ctx, cache.Pace{}, func([]byte) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("error %v after %d pieces, want canceled after 1", err, n)
	}
	gone := errors.New("gone")
	if err := a.Replay(t.Context(), cache.Pace{}, func([]byte) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("error %v, want that of the client", err)
	}
	body := mustRecord(t, false, testkit.Completion)
	if err := body.Replay(t.Context(), cache.DefaultPace(), func(b []byte) error { n += len(b); return nil }); err != nil || n != 1+len(testkit.Completion) {
		t.Errorf("error %v after %d bytes, want a body at once", err, n-1)
	}
}

func BenchmarkRecord(b *testing.B) {
	event := []byte(testkit.Event("token"))
	b.ReportAllocs()
	for b.Loop() {
		r := cache.NewRecorder(1<<20, time.Now, true)
		for range 100 {
			r.Write(event)
		}
	}
}
