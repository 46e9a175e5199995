package cache_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/memory/cache"
)

const done = testkit.Done

// record takes down pieces, a second apart.
func record(streamed bool, pieces ...string) (*cache.Answer, error) { //nolint:revive // of which kind it is
	clock := testkit.NewClock()
	r := cache.NewRecorder(1<<20, clock.Now, streamed)
	for _, p := range pieces {
		clock.Pass(time.Second)
		r.Write([]byte(p))
		if streamed {
			r.Mark()
		}
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

// Pieces are runs of whole events, each with the time at which it had come, and an answer without
// its usage has those of the rest.
func TestAnAnswerInAnotherShapeHasItsPieces(t *testing.T) {
	t.Parallel()
	a := mustRecord(t, true, "one", "two", "three")
	b := a.As([]byte("onthree"), true, openai.Span{Start: 2, End: 6})
	if d := cmp.Diff([]cache.Piece{{End: 2, After: time.Second}, {End: 7, After: 3 * time.Second}}, b.Pieces); d != "" || string(b.Data) != "onthree" || string(a.Data) != "onetwothree" {
		t.Errorf("%q in pieces (-want +got):\n%s", b.Data, d)
	}
	if c := a.As(a.Data, true, openai.Span{}); len(c.Pieces) != 3 || !c.Streamed() {
		t.Errorf("unchanged: %+v", c)
	}
	body := a.As([]byte("{}"), false, openai.Span{})
	if body.Streamed() || body.ContentType != "application/json" {
		t.Errorf("a body: %+v", body)
	}
	if back := body.As([]byte("events"), true, openai.Span{}); len(back.Pieces) != 1 || back.Pieces[0].End != 6 || back.ContentType != "text/event-stream; charset=utf-8" {
		t.Errorf("a stream: %+v", back)
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
				if err := replay(t.Context(), a, tt.pace, func(b []byte) error {
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

// replay gives an answer to write, piece by piece.
func replay(ctx context.Context, a *cache.Answer, p cache.Pace, write func([]byte) error) error {
	player := a.Player(p)
	for {
		b, err := player.Next(ctx.Done())
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, cache.ErrStopped):
			return ctx.Err()
		case err == nil:
			err = write(b)
		}
		if err != nil {
			return err
		}
	}
}

func TestAReplayEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := mustRecord(t, true, testkit.Event("a"), testkit.Finish+done)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	err := replay(ctx, a, cache.Pace{}, func([]byte) error { n++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || n != 1 {
		t.Errorf("error %v after %d pieces, want canceled after 1", err, n)
	}
	body := mustRecord(t, false, testkit.Completion)
	if err := replay(t.Context(), body, cache.DefaultPace(), func(b []byte) error { n += len(b); return nil }); err != nil || n != 1+len(testkit.Completion) {
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
			r.Mark()
		}
	}
}
