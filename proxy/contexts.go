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

// UseMemory makes m the store of contexts. Call it once, before the first request; without it
// requests that name contexts are refused.
func (p *Proxy) UseMemory(m *memory.Store) { p.resolver.Store = m }

// ServeContexts lets s answer the requests below /v1/contexts and /v1/sessions. Call it once,
// before the first request; without it they are refused.
func (p *Proxy) ServeContexts(s *contexts.Service) { p.contexts = s }

// contextRoutes registers the API of contexts.
func (p *Proxy) contextRoutes(r chi.Router) {
	for _, e := range contexts.Endpoints() {
		r.Method(e.Method, e.Path, p.serve(func(st *State, w *downstream.Writer, r *http.Request) error { return p.serveContext(st, w, r, &e) }))
	}
}

// serveContext admits a request about contexts and lets the service answer it.
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

// enter admits a request, with its body where it takes one.
func (st *State) enter(w *downstream.Writer, r *http.Request, body bool) (Principal, []byte, error) { //nolint:revive // the table of endpoints says it
	if body {
		return st.admit(w, r)
	}
	who, err := st.identify(w, r)
	return who, nil, err
}

// pathPart returns what a path names. The router matches the path as it was sent where that differs
// from its canonical form, and leaves the part escaped then.
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

// ReadStored fills in signals of a text that is stored, with the classifier that requests are
// decided by now: as those of a prompt, or from every window of it where some route wants that; see
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

// StoredSignals are the signals that stored texts, which are data, are read for: those about
// attacks that read data, and pii.
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

// ReadsSelection reports whether a scan may choose the windows of stored texts that are read for
// their safety: no route wants all of them, or hides personal data, which has to be found first.
func (st *State) ReadsSelection() bool {
	return !slices.ContainsFunc(st.Program.Actions(), func(a *rules.Action) bool { return a.Windows == "all" || a.Redact != nil })
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

// countBudget bounds the time in which model servers count the tokens of a context.
const countBudget = 2 * time.Second

var _ contexts.Resident = (*Proxy)(nil)

// Residency implements contexts.Resident.
func (p *Proxy) Residency(owner memory.Owner, c *memory.Context) []contexts.Residence {
	st := p.acquire()
	defer st.release()
	return st.places.Residency(st.Models, owner.Tenant, c)
}

var _ contexts.Warmer = (*Proxy)(nil)

// Warm implements contexts.Warmer. Without names it goes to the models whose endpoints are said to
// share prefixes: what others charge for it is lost.
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

// held is a state as what is read ahead holds it: by somebody who holds it already.
type held struct{ st *State }

func (h held) Hold()    { h.st.refs.Add(1) }
func (h held) Release() { h.st.release() }
