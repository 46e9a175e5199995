package simulator_test

import (
	"net/http"
	"strings"
	"testing"
)

// discard is a ResponseWriter that costs nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header       { return d.header }
func (d *discard) WriteHeader(status int)    { d.status = status }
func (*discard) Write(p []byte) (int, error) { return len(p), nil }
func (*discard) Flush()                      {}

// serveN measures the handler alone, without a network.
func serveN(b *testing.B, body string) {
	b.Helper()
	h := newServer(b, nil).Handler()
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		w := &discard{header: http.Header{}}
		h.ServeHTTP(w, r)
		if w.status != http.StatusOK {
			b.Fatalf("status %d", w.status)
		}
	}
}

func BenchmarkChat(b *testing.B) {
	serveN(b, `{"model":"llama-70b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is the capital of France?"}]}`)
}

func BenchmarkChatStream(b *testing.B) {
	serveN(b, `{"model":"llama-70b","stream":true,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is the capital of France?"}]}`)
}

func BenchmarkChatStream1000Tokens(b *testing.B) {
	serveN(b, `{"model":"llama-70b","stream":true,"max_tokens":1000,"ignore_eos":true,"messages":[{"role":"user","content":"Hi"}]}`)
}

func BenchmarkChatPromptOf64KiB(b *testing.B) {
	serveN(b, `{"messages":[{"role":"user","content":"`+strings.Repeat("seven letters and more ", 2849)+`"}]}`)
}
