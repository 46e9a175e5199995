package kv_test

import (
	"testing"
	"time"

	"signalbox/internal/simulator/kv"
)

func TestLatencyKeepsNobodyElseWaiting(t *testing.T) {
	o := plain()
	o.Latency = 50 * time.Millisecond
	r := newRig(t, o)
	a := r.submit(0, kv.Request{Prompt: tokens(1, 10)})
	b := r.submit(0, kv.Request{Prompt: tokens(2, 20)})
	r.Advance(r.at(1000))
	if r.ms(a.First) != 60 || r.ms(b.Started) != 10 || r.ms(b.First) != 80 {
		t.Errorf("first tokens at %d and %d ms, the second began at %d; want 60, 80 and 10", r.ms(a.First), r.ms(b.First), r.ms(b.Started))
	}
}

func TestRequestsOfALowerPriorityNumberStartFirst(t *testing.T) {
	r := newRig(t, plain())
	r.submit(0, kv.Request{Prompt: tokens(1, 10)})
	var order []*kv.Sequence
	for _, priority := range []int{0, 5, -1, 0} {
		order = append(order, r.submit(0, kv.Request{Prompt: tokens(uint32(2+len(order)), 10), Priority: priority}))
	}
	r.Advance(r.at(1000))
	for i, want := range []int{20, 40, 10, 30} {
		if got := r.ms(order[i].Started); got != want {
			t.Errorf("request %d began at %d ms, want %d", i, got, want)
		}
	}
}

func TestDueTellsWhenTokensAreThere(t *testing.T) {
	o := plain()
	o.Crowd, o.Lanes = 10*time.Millisecond, 2
	r := newRig(t, o)
	s := r.submit(0, kv.Request{Prompt: tokens(1, 5), Answer: tokens(2, 4)})
	if _, ok := s.Due(0); ok {
		t.Error("a token is due before the prompt is computed")
	}
	due := func(want ...int) {
		t.Helper()
		for k, ms := range want {
			if at, ok := s.Due(k); !ok || r.ms(at) != ms {
				t.Errorf("token %d is due at %d ms (%v), want %d", k, r.ms(at), ok, ms)
			}
		}
	}
	r.Advance(r.at(6))
	due(5, 15, 25, 35)
	own := r.submit(15, kv.Request{Prompt: tokens(3, 1), Answer: tokens(4, 3), Decode: 30 * time.Millisecond})
	if at, _ := s.Due(2); r.ms(at) != 35 {
		t.Errorf("in company token 2 is due at %d ms, want 35", r.ms(at))
	}
	r.Cancel(r.at(36), s)
	if _, ok := s.Due(2); !ok {
		t.Error("a token that was given is not due")
	}
	if _, ok := s.Due(3); ok {
		t.Error("a token that a cancelled request never had is due")
	}
	r.Advance(r.at(1000))
	// One token after 16 ms, half of the way to the next at 40 ms each, then the rest of it at 30
	// ms each.
	if got := r.ms(own.Ended); got < 80 || got > 86 {
		t.Errorf("a request with a pace of its own ended at %d ms, want about 81", got)
	}
}

func TestDropKeepsTheCounts(t *testing.T) {
	r := newRig(t, plain())
	s := r.submit(0, kv.Request{Prompt: tokens(1, 100)})
	r.Drop(r.at(50))
	if s.State != kv.Gone || r.Cache().Named() != 0 {
		t.Errorf("state %v, %d blocks named after a drop", s.State, r.Cache().Named())
	}
	if c := r.Counters(); c.PromptTokens != 100 || c.Running != 0 {
		t.Errorf("%d prompt tokens counted, %d running; want 100 and 0", c.PromptTokens, c.Running)
	}
	r.Restart(r.at(60))
	if c := r.Counters(); c.PromptTokens != 0 || !c.Started.Equal(r.at(60)) {
		t.Errorf("after a restart %d prompt tokens since %v", c.PromptTokens, c.Started)
	}
}
