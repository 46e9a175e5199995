package response

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestLastIndexIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, r.IntN(3*TailSize))
		for i := range b {
			b[i] = `ab"`[r.IntN(3)]
		}
		name := []byte(`"abab"`)[:1+r.IntN(6)]
		if got, want := lastIndex(b, name), bytes.LastIndex(b, name); got != want {
			t.Fatalf("%q in %d bytes: %d, want %d", name, len(b), got, want)
		}
	}
	for at := TailSize - 8; at <= TailSize; at++ { // across the border of the tail
		b := append(append(make([]byte, 2*TailSize-at), `"usage"`...), make([]byte, at-7)...)
		if got := lastIndex(b, []byte(`"usage"`)); got != 2*TailSize-at {
			t.Errorf("%d bytes before the end: %d", at, got)
		}
	}
}
