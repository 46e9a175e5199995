package contexts

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/page"
)

// createBody is the body of POST /v1/contexts.
type createBody struct {
	Name       string         `json:"name"`
	Content    *string        `json:"content"`
	Messages   jsontext.Value `json:"messages"`
	Facts      factList       `json:"facts"`
	Models     []string       `json:"models"`
	TTL        span           `json:"ttl"`
	Fixed      bool           `json:"fixed"`
	Pin        bool           `json:"pin"`
	Scope      string         `json:"scope"`
	Parent     string         `json:"parent"`
	Hints      *hintsBody     `json:"hints"`
	Warm       string         `json:"warm"`
	Durability string         `json:"durability"`
}

const createForm = "an object with content, a text, or messages, a list of chat messages, and optionally " +
	"name, facts, models, ttl, fixed, pin, scope, parent, hints, warm and durability"

// The values of Durability and of warm.
const (
	strict, bestEffort            = "strict", "best_effort"
	warmNone, warmHome, warmWait  = "none", "home", "wait"
	warmDone, warmBegun, warmLost = "done", "started", "failed"
)

// create serves POST /v1/contexts.
func (s *Service) create(ctx context.Context, w http.ResponseWriter, r *Request) error {
	var in createBody
	if err := readBody(r.Body, &in, createForm); err != nil {
		return err
	}
	d, err := s.draft(r, &in)
	if err != nil {
		return err
	}
	c, err := s.store.Create(ctx, r.Owner, d)
	if err != nil {
		return notMade(err, &d)
	}
	o := s.describe(r, &c)
	if in.Warm == warmHome || in.Warm == warmWait {
		o.Warm = s.warmed(ctx, r.Owner, memory.Ref{ID: c.ID, Version: c.Version}, in.Models, in.Warm == warmWait)
	}
	return r.showAs(w, http.StatusOK, o)
}

// warmed warms a newly created context and returns the result. The context exists in any case.
func (s *Service) warmed(ctx context.Context, owner memory.Owner, ref memory.Ref, models []string, wait bool) string {
	switch err := s.o.Warmer.Warm(ctx, owner, ref, models, wait); {
	case err != nil:
		return warmLost
	case wait:
		return warmDone
	}
	return warmBegun
}

func (s *Service) draft(r *Request, in *createBody) (memory.Draft, error) {
	d := memory.Draft{
		Name: in.Name, Facts: in.Facts, TTL: time.Duration(in.TTL), Fixed: in.Fixed, Pinned: in.Pin, Models: in.Models,
		BestEffort: in.Durability == bestEffort || in.Durability == "" && s.o.BestEffort,
	}
	if in.Content != nil {
		d.Content.Text = *in.Content
	}
	d.Content.Messages = given(in.Messages)
	if err := wordOf("durability", in.Durability, strict, bestEffort); err != nil {
		return d, err
	}
	if err := wordOf("warm", in.Warm, warmNone, warmHome, warmWait); err != nil {
		return d, err
	}
	if err := wordOf("scope", in.Scope, "tenant", "session", "private"); err != nil {
		return d, err
	}
	d.Scope, _ = memory.ParseScope(in.Scope)
	if in.Warm != "" && in.Warm != warmNone && s.o.Warmer == nil {
		return d, errNoWarmer("warm")
	}
	if in.Parent != "" {
		ref, ok := openai.ParseContextRef(in.Parent)
		if !ok {
			return d, openai.Invalid("parent", "parent must be a context id, such as ctx_a or ctx_a@3")
		}
		d.Parent = memory.Ref{ID: ref.ID, Version: ref.Version}
	}
	var err error
	if d.Hints, err = in.Hints.hints(); err != nil {
		return d, err
	}
	return d, s.checkModels(r, in.Models)
}

// errNoWarmer is the error for what requires placement by prefix.
func errNoWarmer(param string) error {
	return &openai.Error{
		Status: http.StatusNotImplemented, Type: openai.TypeInvalidRequest, Param: param, Code: "warm_not_supported",
		Message: "warming contexts is not supported on this server",
	}
}

// defaultLimit and mostLimit are the default and maximum page sizes of a list.
const (
	defaultLimit = 20
	mostLimit    = 100
)

// listObject is a page of a list.
type listObject struct {
	Object  string    `json:"object"`
	Data    []*object `json:"data"`
	FirstID *string   `json:"first_id"`
	LastID  *string   `json:"last_id"` // to continue after
	HasMore bool      `json:"has_more"`
}

