package proxy

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/signal"
	"signalbox/memory"
	"signalbox/proxy/contexts"
	"signalbox/proxy/count"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/resolve"
	"signalbox/proxy/signals"
	"signalbox/proxy/warm"
	"signalbox/rules"
)

// UseMemory sets the store of contexts. Call it at most once, before the first request. Without a
// store, requests that name contexts are refused.
func (p *Proxy) UseMemory(m *memory.Store) { p.resolver.Store = m }

// ServeContexts sets the service for requests below /v1/contexts and /v1/sessions. Call it at most
// once, before the first request. Without a service, these requests are refused.
func (p *Proxy) ServeContexts(s *contexts.Service) { p.contexts = s }

// contextRoutes registers the routes of the contexts API.
func (p *Proxy) contextRoutes(r chi.Router) {
	for _, e := range contexts.Endpoints() {
		r.Method(e.Method, e.Path, p.serve(func(st *State, w *downstream.Writer, r *http.Request) error { return p.serveContext(st, w, r, &e) }))
	}
}

// serveContext admits a request to the contexts API and passes it to the service.
func (p *Proxy) serveContext(st *State, w *downstream.Writer, r *http.Request, e *contexts.Endpoint) error {
	who, body, err := st.enter(w, r, e.Body)
	if err != nil {
		return err
	}
	if p.contexts == nil {
		return contexts.ErrOff
	}
	id, err := pathPart(r, "id")
	if err != nil {
		return err
	}
	lease, err := pathPart(r, "lease")
	if err != nil {
		return err
	}
	q := r.URL.Query()
	if lease == "" {
		lease = q.Get("lease")
	}
	err = e.Serve(r.Context(), p.contexts, w, &contexts.Request{
		Owner: resolve.Owner(who, r.Header.Get("X-Signalbox-Session")), May: who.May, Verdicts: st.auth.MayExplain(who), ID: id, Lease: lease, Header: r.Header,
		After: q.Get("after"), Limit: q.Get("limit"), Body: body,
	})
	if err != nil && r.Context().Err() != nil {
		return fault.ErrClientGone
	}
	return err
}

// enter admits a request. It reads the body only when body is true.
func (st *State) enter(w *downstream.Writer, r *http.Request, body bool) (Principal, []byte, error) { //nolint:revive // the table of endpoints says it
	if body {
		return st.admit(w, r)
	}
	who, err := st.identify(w, r)
	return who, nil, err
}

// pathPart returns the unescaped path parameter called name. When the path as sent differs from its
// canonical form, the router matches the path as sent and returns parameters escaped.
func pathPart(r *http.Request, name string) (string, error) {
	part := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return part, nil
	}
	plain, err := url.PathUnescape(part)
	if err != nil {
		return "", fault.ErrNoRoute
	}
	return plain, nil
}

// ReadStored computes signals of a stored text with the current classifier and fills in set. The
// text is read like a prompt, or in all of its windows when some route requires that; see
// ReadsSelection.
func (p *Proxy) ReadStored(ctx context.Context, text *signal.Text, need signal.Mask, set *signal.Set) {
	st := p.acquire()
	defer st.release()
	if c, ok := st.Signals.Classifier.(signals.Thorough); ok && !st.ReadsSelection() {
		c.ExtractAll(ctx, text, need, set)
	} else {
		st.Signals.Extract(ctx, text, need, set)
	}
	set.Fail(need, signal.ReasonInternal)
}

// StoredSignals returns the signals to compute for stored texts, whose origin is data: pii, and the
// attack signals that read data.
func (p *Proxy) StoredSignals() signal.Mask {
	st := p.acquire()
	defer st.release()
	need := signal.MaskOf(signal.PII)
	for _, k := range signals.Attacks() {
		if st.Signals.Identity.ReadsOf(k).Has(signal.OriginData) {
			need |= signal.MaskOf(k)
		}
	}
	return need
}

// ReadsSelection reports whether a scan may select the windows of stored texts that are checked for
// attacks. It may not when some route requires all windows, or redacts personal data, which must be
// found first.
func (st *State) ReadsSelection() bool {
	return !slices.ContainsFunc(st.Program.Actions(), func(a *rules.Action) bool { return a.Windows == "all" || a.Redact != nil })
}

// ReadsSelection is State.ReadsSelection of the current state.
func (p *Proxy) ReadsSelection() bool {
	st := p.acquire()
	defer st.release()
	return st.ReadsSelection()
}

// CountTokens asks one server of each named model, or of every model when none is named, for the
// number of tokens in text. It returns the counts that arrived in time, and an empty map for a text
// that is too long to be sent for counting.
func (p *Proxy) CountTokens(ctx context.Context, text string, models []string) map[string]int {
	if len(text) > count.MaxBytes {
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
	for _, m := range st.Models {
		at := p.counters.Of(m)
		if len(models) > 0 && !slices.Contains(models, m.Name) || at == nil || asked == count.MaxModels {
			continue
		}
		asked++
		wg.Go(func() {
			if n, ok := p.counters.Count(ctx, at, m.ServedAs, quoted); ok {
				mu.Lock()
				defer mu.Unlock()
				out[m.Name] = n
			}
		})
	}
	wg.Wait()
	return out
}

// countBudget limits the time that model servers have to count the tokens of a context.
const countBudget = 2 * time.Second

var _ contexts.Resident = (*Proxy)(nil)

// Residency implements contexts.Resident.
func (p *Proxy) Residency(owner memory.Owner, c *memory.Context) []contexts.Residence {
	st := p.acquire()
	defer st.release()
	return st.places.Residency(st.Models, owner.Tenant, c)
}

var _ contexts.Warmer = (*Proxy)(nil)

// Warm implements contexts.Warmer. Without names it warms the models whose endpoints are configured
// to share prefixes. At other models the reading would cost money and bring nothing.
func (p *Proxy) Warm(ctx context.Context, owner memory.Owner, ref memory.Ref, models []string, wait bool) error {
	st := p.acquire()
	defer st.release()
	list, err := warm.Models(st.Models, models)
	if err != nil {
		return err
	}
	if p.resolver.Store == nil {
		return fault.ErrNoRoute
	}
	return p.warms.Read(ctx, &warm.Task{
		Models: list, Owner: owner, Ref: ref, Store: p.resolver.Store,
		Places: &st.places, Boards: st.notices, Home: held{st},
	}, wait)
}

// held is a reference to a state for reading contexts ahead, made by a caller that already holds
// the state.
type held struct{ st *State }

func (h held) Hold()    { h.st.refs.Add(1) }
func (h held) Release() { h.st.release() }
