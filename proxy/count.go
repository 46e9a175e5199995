package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/signal"
	"signalbox/proxy/backend"
	"signalbox/proxy/pool"
	"signalbox/rules"
)

// countBudget bounds the time in which model servers count the tokens of a context, and maxCounted
// the texts that they are asked to count, in bytes: an estimate takes the place of the rest.
const (
	countBudget = 2 * time.Second
	maxCounted  = 4 << 20
	mostCounts  = 8 // models that are asked for one text
)

// ReadStored fills in signals of a text that is stored, with the classifier that requests are
// decided by now: as those of a prompt, or from every window of it where some route wants that; see
// ReadsSelection.
func (p *Proxy) ReadStored(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	st := p.acquire()
	defer st.release()
	if c, ok := st.classifier.(thorough); ok && !st.ReadsSelection() {
		c.ExtractAll(ctx, text, need, set)
	} else {
		st.classifier.Extract(ctx, text, need, set)
	}
	set.Fail(need, signal.ReasonInternal)
}

// StoredSignals are the signals that stored texts, which are data, are read for: those about
// attacks that read data, and pii.
func (p *Proxy) StoredSignals() signal.Mask {
	st := p.acquire()
	defer st.release()
	need := signal.MaskOf(signal.PII)
	for _, k := range attacks() {
		if st.identity.ReadsOf(k).Has(signal.OriginData) {
			need |= signal.MaskOf(k)
		}
	}
	return need
}

// ReadsSelection reports whether a scan may choose the windows of stored texts that are read for
// their safety: no route wants all of them, or hides personal data, which has to be found first.
func (st *State) ReadsSelection() bool {
	return !slices.ContainsFunc(st.program.Actions(), func(a *rules.Action) bool { return a.Windows == "all" || a.Redact })
}

// ReadsSelection is that of the state that requests are served from.
func (p *Proxy) ReadsSelection() bool {
	st := p.acquire()
	defer st.release()
	return st.ReadsSelection()
}

// CountTokens asks a server of each model, of every model when none is named, how many tokens a
// text has, and returns what was answered in time. It is empty for texts that are too long to be
// sent around for that.
func (p *Proxy) CountTokens(ctx context.Context, text string, models []string) map[string]int {
	if len(text) > maxCounted {
		return nil
	}
	st := p.acquire()
	defer st.release()
	ctx, cancel := context.WithTimeout(ctx, countBudget)
	defer cancel()
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		return nil
	}
	var (
		out = map[string]int{}
		mu  sync.Mutex // guards out
		wg  sync.WaitGroup
	)
	asked := 0
	for _, m := range st.models {
		at := p.counter(m)
		if len(models) > 0 && !slices.Contains(models, m.Name) || at == nil || asked == mostCounts {
			continue
		}
		asked++
		wg.Go(func() {
			if n, ok := p.count(ctx, at, m.ServedAs, quoted); ok {
				mu.Lock()
				defer mu.Unlock()
				out[m.Name] = n
			}
		})
	}
	wg.Wait()
	return out
}

// counter is an endpoint of a model that may count tokens, nil when none does.
func (p *Proxy) counter(m *backend.Model) *pool.Endpoint {
	now := time.Now()
	for _, e := range m.Endpoints {
		if e.Fitness(now) == pool.Fit && p.counters.asks(e.Chat.String(), now) {
			return e
		}
	}
	return nil
}

// count asks an endpoint for the tokens of a text, which is quoted JSON.
func (p *Proxy) count(ctx context.Context, e *pool.Endpoint, model string, quoted []byte) (int, bool) {
	name, err := json.Marshal(model)
	if err != nil {
		return 0, false
	}
	body := slices.Concat([]byte(`{"model":`), name, []byte(`,"add_special_tokens":false,"prompt":`), quoted, []byte{'}'})
	return p.tokenize(ctx, e, tokenizePath, bytes.NewReader(body))
}

// tokenizePath is where vLLM counts.
const tokenizePath = "tokenize"

// tokenize asks an endpoint, at a path that counts, for the tokens of the prompt in a body.
func (p *Proxy) tokenize(
	ctx context.Context, e *pool.Endpoint, path string, body io.Reader,
) (int, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL(path).String(), body)
	if err != nil {
		return 0, false
	}
	req.Header.Set("Content-Type", "application/json")
	if e.Bearer != "" {
		req.Header.Set("Authorization", e.Bearer)
	}
	res, err := e.Via(p.transport).RoundTrip(req)
	if err != nil {
		return 0, false
	}
	defer func() { _ = res.Body.Close() }()
	n, err := countOf(res)
	ofPrompt := res.StatusCode == http.StatusBadRequest // and not of the server
	if err != nil && ctx.Err() == nil && !ofPrompt {
		p.counters.mute(e.Chat.String(), time.Now())
	}
	return n, err == nil
}

// maxCountAnswer bounds the answer, which lists every token, in bytes for each byte of text.
const maxCountAnswer = 16 * maxCounted

// countOf reads the answer of an endpoint, and all of it, so that its connection can be used again.
func countOf(res *http.Response) (int, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, maxCountAnswer))
	if err != nil {
		return 0, err
	}
	var out struct {
		Count *int `json:"count"`
		Input *int `json:"input_tokens"` // of the Messages API
	}
	if res.StatusCode != http.StatusOK || json.Unmarshal(b, &out) != nil {
		return 0, fmt.Errorf("tokenize answered %d", res.StatusCode)
	}
	if out.Count == nil {
		out.Count = out.Input
	}
	if out.Count == nil || *out.Count < 0 {
		return 0, fmt.Errorf("tokenize answered %d without a count", res.StatusCode)
	}
	return *out.Count, nil
}
