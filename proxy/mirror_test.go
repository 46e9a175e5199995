package proxy

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"signalbox/internal/signal"
	"signalbox/internal/testkit"
	"signalbox/proxy/mirror"
)

// mirroring starts a proxy whose only route copies every request for small to big.
func mirroring(tb testing.TB, action string, small, big testkit.Answer, change ...func(*setup)) *pair {
	tb.Helper()
	p := escalating(tb, everySign, small, big, append([]func(*setup){func(s *setup) {
		s.routes = "routes: []\ndefault: {models: [small], mirror: {model: big, share: 1}" + action + "}\n"
	}}, change...)...)
	return p
}

// copied waits until n copies had a result.
func (p *pair) copied(result string, n int) {
	p.tb.Helper()
	waitFor(p.tb, "copies that are "+result, func() bool { return p.counts("signalbox_mirror_total", result) == n })
}

func TestACopyIsComparedAndThrownAway(t *testing.T) {
	t.Parallel()
	other := strings.Replace(testkit.Completion, `"hello"`, `"hello there"`, 1)
	p := mirroring(t, "", testkit.JSON(200, testkit.Completion), testkit.JSON(200, other))
	if got := p.chat(
		ask("hi"),
		"X-Own",
		"1",
	); got.body != testkit.Completion ||
		got.header.Get("X-Signalbox-Model") != "small" {
		t.Errorf("the client got %s", got.body)
	}
	p.copied("answered", 1)
	page := p.metrics()
	for _, line := range []string{
		`signalbox_mirror_tokens_total{kind="completion",model="big"} 12`, `signalbox_mirror_cost_usd_total{model="big"} 3.3e-05`,
		`signalbox_mirror_similarity_sum{model="big"} 0.66`, `signalbox_tokens_total{kind="completion"} 12`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("no %q", line)
		}
	}
	if r := p.big.Last(t); r.Header.Get("X-Own") != "" || !strings.Contains(string(r.Body), `"model":"big"`) {
		t.Errorf("the copy is %v %s", r.Header, r.Body)
	}
	p.small.Next(testkit.Stream(testkit.Event("a b"), testkit.Finish, testkit.Done))
	p.big.Next(testkit.Stream(testkit.Event("a"), testkit.Event(" b"), testkit.Finish, testkit.Done))
	if got := p.chat(askStream("hi")); !strings.HasSuffix(got.body, testkit.Done) {
		t.Errorf("got %q", got.body)
	}
	p.copied("answered", 2)
	if !strings.Contains(p.metrics(), `signalbox_mirror_similarity_sum{model="big"} 1.66`) {
		t.Error("the same text is not the same")
	}
}

func TestACopyNeverDelaysOrFailsTheClient(t *testing.T) {
	t.Parallel()
	p := mirroring(t, "", testkit.JSON(200, testkit.Completion), testkit.Silent())
	var all sync.WaitGroup
	for range mirror.AtOnce + 4 { // each has its answer while all copies are waiting
		all.Go(func() {
			if got := p.chat(ask("hi")); got.status != 200 {
				t.Errorf("status %d", got.status)
			}
		})
	}
	all.Wait()
	p.copied("dropped", 4)
	for name, big := range map[string]testkit.Answer{
		"refused": testkit.JSON(400, `{"error":{"message":"no"}}`), "broken": testkit.Raw("", testkit.RST), "page": testkit.Body(200, "text/html", "hm"),
		"cut": testkit.Raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length"+
			": 99\r\n\r\n{", testkit.FIN),
	} {
		p := mirroring(t, "", testkit.JSON(200, testkit.Completion), big)
		if got := p.chat(ask("hi")); got.body != testkit.Completion {
			t.Errorf("%s: got %s", name, got.body)
		}
		p.copied("failed", 1)
	}
}

