package warm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"time"

	"signalbox/internal/openai"
	"signalbox/internal/telemetry"
	"signalbox/memory"
	"signalbox/memory/prefix"
	"signalbox/proxy/affinity"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/framing"
	"signalbox/proxy/placement"
	"signalbox/proxy/resolve"
	"signalbox/proxy/rewrite"
	"signalbox/proxy/upstream"
	"signalbox/stream/response"
)

// Reader reads contexts ahead of need.
type Reader struct {
	tel       *telemetry.Telemetry
	transport framing.Transport
	queue     chan *warmup // capacity manyWarms; when full, requests are refused

	mu      sync.Mutex          // guards flights
	flights map[reading]*flight // readings in progress
}

// reading identifies a reading in full, so that no two are confused.
type reading struct{ tenant, model, context string }

// New returns a reader that sends through transport. It starts no goroutine; see Run.
func New(tel *telemetry.Telemetry, transport framing.Transport) *Reader {
	return &Reader{
		tel: tel, transport: transport,
		queue: make(chan *warmup, manyWarms), flights: make(map[reading]*flight),
	}
}

const manyWarms = 256 // maximum number waiting

// Home is the configuration that contexts are read for. It is held once per context and released
// when the context was read or will not be.
type Home interface {
	Hold()
	Release()
}

// Task is a context to be read by some models.
type Task struct {
	Models []*backend.Model
	Owner  memory.Owner
	Ref    memory.Ref
	Store  *memory.Store
	Places *placement.Places
	Boards *backend.Boards // for coordination with other replicas
	Home   Home
}

// warmup is the part of a task for one model. It holds its configuration until release and, from
// open on, the context.
type warmup struct {
	*Task

	m *backend.Model

	snap *memory.Snapshot
	salt string
	ask  affinity.Request
}

// Models returns the models with the given names or, without names, those whose endpoints share
// prefixes. Errors are UnknownModelError, and an API error if no model shares prefixes.
func Models(all []*backend.Model, names []string) ([]*backend.Model, error) {
	var out []*backend.Model
	for _, name := range names {
		i := slices.IndexFunc(all, func(m *backend.Model) bool { return m.Name == name })
		if i < 0 {
			return nil, &fault.UnknownModelError{Model: name}
		}
		out = append(out, all[i])
	}
	if len(names) > 0 {
		return out, nil
	}
	for _, m := range all {
		for i := range m.Servers.All {
			if m.Servers.All[i].Salted.Load() {
				out = append(out, m)
				break
			}
		}
	}
	if len(out) == 0 {
		return nil, openai.Invalid("models",
			"models is required: no model is known to have endpoints that share prefixes")
	}
	return out, nil
}

const (
	warmsAtOnce = 16 // over all endpoints, with at most one each
	// longestWarm limits the wait for an endpoint together with the reading.
	longestWarm = 10 * time.Minute
)

func (w *warmup) release() {
	w.snap.Release()
	w.Home.Release()
}

// Read makes the models of a task read its context: a real request with the context and a minimal
// response goes to where requests with the context will go. With wait it returns when they have
// read it. Otherwise it queues the work, or returns ErrBusy if the queue is full. Errors are those
// of package fault and of the store.
func (x *Reader) Read(ctx context.Context, t *Task, wait bool) error { //nolint:revive // as in contexts.Warmer
	all := make([]*warmup, len(t.Models))
	for i, m := range t.Models {
		t.Home.Hold()
		all[i] = &warmup{Task: t, m: m}
	}
	if wait {
		return x.now(ctx, all)
	}
	for i, w := range all {
		select {
		case x.queue <- w:
		default:
			for _, left := range all[i:] {
				left.release()
			}
			return fault.ErrBusy
		}
	}
	return nil
}

// open takes a snapshot of the context and determines its placement.
func (w *warmup) open(ctx context.Context) (err error) {
	if w.snap, err = w.Store.Resolve(ctx, w.Owner, w.Ref); err != nil {
		return fmt.Errorf("read context: %w", err)
	}
	w.salt = w.Places.Salts.Of(w.Owner.Tenant)
	w.ask = w.Places.Ask(w.m, w.Owner.Tenant, w.snap)
	return nil
}

