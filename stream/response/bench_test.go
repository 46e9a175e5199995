package response_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"signalbox/stream/response"
)

// BenchmarkRead reads chunks of typical size.
func BenchmarkRead(b *testing.B) {
	plain := []byte(`{"id":"chatcmpl-7f3a1c","object":"chat.completion.chunk","created":1760000000,"model":"qwen-32b",` +
		`"choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}]}`)
	event := []byte(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":" token","logprobs":[],"sequence_number":7}`)
	b.Run("json.Valid", func(b *testing.B) { // the same chunk with the standard library
		for b.Loop() {
			if !json.Valid(plain) {
				b.Fatal("not JSON")
			}
		}
	})
	for name, data := range map[string][]byte{
		"chat":     plain,
		"escaped":  bytes.Replace(plain, []byte(" token"), []byte(`\n\u00e9\"`), 1),
		"response": event,
	} {
		b.Run(name, func(b *testing.B) {
			var r response.Reader
			b.ReportAllocs()
			for b.Loop() {
				if len(r.Read(data).Deltas) != 1 {
					b.Fatal("no text")
				}
			}
		})
	}
}

// BenchmarkReadBody reads a body of 1 MiB with 64 KiB of escapes.
func BenchmarkReadBody(b *testing.B) {
	body := []byte(`{"choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat(`A line of text.\n`, 64<<10) + `"},"finish_reason":"stop"}]}`)
	var r response.Reader
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if len(r.ReadBody(body).Deltas) != 1 {
			b.Fatal("no text")
		}
	}
}

// BenchmarkAppend removes the front of a chunk's text.
func BenchmarkAppend(b *testing.B) {
	var r response.Reader
	data := chunk(`One claim. Another`)
	changes := []response.Change{{From: 0, To: 11}}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = r.Read(data).Append(out[:0], response.Rewrite{Changes: changes})
	}
}

// answer returns a stream of typical chunks, one piece per event.
func answer() (pieces [][]byte) {
	const head = `data: {"id":"chatcmpl-e9fd6049d65af21e86d6fd953217ae03","object":"chat.completion.chunk",` +
		`"created":1795871780,"model":"fast","choices":[{"index":0,`
	add := func(rest string) { pieces = append(pieces, []byte(head+rest+"}]}\n\n")) }
	add(`"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null`)
	for range 15 {
		add(`"delta":{"content":" signal"},"logprobs":null,"finish_reason":null,"token_ids":null`)
	}
	add(`"delta":{"content":" next"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null`)
	return append(pieces, []byte("data: [DONE]\n\n"))
}

// BenchmarkStream reads an answer of 17 events as the proxy reads each one.
func BenchmarkStream(b *testing.B) {
	pieces := answer()
	b.ReportAllocs()
	for b.Loop() {
		var t response.Tally
		s := response.TakeStream(response.StreamOptions{})
		for _, piece := range pieces {
			s.Feed(piece)
			for c := s.Next(); c != nil; c = s.Next() {
				if c.IsMessage() {
					t.Note(c.Content())
				}
			}
		}
		if !s.Done() || t.Finish != response.FinishLength {
			b.Fatal("no end")
		}
		s.Release()
	}
}