// list serves GET /v1/contexts. Contexts that the caller may not use are skipped without a trace,
// so a page is full unless the list ends.
func (s *Service) list(ctx context.Context, w http.ResponseWriter, r *Request) error {
	limit := defaultLimit
	if r.Limit != "" {
		n, err := strconv.Atoi(r.Limit)
		if err != nil || n < 1 || n > mostLimit {
			return openai.Invalid("limit", "limit must be a number from 1 to 100")
		}
		limit = n
	}
	found, err := s.collect(ctx, r.Owner, r.After, limit+1)
	if err != nil {
		return err
	}
	out := listObject{Object: "list", Data: []*object{}, HasMore: len(found) > limit}
	for i := range found[:min(limit, len(found))] {
		out.Data = append(out.Data, s.describe(r, &found[i]))
	}
	if n := len(out.Data); n > 0 {
		out.FirstID, out.LastID = &out.Data[0].ID, &out.Data[n-1].ID
	}
	return answer(w, http.StatusOK, out)
}

// collect returns the first n contexts after an id that the owner may use.
func (s *Service) collect(ctx context.Context, owner memory.Owner, after string, n int) ([]memory.Context, error) {
	var found []memory.Context
	for len(found) < n {
		some, next, err := s.store.List(ctx, owner, after, mostLimit)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
		if next == "" {
			break
		}
		after = next
	}
	return found[:min(n, len(found))], nil
}

