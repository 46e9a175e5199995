// Package resolve takes snapshots of the contexts that a request names, as far as the caller may
// read them, and releases them when the request has ended.
package resolve

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
	"signalbox/internal/telemetry"
	"signalbox/memory"
	"signalbox/memory/cache"
	tiers "signalbox/memory/page"
	"signalbox/memory/prefix"
	"signalbox/proxy/auth"
	"signalbox/proxy/contexts"
	"signalbox/proxy/fault"
)

// Resolver finds the stored contexts that requests name.
type Resolver struct {
	Store *memory.Store // nil if requests that name contexts are refused
	Tel   *telemetry.Telemetry
}

// Owner returns the owner of the contexts that a caller may use in a session, which is empty for
// none.
func Owner(who auth.Principal, session string) memory.Owner {
	return memory.Owner{Tenant: who.Tenant, Session: session, Subject: who.Name}
}

// Session returns the session named in a request's body or else in a header; empty if there is
// none. Resolve refuses a request that names two.
func Session(req *openai.Request, h http.Header) string {
	return cmp.Or(req.Extras.Session, h.Get(sessionKey))
}

// The fields that name contexts and sessions, as used in errors.
const (
	ContextField     = "signalbox.context"
	contextHeader    = "x-signalbox-context"
	sessionField     = "signalbox.session"
	sessionHeader    = "x-signalbox-session"
	saveContextField = "signalbox.save_context"
)

// sessionKey is sessionHeader in canonical form, which saves a conversion at every lookup.
const sessionKey = "X-Signalbox-Session"

// The values for contexts in the header for degraded responses.
const (
	lackContext      = "context"       // an optional context was left out
	lackSessionFacts = "session_facts" // they were unreachable
)

// Contexts is what the references in one request resolve to. The request owns it until Release. nil
// means that the request has no contexts, no facts in its session and does not ask to be stored.
type Contexts struct {
	Store    *memory.Store
	Owner    memory.Owner
	Refs     []openai.ContextRef // references of Snaps
	Snaps    []*memory.Snapshot  // in the order in which they occur in the prompt
	Left     []string            // what is missing, as values of the header for degraded responses
	Verdicts contexts.Verdicts   // of all contexts together
	Tokens   int                 // in all contexts; estimated where no count was stored
	tier     tiers.Tier          // slowest tier that data came from
	Facts    []memory.Fact       // of the session
}

// Release releases the snapshots. Further calls do nothing.
func (r *Contexts) Release() {
	if r == nil {
		return
	}
	for _, s := range r.Snaps {
		s.Release()
	}
}

// Named reports whether there are contexts to insert into the prompt.
func (r *Contexts) Named() bool { return r != nil && len(r.Snaps) > 0 }

// PromptTokens estimates the tokens of req's prompt with its contexts.
func (r *Contexts) PromptTokens(req *openai.Request) int {
	n := req.PromptTokens()
	if r.Named() {
		n += r.Tokens
	}
	return n
}

// Resolve resolves the references in a request. The caller releases the result when the response
// has ended.
func (p *Resolver) Resolve(ctx context.Context, who auth.Principal, req *openai.Request, h http.Header) (*Contexts, error) {
	session := Session(req, h)
	if named := h.Get(sessionKey); named != "" && named != session {
		return nil, openai.Invalid(sessionField,
			sessionField+" and the header "+sessionHeader+" name different sessions: send one of them")
	}
	if !req.Extras.Present && session == "" && len(h["X-Signalbox-Context"]) == 0 {
		return nil, nil //nolint:nilnil // a request without contexts
	}
	refs, err := contextsOf(req, h)
	if err != nil {
		return nil, err
	}
	if err := p.resolvable(req, refs); err != nil {
		return nil, err
	}
	if p.Store == nil || len(refs) == 0 && session == "" && req.Extras.SaveContext == nil {
		return nil, nil //nolint:nilnil // a request without contexts
	}
	ctx, span := p.Tel.Tracer.Start(ctx, "resolve")
	defer span.End()
	r := &Contexts{Store: p.Store, Owner: Owner(who, session), tier: tiers.Hot}
	if err := r.fetch(ctx, p.Store, refs); err != nil {
		r.Release()
		return nil, err
	}
	if session != "" {
		if r.Facts, err = p.Store.SessionFacts(ctx, r.Owner); err != nil {
			if ctx.Err() != nil {
				r.Release()
				return nil, fault.ErrClientGone
			}
			r.Left = append(r.Left, lackSessionFacts)
		}
	}
	if r.Named() {
		r.sum()
		p.Tel.Metrics.ContextRequest(r.tier.String())
	}
	return r, nil
}

