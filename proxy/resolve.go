package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/cache"
	tiers "signalbox/memory/page"
	"signalbox/memory/prefix"
	"signalbox/proxy/contexts"
	"signalbox/proxy/fault"
)

// UseMemory makes m the store of contexts. Call it once, before the first request; without it
// requests that name contexts are refused.
func (p *Proxy) UseMemory(m *memory.Store) { p.memory = m }

// ownerOf is whose contexts a request of a caller may use in a session, empty for none.
func ownerOf(who Principal, session string) memory.Owner {
	return memory.Owner{Tenant: who.Tenant, Session: session, Subject: who.Name}
}

// sessionOf is the session that a request names, in its body or else in a header; empty without
// one.
func sessionOf(req *openai.Request, h http.Header) string {
	return cmp.Or(req.Extras.Session, h.Get("X-Signalbox-Session"))
}

// The fields that name contexts, as errors call them.
const (
	contextField     = "signalbox.context"
	contextHeader    = "x-signalbox-context"
	saveContextField = "signalbox.save_context"
)

// What the header for degraded answers says of contexts.
const (
	lackContext      = "context"       // one that is not required was left out
	lackSessionFacts = "session_facts" // they could not be reached
	lackSaved        = "save_context"  // the answer was not stored
)

// resolved is what the pointers of one request lead to. The request owns it until release; nil
// stands for a request without contexts, without facts of its session and without a wish to be
// stored.
type resolved struct {
	store    *memory.Store
	owner    memory.Owner
	refs     []openai.ContextRef // of snaps
	snaps    []*memory.Snapshot  // in the order in which they stand in the prompt
	left     []string            // what the request goes without, in the words of the header
	verdicts contexts.Verdicts   // of all contexts together
	tokens   int                 // of all contexts; an estimate where no count was stored
	tier     tiers.Tier          // the farthest that bytes came from
	facts    []memory.Fact       // of the session
}

// release gives the snapshots back. Later calls do nothing.
func (r *resolved) release() {
	if r == nil {
		return
	}
	for _, s := range r.snaps {
		s.Release()
	}
}

// named reports whether there are contexts to put into the prompt.
func (r *resolved) named() bool { return r != nil && len(r.snaps) > 0 }

// resolve finds what the pointers of a request lead to. The caller releases it when the answer has
// ended.
func (p *Proxy) resolve(ctx context.Context, who Principal, req *openai.Request, h http.Header) (*resolved, error) {
	session := sessionOf(req, h)
	if !req.Extras.Present && session == "" && len(h["X-Signalbox-Context"]) == 0 {
		return nil, nil //nolint:nilnil // a request without any
	}
	refs, err := contextsOf(req, h)
	if err != nil {
		return nil, err
	}
	if err := p.resolvable(req, refs); err != nil {
		return nil, err
	}
	if p.memory == nil || len(refs) == 0 && session == "" && req.Extras.SaveContext == nil {
		return nil, nil //nolint:nilnil // a request without any
	}
	ctx, span := p.tel.Tracer.Start(ctx, "resolve")
	defer span.End()
	r := &resolved{store: p.memory, owner: ownerOf(who, session), tier: tiers.Hot}
	if err := r.fetch(ctx, p.memory, refs); err != nil {
		r.release()
		return nil, err
	}
	if session != "" {
		if r.facts, err = p.memory.SessionFacts(ctx, r.owner); err != nil {
			if ctx.Err() != nil {
				r.release()
				return nil, fault.ErrClientGone
			}
			r.left = append(r.left, lackSessionFacts)
		}
	}
	if r.named() {
		r.sum()
		p.tel.Metrics.ContextRequest(r.tier.String())
	}
	return r, nil
}

// contextsOf reads the pointers of a request. They stand in the body or in a header, and where in
// both, they are the same.
func contextsOf(req *openai.Request, h http.Header) ([]openai.ContextRef, error) {
	refs := req.Extras.Contexts
	line := h.Get("X-Signalbox-Context")
	if line == "" {
		return refs, nil
	}
	var named []openai.ContextRef
	for s := range strings.SplitSeq(line, ",") {
		ref, ok := openai.ParseContextRef(strings.TrimSpace(s))
		if !ok {
			return nil, fault.InvalidField(contextHeader, "the header "+contextHeader+" must list ids of contexts, as ctx_a@3,ctx_b")
		}
		named = append(named, ref)
	}
	most := openai.DefaultLimits().MaxContexts
	switch {
	case len(named) > most:
		return nil, fault.InvalidField(contextHeader, fmt.Sprintf("the header %s names more than %d contexts", contextHeader, most))
	case len(refs) == 0:
		return named, nil
	case !slices.EqualFunc(refs, named, func(a, b openai.ContextRef) bool { return a.ID == b.ID && a.Version == b.Version }):
		return nil, fault.InvalidField(contextField, contextField+" and the header "+contextHeader+" name different contexts: send one of them")
	}
	return refs, nil
}

