package openai

import (
	"strings"
	"testing"
)

func benchBody(messages, textBytes int) []byte {
	text := strings.Repeat(`The quick brown fox\njumps over the "lazy" dog. `, textBytes/48+1)
	text = strings.ReplaceAll(text[:textBytes], `"`, `'`)
	text = strings.TrimSuffix(text, `\`)
	one := `{"role":"user","content":"` + text + `"}`
	return []byte(`{"model":"auto","messages":[` + strings.Repeat(one+",", messages-1) + one +
		`],"temperature":0.7,"stream":true,"max_tokens":512,"stream_options":{"include_usage":true}}`)
}

func BenchmarkParseAndPatch(b *testing.B) {
	for _, bm := range []struct {
		name string
		body []byte
	}{
		{"2KB in 8 messages", benchBody(8, 200)},
		{"1MB in 1 message", benchBody(1, 1<<20)},
		{"1MB in 10000 messages", benchBody(10_000, 70)},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.SetBytes(int64(len(bm.body)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := ParseChat(bm.body, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				p := NewPatch(r)
				p.SetModel("Qwen/Qwen2.5-7B-Instruct")
				p.InsertMessage(0, "system", "You are a careful analyst.")
				p.SetNested("chat_template_kwargs", "enable_thinking", []byte("false"))
				if len(p.Bytes()) <= len(bm.body) {
					b.Fatal("the patch did nothing")
				}
			}
		})
	}
}

// A body of many tiny values must be refused before it costs memory.
func BenchmarkRefuseManyMessages(b *testing.B) {
	body := []byte(`{"model":"auto","messages":[` + strings.Repeat(`{"role":"user"},`, 1<<20) + `{"role":"user"}]}`)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseChat(body, Limits{}); err == nil {
			b.Fatal("accepted")
		}
	}
}