// Find returns the contexts of refs. param is the request field that names them.
func (p *Resolver) Find(
	ctx context.Context, owner memory.Owner, refs []openai.ContextRef, param string,
) (*Contexts, error) {
	if p.Store == nil {
		return nil, openai.Invalid(param, param+" requires contexts, which are disabled on this server")
	}
	r := &Contexts{Store: p.Store, Owner: owner}
	if err := r.fetch(ctx, p.Store, refs); err != nil {
		if stored, ok := errors.AsType[*fault.ContextError](err); ok {
			stored.Param = param
		}
		r.Release()
		return nil, err
	}
	return r, nil
}

// contextsOf returns the references in a request's body or header. If both are present, they must
// be equal.
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
			return nil, openai.Invalid(contextHeader,
				"the header "+contextHeader+" must be a comma-separated list of context ids, such as ctx_a@3,ctx_b")
		}
		named = append(named, ref)
	}
	most := openai.DefaultLimits().MaxContexts
	switch {
	case len(named) > most:
		return nil, openai.Invalid(contextHeader,
			fmt.Sprintf("the header %s names more than %d contexts", contextHeader, most))
	case len(refs) == 0:
		return named, nil
	case !slices.EqualFunc(refs, named, func(a, b openai.ContextRef) bool { return a.ID == b.ID && a.Version == b.Version }):
		return nil, openai.Invalid(ContextField,
			ContextField+" and the header "+contextHeader+" name different contexts: send one of them")
	}
	return refs, nil
}

// resolvable refuses what this proxy, or this kind of request, cannot do. Silently omitting a
// context would make the response look like one that used it.
func (p *Resolver) resolvable(req *openai.Request, refs []openai.ContextRef) error {
	var asked string
	switch {
	case len(refs) > 0:
		asked = ContextField
	case req.Extras.SaveContext != nil:
		asked = saveContextField
	default:
		return nil
	}
	switch {
	case p.Store == nil:
		return openai.Invalid(asked, asked+" requires contexts, which are disabled on this server")
	case req.API == openai.Other:
		return openai.Invalid(asked, asked+" is only valid for requests with a prompt, and requests to this endpoint have none")
	case req.Extras.SaveContext != nil:
		return savable(p.Store, req)
	}
	return nil
}

// fetch takes snapshots of the contexts, several at a time, in the order of refs.
func (r *Contexts) fetch(ctx context.Context, store *memory.Store, refs []openai.ContextRef) error {
	snaps, errs := make([]*memory.Snapshot, len(refs)), make([]error, len(refs))
	one := func(i int) {
		ref := memory.Ref{ID: refs[i].ID, Version: refs[i].Version, Lease: refs[i].Lease}
		snaps[i], errs[i] = store.Resolve(ctx, r.Owner, ref)
	}
	if len(refs) == 1 {
		one(0)
	} else {
		var wg sync.WaitGroup
		for i := range refs {
			wg.Go(func() {
				errs[i] = fault.ErrPanicked
				// reported by the error; a panic here would end the process
				defer func() { _ = recover() }()
				one(i)
			})
		}
		wg.Wait()
	}
	var failed error
	for i, err := range errs {
		switch {
		case err == nil:
			r.Snaps, r.Refs = append(r.Snaps, snaps[i]), append(r.Refs, refs[i])
		case ctx.Err() != nil:
			failed = fault.ErrClientGone
		case !refs[i].Required && lacking(err):
			if !slices.Contains(r.Left, lackContext) {
				r.Left = append(r.Left, lackContext)
			}
		case failed == nil:
			failed = &fault.ContextError{ContextID: refs[i].ID, Param: ContextField, Err: err}
		}
	}
	return failed
}

// lacking reports whether an error means that a context does not exist, as opposed to a failure.
func lacking(err error) bool {
	var away *memory.UnavailableError
	return errors.Is(err, memory.ErrNotFound) || errors.Is(err, memory.ErrExpired) || errors.As(err, &away)
}