// resolvable refuses what this proxy, or this kind of request, cannot do. Leaving it out without a
// word would let an answer pass for one that knew its context.
func (p *Proxy) resolvable(req *openai.Request, refs []openai.ContextRef) error {
	var asked string
	switch {
	case len(refs) > 0:
		asked = contextField
	case req.Extras.SaveContext != nil:
		asked = saveContextField
	default:
		return nil
	}
	switch {
	case p.memory == nil:
		return fault.InvalidField(asked, asked+" needs contexts, which are turned off here")
	case req.API == openai.Other:
		return fault.InvalidField(asked, asked+" is for requests with a prompt, and this endpoint's have none")
	case req.Extras.SaveContext != nil:
		return savable(req)
	}
	return nil
}

// fetch takes snapshots of the contexts, several of them at once, in the order of refs.
func (r *resolved) fetch(ctx context.Context, store *memory.Store, refs []openai.ContextRef) error {
	snaps, errs := make([]*memory.Snapshot, len(refs)), make([]error, len(refs))
	one := func(i int) {
		ref := memory.Ref{ID: refs[i].ID, Version: refs[i].Version, Lease: refs[i].Lease}
		snaps[i], errs[i] = store.Resolve(ctx, r.owner, ref)
	}
	if len(refs) == 1 {
		one(0)
	} else {
		var wg sync.WaitGroup
		for i := range refs {
			wg.Go(func() {
				errs[i] = fault.ErrPanicked
				defer func() { _ = recover() }() // the error says it; a panic here would end the process
				one(i)
			})
		}
		wg.Wait()
	}
	var failed error
	for i, err := range errs {
		switch {
		case err == nil:
			r.snaps, r.refs = append(r.snaps, snaps[i]), append(r.refs, refs[i])
		case ctx.Err() != nil:
			failed = fault.ErrClientGone
		case !refs[i].Required && lacking(err):
			if !slices.Contains(r.left, lackContext) {
				r.left = append(r.left, lackContext)
			}
		case failed == nil:
			failed = &fault.ContextError{ContextID: refs[i].ID, Param: contextField, Err: err}
		}
	}
	return failed
}

// lacking reports whether an error says that a context is not there, and not that something is
// wrong.
func lacking(err error) bool {
	var away *memory.UnavailableError
	return errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrExpired) || errors.As(err, &away)
}

// bytesPerToken is the estimate where no count was stored; see estimateTokens.
const bytesPerToken = 4

// sum works out what is true of all contexts together.
func (r *resolved) sum() {
	for i, s := range r.snaps {
		r.tier = min(r.tier, s.Tier)
		n := 0
		for _, counted := range s.Derived.Tokens {
			n = max(n, counted)
		}
		r.tokens += cmp.Or(n, int(s.Bytes)/bytesPerToken+bytesPerToken)
		v, err := contexts.ParseVerdicts(s.Derived.Verdicts)
		if err != nil {
			v = contexts.Verdicts{} // what cannot be read is unknown
		}
		if i == 0 {
			r.verdicts = v
		} else {
			r.verdicts = r.verdicts.Merge(v)
		}
	}
}

// describe writes the headers that say which contexts were used, and from where.
func (r *resolved) describe(h http.Header) {
	if !r.named() {
		return
	}
	h["X-Signalbox-Context-Tier"] = []string{r.tier.String()}
	h["X-Signalbox-Context-Version"] = []string{strings.Join(r.pointers(), ",")}
}

// pointers are the versions that were used, each as ID@VERSION.
func (r *resolved) pointers() []string {
	if !r.named() {
		return nil
	}
	out := make([]string, len(r.snaps))
	for i, s := range r.snaps {
		out[i] = pointer(s)
	}
	return out
}

func pointer(s *memory.Snapshot) string { return s.ID + "@" + strconv.Itoa(s.Version) }

// prefix is the contexts as the prefix compiler takes them.
func (r *resolved) prefix() []prefix.Context {
	out := make([]prefix.Context, len(r.snaps))
	for i, s := range r.snaps {
		out[i] = prefix.Context{Kind: s.Kind, Fragments: s.Fragments}
	}
	return out
}

// hasFacts reports whether facts are pinned to the contexts or to the session.
func (r *resolved) hasFacts() bool {
	return r != nil && (len(r.facts) > 0 || slices.ContainsFunc(r.snaps, func(s *memory.Snapshot) bool { return len(s.Facts) > 0 }))
}

// lacks reports whether the answer is one to less than the request names.
func (r *resolved) lacks() bool { return r != nil && len(r.left) > 0 }

// mark adds what is stored for the request to what its answer depends on.
func (r *resolved) mark(s *cache.Scope) {
	if r == nil {
		return
	}
	for _, snap := range r.snaps {
		s.Contexts = append(s.Contexts, cache.Context{ID: snap.ID, Version: snap.Version, Digest: snap.Digest})
	}
	for i := range r.facts {
		f := &r.facts[i]
		s.Facts = append(s.Facts, f.ID, f.Text, f.Source, f.Kind)
	}
}