func TestAPanicWhileACopyIsSentEndsInTheLog(t *testing.T) {
	t.Parallel()
	p := mirroring(t, "", testkit.JSON(200, testkit.Completion), testkit.JSON(200, testkit.Completion))
	p.proxy.transport.Proxy = func(r *http.Request) (*url.URL, error) {
		if strings.HasPrefix(p.big.URL(), "http://"+r.URL.Host) {
			panic("transport fault")
		}
		return nil, nil
	}
	if got := p.chat(ask("hi")); got.status != http.StatusOK {
		t.Errorf("status %d", got.status)
	}
	p.copied("failed", 1)
	for _, m := range p.state.Models {
		for _, e := range m.Endpoints {
			if n := e.Inflight(); n != 0 {
				t.Errorf("%d requests are under way at %s", n, e.Name)
			}
		}
	}
	if !strings.Contains(p.log.String(), "transport fault") {
		t.Errorf("the log says nothing: %s", p.log.String())
	}
}

func TestWhatIsNotCopied(t *testing.T) {
	t.Parallel()
	p := mirroring(t, "", testkit.JSON(200, testkit.Completion), testkit.JSON(200, testkit.Completion))
	p.chat(strings.Replace(ask("hi"), "{", `{"store":true,`, 1))
	p.post("/v1/responses", `{"model":"auto","input":"hi"}`)
	p.post("/v1/responses", `{"model":"auto","input":"hi","store":false,"previous_response_id":"r"}`)
	p.post("/v1/responses", `{"model":"auto","input":[{"type":"item_reference","id":"i"}],"store":false}`)
	p.small.Next(testkit.JSON(http.StatusBadRequest, `{"error":{"message":"no"}}`))
	p.chat(ask("refused"))
	p.chat(ask("copied"))
	p.copied("answered", 1)
	if all := p.big.Requests(); len(all) != 1 || !strings.Contains(string(all[0].Body), "copied") {
		t.Errorf("%d copies", len(all))
	}
}

func TestACopyHidesWhatTheRouteHides(t *testing.T) {
	t.Parallel()
	up := testkit.NewUpstream(t, testkit.JSON(200, testkit.Completion))
	c := &piiClassifier{}
	c.signals = signal.MaskOf(signal.PII)
	b := start(t, oneModel(up), func(s *setup) {
		s.classifier = &c.fakeClassifier
		s.routes = "routes: []\ndefault: {models: [small], redact: true, mirror: {model: big, share: 1}}\n"
	})
	b.state.Signals.Classifier = c
	b.chat(ask("I am ann@example.com"))
	(&pair{bench: b}).copied("answered", 1)
	all := up.Requests()
	if len(all) != 2 {
		t.Fatalf("%d requests", len(all))
	}
	for _, r := range all {
		if strings.Contains(string(r.Body), "ann@") || !strings.Contains(string(r.Body), "[EMAIL_1]") {
			t.Errorf("a model received %s", r.Body)
		}
	}
}

func TestTheDecisionLogTellsOfACopy(t *testing.T) {
	t.Parallel()
	l := startLogged(t, "routes: []\ndefault: {models: [small], mirror: {model: big, share: 1}}\n")
	l.up.Next(testkit.JSON(200, testkit.Completion), testkit.JSON(200, testkit.Completion))
	l.chat(ask("hi"))
	waitFor(t, "a copy", func() bool { return len(l.up.Requests()) == 2 })
	l.state.book.Copies.Wait()
	text, lines := l.lines(t)
	if m := lines[0].Mirror; m == nil || m.Model != "big" || m.Result != "answered" || !m.Same || m.Similarity != 1 ||
		m.Tokens.Completion != 12 ||
		m.Bytes != 5 ||
		m.Against != 5 {
		t.Errorf("logged as %s", text)
	}
}

// Requests of two configurations share what copies may take, and the end of the older configuration
// is not that of the copies of its requests.
func TestAReloadEndsNoCopy(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	var was setup
	p := mirroring(t, "", testkit.JSON(200, testkit.Completion), testkit.After(gate, testkit.JSON(200, testkit.Completion)),
		func(s *setup) { was = *s })
	p.chat(ask("hi"))
	within(t, p.big.Arrived, "the copy")
	next, old := p.newState(was, 2), p.state
	p.proxy.Swap(next)
	p.state = next
	within(t, old.Idle(), "the end of the old state")
	closed := make(chan struct{})
	go func() { old.Close(); close(closed) }()
	within(t, closed, "its end") // whatever copies wait for
	for range mirror.AtOnce {
		p.chat(ask("hi"))
	}
	p.copied("dropped", 1)
	close(gate)
	p.copied("answered", mirror.AtOnce)
}
