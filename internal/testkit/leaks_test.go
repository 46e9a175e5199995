package testkit

import (
	"testing"
	"time"
)

func TestAGoroutineThatEndsSoonIsNoLeak(t *testing.T) {
	go time.Sleep(800 * time.Millisecond)
	if err := leaks(leakPatience); err != nil {
		t.Error(err)
	}
}

func TestAGoroutineThatStaysIsALeak(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	go func() { <-stop }()
	if leaks(time.Second) == nil {
		t.Error("a goroutine that waits for ever was not found")
	}
}
