package contexts

import (
	"context"
	"net/http"
	"slices"

	"signalbox/internal/openai"
	"signalbox/memory"
)

// Warmer makes model servers read a context before it is needed. It is safe for concurrent use.
type Warmer interface {
	// Warm sends the version that ref names to the endpoints that requests with it would go to, for
	// each named model, or for every configured model if none is named. With wait it returns after
	// they have read it, otherwise as soon as they were asked. Errors are those of
	// memory.Store.Resolve and those in the proxy's error table.
	Warm(ctx context.Context, owner memory.Owner, ref memory.Ref, models []string, wait bool) error
}

// The bases of a Residence.
const (
	BasisUsage     = "usage"     // a response reported it
	BasisPredicted = "predicted" // a request was sent there
)

// Residence is how much of a context a model server should have in its cache. It is a hint.
type Residence struct {
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
	Tokens   int    `json:"tokens"`
	Basis    string `json:"basis"`
	Age      int64  `json:"age_s"` // seconds since it was observed or predicted
}

// Resident knows which model servers should have a context cached. It is safe for concurrent use.
type Resident interface {
	// Residency lists what servers should have cached of a version, for requests of its owner;
	// never nil.
	Residency(owner memory.Owner, c *memory.Context) []Residence
}

// Options configures a Service.
type Options struct {
	// BestEffort is the default for contexts created while the remote store is unreachable: they
	// are kept in memory.
	BestEffort bool
	// Models returns the names that requests may use. It is called for each request that names
	// models.
	Models func() []string
	// Warmer may be nil; then requests to warm are refused.
	Warmer Warmer
	// Resident may be nil; then residency is unknown.
	Resident Resident
}

// Service serves requests about contexts.
type Service struct {
	store *memory.Store
	o     Options
}

// New returns a Service over a store.
func New(store *memory.Store, o Options) *Service {
	if o.Models == nil {
		o.Models = func() []string { return nil }
	}
	return &Service{store: store, o: o}
}

// Request is what a Service needs to know about an admitted request.
type Request struct {
	Owner    memory.Owner
	May      func(model string) bool // whether the caller may use a model; nil for all
	Verdicts bool                    // the caller may see the safety verdicts of texts
	ID       string                  // context or session id in the path, unescaped; empty in a list
	Lease    string                  // in the path, or in the query parameter lease
	Header   http.Header             // read-only
	After    string                  // query parameters of a list
	Limit    string
	Body     []byte
}

// Endpoint is one method and path of the API. {id} and {lease} stand for one segment of the path.
type Endpoint struct {
	Method, Path string
	Body         bool // has a request body
	serve        handler
}

type handler func(s *Service, ctx context.Context, w http.ResponseWriter, r *Request) error

// of passes on the context that the path names.
func of(serve func(s *Service, ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error) handler {
	return func(s *Service, ctx context.Context, w http.ResponseWriter, r *Request) error {
		ref, ok := openai.ParseContextRef(r.ID)
		if !ok {
			return memory.ErrNotFound
		}
		return serve(s, ctx, w, r, memory.Ref{ID: ref.ID, Version: ref.Version, Lease: r.Lease})
	}
}

// Serve serves a request. If it returns an error, it has written no response, but has set the
// headers that belong to the error.
func (e *Endpoint) Serve(ctx context.Context, s *Service, w http.ResponseWriter, r *Request) error {
	return e.serve(s, ctx, w, r)
}

// Endpoints lists the endpoints of the API.
func Endpoints() []Endpoint {
	const (
		all, one, session = "/v1/contexts", "/v1/contexts/{id}", "/v1/sessions/{id}/facts"
	)
	return []Endpoint{
		{http.MethodPost, all, true, (*Service).create},
		{http.MethodGet, all, false, (*Service).list},
		{http.MethodGet, one, false, of((*Service).get)},
		{http.MethodPatch, one, true, of((*Service).patch)},
		{http.MethodDelete, one, false, of((*Service).remove)},
		{http.MethodGet, one + "/content", false, of((*Service).content)},
		{http.MethodPost, one + "/wake", false, of((*Service).wake)},
		{http.MethodPost, one + "/page_out", true, of((*Service).pageOut)},
		{http.MethodPost, one + "/warm", true, of((*Service).warm)},
		{http.MethodPost, one + "/leases", true, of((*Service).lease)},
		{http.MethodDelete, one + "/leases/{lease}", false, of((*Service).unlease)},
		{http.MethodPut, one + "/facts", true, of((*Service).setFacts)},
		{http.MethodGet, one + "/facts", false, of((*Service).facts)},
		{http.MethodDelete, one + "/facts", false, of((*Service).dropFacts)},
		{http.MethodPut, session, true, (*Service).setSessionFacts},
		{http.MethodGet, session, false, (*Service).sessionFacts},
		{http.MethodDelete, session, false, (*Service).dropSessionFacts},
	}
}

// checkModels refuses names that no model has, or that the caller may not use.
func (s *Service) checkModels(r *Request, names []string) error {
	if len(names) == 0 {
		return nil
	}
	known := s.o.Models()
	for i, name := range names {
		if !slices.Contains(known, name) || r.May != nil && !r.May(name) {
			return unknownModel(i, name)
		}
	}
	return nil
}
