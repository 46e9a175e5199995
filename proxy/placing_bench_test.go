package proxy

import (
	"strings"
	"testing"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/testkit"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/settings"
)

// The cost of placement for a request through the proxy, to a model with two endpoints: `off` is
// the less loaded of two, `short` a prompt without a key, `session` one with a session, `long` one
// of 16 KiB.
func BenchmarkPlacement(b *testing.B) {
	short := strings.Replace(ask("hello, how are you today"), "auto", "small", 1)
	session := strings.Replace(short, `{`, `{"signalbox":{"session":"one"},`, 1)
	long := strings.Replace(short, "hello", kib("somebody", 16), 1)
	for _, c := range []struct{ name, how, body string }{
		{"off-short", settings.PlacementOff, short},
		{"short", settings.PlacementAuto, short},
		{"off-session", settings.PlacementOff, session},
		{"session", settings.PlacementAuto, session},
		{"off-long", settings.PlacementOff, long},
		{"long", settings.PlacementAuto, long},
	} {
		b.Run(c.name, func(b *testing.B) {
			ups := []*testkit.Upstream{testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion)), testkit.NewUpstream(b, testkit.JSON(200, testkit.Completion))}
			p := start(b, oneModel(ups...), func(s *setup) { s.options.Placement = c.how })
			hammer(b, p.URL, c.body)
		})
	}
}

// placer returns the stage alone: everything between the decision and the first attempt, and what
// is recorded at its end.
func placer(tb testing.TB, how, body string) func() {
	tb.Helper()
	up := testkit.NewUpstream(tb, testkit.JSON(200, testkit.Completion))
	b := start(tb, oneModel(up, up), func(s *setup) {
		s.options.Placement = how
		s.models[1].ContextWindow = 0
	})
	req, err := openai.ParseChat([]byte(body), openai.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	d, err := b.state.Decide(tb.Context(), Principal{Tenant: "default"}, req, nil, nil, nil)
	if err != nil {
		tb.Fatal(err)
	}
	change := rewrite.New(b.state.edits, req, d)
	return func() {
		p, err := b.state.place(&change, nil, "", b.proxy.measure(tb.Context(), b.state, &change))
		if err != nil {
			tb.Fatal(err)
		}
		_, lease, err := p.Next(tb.Context())
		if err != nil || lease == nil {
			tb.Fatal("no endpoint")
		}
		lease.Close()
		p.Abandon(time.Now())
	}
}

func BenchmarkPlacing(b *testing.B) {
	short := ask("hello, how are you today")
	for _, c := range []struct{ name, how, body string }{
		{"off", settings.PlacementOff, short},
		{"short", settings.PlacementAuto, short},
		{"session", settings.PlacementAuto, strings.Replace(short, `{`, `{"signalbox":{"session":"one"},`, 1)},
		{"16KiB", settings.PlacementAuto, strings.Replace(short, "hello", kib("somebody", 16), 1)},
		{"600KiB", settings.PlacementAuto, strings.Replace(short, "hello", kib("somebody", 600), 1)},
	} {
		b.Run(c.name, func(b *testing.B) {
			run := placer(b, c.how, c.body)
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

func TestPlacingAShortPromptAllocatesNoMoreThanPickingAnEndpoint(t *testing.T) {
	off, on := testing.AllocsPerRun(200, placer(t, settings.PlacementOff, ask("hello"))), testing.AllocsPerRun(200, placer(t, settings.PlacementAuto, ask("hello")))
	if on > off {
		t.Errorf("%v allocations with placement, %v without", on, off)
	}
}