// get serves GET /v1/contexts/{id}.
func (s *Service) get(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	c, err := s.store.Get(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	return s.show(w, r, http.StatusOK, &c)
}

// patchBody is the body of PATCH /v1/contexts/{id}.
type patchBody struct {
	Name    *string     `json:"name"`
	TTL     span        `json:"ttl"`
	Fixed   *bool       `json:"fixed"`
	Pin     *bool       `json:"pin"`
	Hints   *hintsBody  `json:"hints"`
	Append  *appendBody `json:"append"`
	Version int         `json:"version"`
}

type appendBody struct {
	Content  *string        `json:"content"`
	Messages jsontext.Value `json:"messages"`
}

const patchForm = "an object with name, ttl, fixed, pin or hints, or with append, and optionally version"

// patch serves PATCH /v1/contexts/{id}: it changes the metadata, or adds a version that extends the
// latest one.
func (s *Service) patch(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	var in patchBody
	if err := readBody(r.Body, &in, patchForm); err != nil {
		return err
	}
	if in.Version < 0 || in.Version > 0 && ref.Version > 0 && in.Version != ref.Version {
		return openai.Invalid("version",
			"version must be a positive number, and the same as in the path if the path names one")
	}
	ref.Version = max(ref.Version, in.Version)
	var err error
	if ref.Version, err = s.expected(ctx, r, ref); err != nil {
		return err
	}
	changes := in.Name != nil || in.TTL > 0 || in.Fixed != nil || in.Pin != nil || in.Hints != nil
	switch {
	case in.Append != nil && changes:
		return openai.Invalid("append", "append cannot be combined with other changes: send them in a separate request")
	case in.Append == nil && !changes:
		return openai.Invalid("", "the body must be "+patchForm)
	}
	var c memory.Context
	if in.Append != nil {
		content := memory.Content{Messages: given(in.Append.Messages)}
		if in.Append.Content != nil {
			content.Text = *in.Append.Content
		}
		c, err = s.store.Append(ctx, r.Owner, ref, content)
	} else {
		var p memory.Patch
		if p, err = in.patch(); err != nil {
			return err
		}
		c, err = s.store.Patch(ctx, r.Owner, ref, p)
	}
	if err != nil {
		return under("append", in.Append != nil, err)
	}
	return s.show(w, r, http.StatusOK, &c)
}

func (in *patchBody) patch() (memory.Patch, error) {
	p := memory.Patch{Name: in.Name, Fixed: in.Fixed, Pinned: in.Pin}
	if in.TTL > 0 {
		ttl := time.Duration(in.TTL)
		p.TTL = &ttl
	}
	if in.Hints != nil {
		h, err := in.Hints.hints()
		if err != nil {
			return p, err
		}
		p.Hints = &h
	}
	return p, nil
}

// expected returns the version that a change applies to: the one in the path or body, or the one
// with the content in If-Match; 0 for any.
func (s *Service) expected(ctx context.Context, r *Request, ref memory.Ref) (int, error) {
	match := strings.TrimSpace(r.Header.Get("If-Match"))
	if match == "" || match == "*" {
		return ref.Version, nil
	}
	c, err := s.store.Get(ctx, r.Owner, memory.Ref{ID: ref.ID})
	if err != nil {
		return 0, err
	}
	for tag := range strings.SplitSeq(match, ",") {
		if strings.Trim(strings.TrimSpace(tag), `"`) == c.ETag && (ref.Version == 0 || ref.Version == c.Version) {
			return c.Version, nil
		}
	}
	return 0, openai.Refusal(http.StatusConflict, "context_version_conflict", "If-Match",
		"If-Match does not match the current content; the context is at version "+strconv.Itoa(c.Version))
}

// remove serves DELETE /v1/contexts/{id}.
func (s *Service) remove(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	if ref.Version != 0 {
		return openai.Invalid("", "a context is deleted with all its versions: omit the version")
	}
	if err := s.store.Delete(ctx, r.Owner, ref); err != nil {
		return err
	}
	return answer(w, http.StatusOK, deleted{ID: ref.ID, Object: "context", Deleted: true})
}

// deleted is the response to a deletion.
type deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// wake serves POST /v1/contexts/{id}/wake. Loading the context has begun when the response is sent.
func (s *Service) wake(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	c, err := s.store.Wake(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	if s.o.Warmer != nil {
		ref.Version = c.Version
		// optional: without it the first request computes the text
		_ = s.o.Warmer.Warm(ctx, r.Owner, ref, nil, false)
	}
	return s.show(w, r, http.StatusAccepted, &c)
}

// pageOut serves POST /v1/contexts/{id}/page_out.
func (s *Service) pageOut(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	var in struct {
		To string `json:"to"`
	}
	if err := readOptional(r.Body, &in, "empty, or an object with to, l2 or l3"); err != nil {
		return err
	}
	if err := wordOf("to", in.To, "l3", "l2"); err != nil {
		return err
	}
	to := page.L3
	if in.To == page.L2.String() {
		to = page.L2
	}
	c, err := s.store.PageOut(ctx, r.Owner, ref, to)
	if in.To == "" && errors.Is(err, memory.ErrNoRemote) { // page out as far as possible
		c, err = s.store.PageOut(ctx, r.Owner, ref, page.L2)
	}
	if err != nil {
		return err
	}
	return s.show(w, r, http.StatusOK, &c)
}

// readOptional is readBody for an optional body.
func readOptional(body []byte, into any, form string) error {
	if len(body) == 0 {
		return nil
	}
	return readBody(body, into, form)
}

// warm serves POST /v1/contexts/{id}/warm.
func (s *Service) warm(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	var in struct {
		Models []string `json:"models"`
		Wait   bool     `json:"wait"`
	}
	if err := readOptional(r.Body, &in, "empty, or an object with models, a list of names, and wait, true or false"); err != nil {
		return err
	}
	if err := s.checkModels(r, in.Models); err != nil {
		return err
	}
	c, err := s.store.Get(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	if s.o.Warmer == nil {
		return errNoWarmer("")
	}
	ref.Version = c.Version
	if err := s.o.Warmer.Warm(ctx, r.Owner, ref, in.Models, in.Wait); err != nil {
		return err
	}
	o := s.describe(r, &c)
	status := http.StatusAccepted
	if o.Warm = warmBegun; in.Wait {
		status, o.Warm = http.StatusOK, warmDone
	}
	return r.showAs(w, status, o)
}

// leaseObject is a lease as clients see it.
type leaseObject struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	Context   string `json:"context"`
	ExpiresAt int64  `json:"expires_at"`
}

// lease serves POST /v1/contexts/{id}/leases. The context remains until the lease ends, even if it
// is deleted.
func (s *Service) lease(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	var in struct {
		TTL span `json:"ttl"`
	}
	if err := readBody(r.Body, &in, `an object with ttl, a duration such as "10m"`); err != nil {
		return err
	}
	if in.TTL == 0 {
		return openai.Invalid("ttl", `ttl is required, as "10m"`)
	}
	l, err := s.store.Lease(ctx, r.Owner, ref, time.Duration(in.TTL))
	if err != nil {
		return renamed(err, "lease", "ttl")
	}
	return answer(w, http.StatusOK, leaseObject{"context.lease", l.ID, ref.ID, l.Until.Unix()})
}

// unlease serves DELETE /v1/contexts/{id}/leases/{lease}.
func (s *Service) unlease(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	if err := s.store.Unlease(ctx, r.Owner, ref); err != nil {
		return err
	}
	return answer(w, http.StatusOK, deleted{ID: ref.Lease, Object: "context.lease", Deleted: true})
}