// now warms immediately and waits for all of it.
func (x *Reader) now(ctx context.Context, all []*warmup) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() { errs[i] = x.warm(ctx, w) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Run processes queued work until ctx ends. It owns a goroutine for each context being read and
// returns when they have ended.
func (x *Reader) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer x.clear()
	defer wg.Wait()
	seats := make(chan struct{}, warmsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-x.queue:
			seats <- struct{}{}
			wg.Go(func() {
				defer func() { <-seats }()
				within, cancel := context.WithTimeout(ctx, longestWarm)
				defer cancel()
				if err := x.warm(within, w); err != nil {
					x.tel.Log.LogAttrs(ctx, slog.LevelInfo, "context was not warmed",
						slog.String("model", w.m.Name), slog.String("cause", err.Error()))
				}
			})
		}
	}
}

// clear releases queued work that was not begun.
func (x *Reader) clear() {
	for {
		select {
		case w := <-x.queue:
			w.release()
		default:
			return
		}
	}
}

// flight is a reading in progress. err is set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

// enter registers a reading and returns it as own; if the same one is already in progress, it
// returns that as others.
func (x *Reader) enter(key reading) (own, others *flight) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f, ok := x.flights[key]; ok {
		return nil, f
	}
	f := &flight{done: make(chan struct{})}
	x.flights[key] = f
	return f, nil
}

// leave ends a reading.
func (x *Reader) leave(key reading, f *flight) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.flights, key)
	close(f.done)
}

