package guard_test

import (
	"io"
	"strings"
	"testing"

	"signalbox/stream/guard"
)

// endless is a Source of n equal pieces, which belong to claims without an end.
type endless struct {
	piece []byte
	n     int
}

func (e *endless) Read() ([]byte, error) {
	if e.n == 0 {
		return nil, io.EOF
	}
	e.n--
	return e.piece, nil
}

func (*endless) Cancel() {}

// null is a Sink.
type null struct{ bytes int }

func (n *null) Write(b []byte) error {
	n.bytes += len(b)
	return nil
}

// handedOver copies like Copy, with one goroutine that reads and one that writes, but checks
// nothing.
func handedOver(src byteSource, dst writer) {
	pieces, next := make(chan []byte), make(chan struct{})
	go func() {
		defer close(pieces)
		for {
			b, err := src.Read()
			if err != nil {
				return
			}
			pieces <- b
			<-next
		}
	}()
	for b := range pieces {
		_ = dst.Write(b)
		next <- struct{}{}
	}
}

// BenchmarkChunk measures the cost of one chunk with a word. plain is a copy between two
// goroutines, which is the minimum for a stream whose verdicts must not wait for the upstream.
func BenchmarkChunk(b *testing.B) {
	g := guard.New(&quick{}, guard.Options{Workers: 1})
	b.Cleanup(g.Close)
	word := []byte(chunk("word"))      // only letters: no word and no claim ends
	claim := []byte(chunk("Well. A ")) // each ends a claim
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(word)))
		handedOver(&endless{word, b.N}, &null{})
	})
	for _, c := range []struct {
		name  string
		piece []byte
	}{{"word", word}, {"claim", claim}} {
		for m := guard.Off; m <= guard.Hold; m++ {
			b.Run(c.name+"/"+m.String(), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(len(c.piece)))
				_, _ = g.Copy(b.Context(), source(&endless{c.piece, b.N}), sink(&null{}), jobOf(b, m))
			})
		}
	}
}

func TestOnlyClaimsAllocate(t *testing.T) {
	g := guardOf(t, &quick{}, guard.Options{Workers: 1})
	for m := guard.Observe; m <= guard.Hold; m++ {
		job := jobOf(t, m)
		// A claim without an end is closed by length, once in 32 words.
		allocs := func(n int) float64 {
			return testing.AllocsPerRun(5, func() {
				_, _ = g.Copy(t.Context(), source(&endless{[]byte(chunk("word ")), n}), sink(&null{}), job)
			})
		}
		if few, many := allocs(320), allocs(1600); many-few > 1280/32*20 {
			t.Errorf("%v: %v allocations for 320 chunks, %v for 1600", m, few, many)
		} else {
			t.Logf("%v: %.2f allocations for a chunk, in claims of 32", m, (many-few)/1280)
		}
	}
}

func BenchmarkStory(b *testing.B) {
	g := guard.New(&quick{}, guard.Options{Workers: 1})
	b.Cleanup(g.Close)
	stream := []byte(strings.Join(words(strings.Repeat(story, 20)), ""))
	for m := guard.Off; m <= guard.Hold; m++ {
		b.Run(m.String(), func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = g.Copy(b.Context(), source(&endless{stream, 1}), sink(&null{}), jobOf(b, m))
			}
		})
	}
}
