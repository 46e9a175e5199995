package record

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/internal/telemetry"
	"signalbox/proxy/decide"
	"signalbox/proxy/decisionlog"
	"signalbox/proxy/exchange"
	"signalbox/proxy/signals"
	"signalbox/rules"
)

const secret = "Amelia Bedelia of 12 Rowan Lane"

func TestAWaitingLineDoesNotKeepTheRequest(t *testing.T) {
	t.Parallel()
	set := &signal.Set{Facts: signal.Facts{Model: "auto", Header: func(string) []string { return nil }}}
	d := &decide.Decision{Set: set, Request: &openai.Request{}, Text: signal.Text{LastUser: secret}}
	l := &decided{o: exchange.Exchange{Decision: d}}
	l.detach()
	if l.o.Req != nil || l.o.Decision.Request != nil || l.o.Vault != nil ||
		l.o.Text.LastUser != "" || l.o.Set.Facts.Header != nil {
		t.Errorf("%+v", l.o)
	}
	if d.Text.LastUser == "" || d.Request == nil || set.Facts.Header == nil {
		t.Error("the request itself was changed")
	}
}

func TestAWaitingLineKeepsNothingThatItDoesNotTell(t *testing.T) {
	t.Parallel()
	set := &signal.Set{}
	set.Put(signal.PII, signal.Value{State: signal.Known, Spans: make([]signal.Span, 1000)})
	set.Put(signal.Embedding, signal.Value{State: signal.Known, Vector: make([]float32, 1000)})
	l := &decided{o: exchange.Exchange{Decision: &decide.Decision{Set: set}}}
	l.detach()
	if l.o.Set.Value(signal.PII).Spans != nil || l.o.Set.Value(signal.Embedding).Vector != nil {
		t.Error("the line keeps places of personal data or a vector")
	}
	if set.Value(signal.PII).Spans == nil || set.Value(signal.Embedding).Vector == nil {
		t.Error("the request itself was changed")
	}
	if held := l.Held(); held != lineSize {
		t.Errorf("%d bytes count as held, want %d", held, lineSize)
	}
}

func TestAWaitingLineCountsTheTextThatItKeeps(t *testing.T) {
	t.Parallel()
	body := `{"model":"auto","messages":[{"role":"user","content":"` + secret + `"}]}`
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]signal.Text{
		"that signals were read from": req.Text(), "that no signal was read from": {},
	} {
		d := &decide.Decision{Set: &signal.Set{}, Text: text}
		l := &decided{o: exchange.Exchange{Decision: d, Req: req}, prompts: true}
		l.detach()
		if want := int64(lineSize + cap(req.Raw) + len(secret)); l.Held() != want {
			t.Errorf("text %s: %d bytes count as held, want %d", name, l.Held(), want)
		}
		if l.o.Text.LastUser != secret {
			t.Errorf("text %s: %q is kept", name, l.o.Text.LastUser)
		}
	}
}

// BenchmarkLogDecision measures what a logged request costs for its line: a copy of its signals.
// The log is closed, so that its goroutine, which encodes and writes, is not included.
func BenchmarkLogDecision(b *testing.B) {
	o := telemetry.Options{Log: "error", LogFormat: "text", Decisions: telemetry.DefaultDecisionOptions()}
	o.Decisions.File = filepath.Join(b.TempDir(), "decisions.jsonl")
	tel, err := telemetry.New(b.Context(), o, "test", io.Discard)
	if err != nil {
		b.Fatal(err)
	}
	if err := tel.Shutdown(context.Background()); err != nil {
		b.Fatal(err)
	}
	book := &Book{Base: &decide.Base{Signals: &signals.Reader{Identity: decisionlog.Identity{
		Config: "cafe", Definitions: map[signal.Kind]string{ //nolint:exhaustive // two are models
			signal.Domain: "d1", signal.Jailbreak: "d1",
		},
	}}}}
	set := &signal.Set{Facts: signal.Facts{Model: "auto"}}
	for _, k := range []signal.Kind{signal.Domain, signal.Jailbreak, signal.Keyword} {
		set.Put(k, signal.Value{State: signal.Known, Source: "fake", Provider: "cpu", Label: "math", Score: 0.9})
	}
	math := rules.Decision{Route: "math", Action: &rules.Action{By: "order"}}
	out := &exchange.Exchange{Decision: &decide.Decision{Set: set, Decision: math}}
	b.ReportAllocs()
	for b.Loop() {
		book.logDecision(tel.Decisions, "r", out, http.StatusOK)
	}
}