// warm makes an endpoint read a context unless it already has, or unless a request would have to
// wait. A panic is logged and returned as an error, since it is on no request's goroutine and would
// end the process.
func (x *Reader) warm(ctx context.Context, w *warmup) (err error) {
	defer w.release()
	defer func() {
		if v := recover(); v != nil {
			err = fault.ErrPanicked
			x.tel.Log.LogAttrs(ctx, slog.LevelError, "panic", slog.String("model", w.m.Name), slog.Any("value", v),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	if w.m.Servers.Placer == nil {
		return fault.ErrNoEndpoint
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	key := reading{w.Owner.Tenant, w.m.Name, resolve.Pointer(w.snap)}
	for {
		own, others := x.enter(key)
		if own != nil {
			return x.lead(ctx, w, key, own)
		}
		select {
		case <-others.done:
			if gone := errors.Is(others.err, fault.ErrClientGone) || errors.Is(others.err, context.Canceled); !gone {
				return others.err
			} // the request that led the reading has left, so the result is unknown
		case <-ctx.Done():
			return fault.ErrClientGone
		}
	}
}

// lead makes an endpoint read a context on behalf of all who wait for it.
func (x *Reader) lead(ctx context.Context, w *warmup, key reading, own *flight) (err error) {
	own.err = fault.ErrPanicked // replaced when it ends normally
	defer x.leave(key, own)
	result, err := x.once(ctx, w)
	own.err = err
	x.tel.Metrics.WarmCall(w.m.Name, result)
	return err
}

// enough is the cached share of a context, of what can be cached at all, from which on it is not
// sent again.
const enough = 0.9

func (x *Reader) once(ctx context.Context, w *warmup) (result string, err error) {
	where := w.m.Servers
	penalty := make([]float64, len(where.All))
	w.ask.Penalty = penalty
	full := where.Penalties(penalty, nil, time.Now())
	spot, ok := where.Find(time.Now(), &w.ask)
	switch {
	case !ok && full:
		return "busy", fault.ErrBusy
	case !ok && w.m.Asleep(time.Now()):
		return "failed", fault.ErrAsleep
	case !ok:
		return "failed", fault.ErrNoEndpoint
	}
	most := float64(where.Most(spot.Endpoint, &w.ask))
	if most > 0 && float64(spot.Predicted) >= enough*most {
		return "there", nil
	}
	limit := where.All[spot.Endpoint].Warming
	if err := limit.Enter(ctx); err != nil {
		return "busy", err
	}
	defer limit.Leave()
	if err := limit.Wait(ctx, w.ask.Tokens, where.KV.WarmTokensPerS); err != nil {
		return "busy", err
	}
	if w.m.Queued() > 0 || where.Crowded(spot.Endpoint, time.Now()) {
		return "busy", fault.ErrBusy
	}
	name := w.m.Name + ":" + resolve.Pointer(w.snap) + ":" + where.All[spot.Endpoint].Endpoint.Name
	estimate := time.Duration(2 * float64(w.ask.Tokens) * where.Stats(spot.Endpoint).Prefill * float64(time.Second))
	if !w.Boards.Claim(ctx, name, estimate+time.Second) {
		return "there", nil // another replica is reading it
	}
	switch err := x.send(ctx, w); {
	case errors.Is(err, fault.ErrBusy):
		return "busy", err
	case err != nil:
		return "failed", err
	}
	return "read", nil
}

// send sends the request.
func (x *Reader) send(ctx context.Context, w *warmup) error {
	where := w.m.Servers
	t, ok := where.Place(time.Now(), &w.ask)
	if !ok {
		return fault.ErrNoEndpoint
	}
	e := &where.All[t.Endpoint]
	used := affinity.Usage{Cached: -1, Failed: true}
	defer func() { t.End(time.Now(), used) }()
	body, err := w.body(e)
	if err != nil {
		return err
	}
	lease, ok := e.Endpoint.Enter()
	if !ok {
		return fault.ErrBusy
	}
	defer lease.Close()
	u, err := upstream.Do(ctx, x.transport, &upstream.Call{
		Headers: http.Header{}, ID: "warm_" + rand.Text(), API: openai.Chat,
		Path: "chat/completions", Body: rewrite.Whole(body),
	}, w.m, lease)
	if err != nil {
		return err
	}
	defer u.Close()
	whole, err := u.ReadWhole()
	if err != nil {
		return err
	}
	if err := w.refused(u, whole); err != nil {
		return err
	}
	t.First(time.Now())
	told := response.Tally{API: openai.Chat}
	told.Body(nil, whole)
	used = placement.UsageOf(&told.Usage)
	u.Endpoint.Succeeded()
	return nil
}

// refused returns the error of a response that shows that the context was not read; nil for any
// other.
func (w *warmup) refused(u *upstream.Response, whole []byte) error {
	switch {
	case u.Useless():
		return &fault.UnusableError{Problem: "unusable body"}
	case u.Good():
		return nil
	case u.Refused():
		return fault.ErrBusy // upstream.Do has informed the endpoint
	case u.Status < http.StatusBadRequest:
		return &fault.UnusableError{Problem: "status " + strconv.Itoa(u.Status)}
	}
	out := &fault.WarmRefusedError{Model: w.m.Name, Status: u.Status}
	if !u.JSON() || !u.Plain() || out.Secret() {
		return out
	}
	said := upstream.ReadRefusal(whole)
	if out.Message = said.Short(); u.Status == http.StatusBadRequest && said.TooLong() {
		return &fault.TooLongError{Param: "models", Message: "model " + strconv.Quote(w.m.Name) + ": " + out.Message}
	}
	return out
}

// body returns a request that begins with the context, like those that will name it, and is
// otherwise minimal: templates require a user message, and vLLM requires at least one response
// token.
func (w *warmup) body(e *backend.Server) ([]byte, error) {
	b := append([]byte(`{"model":`), strconv.AppendQuote(nil, w.m.ServedAs)...)
	b = append(b, `,"messages":[{"role":"user","content":"."}],"max_tokens":1,"stream":false,"temperature":0`...)
	if e.Salted.Load() {
		b = strconv.AppendQuote(append(b, `,"cache_salt":`...), w.salt)
	}
	out, err := prefix.Compile(prefix.Request{
		API: openai.Chat, Body: append(b, '}'), Contexts: []prefix.Context{{Kind: w.snap.Kind, Fragments: w.snap.Fragments}}, Role: w.m.ContextRole,
	})
	if err != nil {
		return nil, fmt.Errorf("put context into a request: %w", err)
	}
	return out.Bytes(), nil
}