// sum computes the values for all contexts together.
func (r *Contexts) sum() {
	for i, s := range r.Snaps {
		r.tier = min(r.tier, s.Tier)
		n := 0
		for _, counted := range s.Derived.Tokens {
			n = max(n, counted)
		}
		r.Tokens += cmp.Or(n, int(s.Bytes)/openai.BytesPerToken+openai.BytesPerToken)
		v, err := contexts.ParseVerdicts(s.Derived.Verdicts)
		if err != nil {
			v = contexts.Verdicts{} // unreadable verdicts are unknown
		}
		if i == 0 {
			r.Verdicts = v
		} else {
			r.Verdicts = r.Verdicts.Merge(v)
		}
	}
}

// Describe writes the headers that say which contexts were used and where they came from.
func (r *Contexts) Describe(h http.Header) {
	if !r.Named() {
		return
	}
	h["X-Signalbox-Context-Tier"] = []string{r.tier.String()}
	h["X-Signalbox-Context-Version"] = []string{strings.Join(r.Pointers(), ",")}
}

// Pointers returns the versions used, each as ID@VERSION.
func (r *Contexts) Pointers() []string {
	if !r.Named() {
		return nil
	}
	out := make([]string, len(r.Snaps))
	for i, s := range r.Snaps {
		out[i] = Pointer(s)
	}
	return out
}

// Pointer identifies one version of a context, such as ID@3.
func Pointer(s *memory.Snapshot) string { return s.ID + "@" + strconv.Itoa(s.Version) }

// Prefix returns the contexts in the form of the prefix compiler.
func (r *Contexts) Prefix() []prefix.Context {
	out := make([]prefix.Context, len(r.Snaps))
	for i, s := range r.Snaps {
		out[i] = prefix.Context{Kind: s.Kind, Fragments: s.Fragments}
	}
	return out
}

// HasFacts reports whether facts are pinned to the contexts or the session.
func (r *Contexts) HasFacts() bool {
	return r != nil && (len(r.Facts) > 0 || slices.ContainsFunc(r.Snaps, func(s *memory.Snapshot) bool { return len(s.Facts) > 0 }))
}

// Incomplete reports whether a context that the request names is missing in the prompt.
func (r *Contexts) Incomplete() bool { return r != nil && len(r.Left) > 0 }

// AddTo adds the stored data of the request to what its response depends on.
func (r *Contexts) AddTo(s *cache.Scope) {
	if r == nil {
		return
	}
	for _, snap := range r.Snaps {
		s.Contexts = append(s.Contexts, cache.Context{ID: snap.ID, Version: snap.Version, Digest: snap.Digest})
	}
	for i := range r.Facts {
		f := &r.Facts[i]
		s.Facts = append(s.Facts, f.ID, f.Text, f.Source, f.Kind)
	}
}

// Skeleton returns a short form of the contexts; empty if none has one.
func (r *Contexts) Skeleton() string {
	if !r.Named() {
		return ""
	}
	var b strings.Builder
	for _, s := range r.Snaps {
		if s.Derived.Skeleton != "" && b.Len() < maxSkeleton {
			b.WriteString(s.Derived.Skeleton)
			b.WriteByte('\n')
		}
	}
	return head(strings.TrimSpace(b.String()), maxSkeleton)
}

// maxSkeleton limits the text of contexts that is added to the question when topics are classified,
// in bytes. It should distinguish a question about a contract from one about a proof without
// outweighing the question.
const maxSkeleton = 1 << 10

// Scope returns the narrowest scope of the contexts. A session's context and a key's context have
// no common scope, which is an error.
func (r *Contexts) Scope(ctx context.Context) (memory.Scope, error) {
	narrow := memory.TenantScope
	for i, s := range r.Snaps {
		c, err := r.Store.Get(ctx, r.Owner, memory.Ref{ID: s.ID, Version: s.Version, Lease: r.Refs[i].Lease})
		switch {
		case err != nil:
			return narrow, fmt.Errorf("look up scope: %w", err)
		case c.Scope == memory.TenantScope || c.Scope == narrow:
		case narrow == memory.TenantScope:
			narrow = c.Scope
		default:
			return narrow, errors.New("one context is kept to a session and another to a key")
		}
	}
	return narrow, nil
}

// head returns the beginning of s: whole characters, at most n bytes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}
