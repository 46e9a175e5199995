package openai

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// allocated is the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Bodies of many tiny values cost typed decoders many times their size.
func TestParseChatCostsLittleMemoryForManyTinyValues(t *testing.T) {
	const n = 65_536 + 1 // one more than the largest limit
	var names []byte
	for i := range n {
		names = append(strconv.AppendInt(append(names, `,"`...), int64(i), 36), `":0`...)
	}
	tests := []struct {
		name, body string
		accepted   bool
		limit      uint64 // bytes
	}{
		{"messages", message(strings.Repeat(`{"role":"user"},`, n) + `{"role":"user"}`), false, 12 << 20},
		{"empty parts", message(`{"role":"user","content":[` + strings.Repeat(`"",`, n) + `""]}`), false, 1 << 20},
		{"empty tool calls", message(`{"role":"user","tool_calls":[` + strings.Repeat(`{},`, n) + `{}]}`), false, 1 << 20},
		{"one-letter documents", user(`,"documents":[` + strings.Repeat(`"a",`, n) + `"a"]`), false, 24 << 20},
		{"names of one object", user(`,"x":{` + string(names[1:]) + `}`), false, 24 << 20},
		{"empty objects in a field that is not read", user(`,"x":[` + strings.Repeat(`{},`, n) + `{}]`), true, 1 << 20},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(tt.body)
			var err error
			got := allocated(func() { _, err = ParseChat(body, Limits{}) })
			if (err == nil) != tt.accepted {
				t.Errorf("error is %v, want accepted %t", err, tt.accepted)
			}
			if got > tt.limit {
				t.Errorf("allocated %d bytes for a body of %d, want at most %d", got, len(body), tt.limit)
			}
			t.Logf("%d bytes for a body of %d", got, len(body))
		})
	}
}
