package contexts

import (
	"context"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
)

// factsObject is the facts of a context or of a session.
type factsObject struct {
	Object  string        `json:"object"`
	Context string        `json:"context,omitzero"`
	Version int           `json:"version,omitzero"`
	Session string        `json:"session,omitzero"`
	Facts   []memory.Fact `json:"facts"`
}

// factsBody is the body that sets facts.
type factsBody struct {
	Facts *factList `json:"facts"`
}

const factsForm = "an object with facts, a list of texts or of objects {id, text, source, kind}"

// setFacts serves PUT /v1/contexts/{id}/facts, for the latest version or the one in the path.
func (s *Service) setFacts(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	var in factsBody
	if err := readBody(r.Body, &in, factsForm); err != nil {
		return err
	}
	if in.Facts == nil {
		return openai.Invalid("facts", "facts is required; an empty list removes all facts")
	}
	c, err := s.store.SetFacts(ctx, r.Owner, ref, *in.Facts)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, contextFacts(&c, *in.Facts))
}

func contextFacts(c *memory.Context, facts []memory.Fact) factsObject {
	if facts == nil {
		facts = []memory.Fact{}
	}
	return factsObject{Object: "context.facts", Context: c.ID, Version: c.Version, Facts: facts}
}

// facts serves GET /v1/contexts/{id}/facts.
func (s *Service) facts(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	c, err := s.store.Get(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	ref.Version = c.Version
	facts, err := s.store.Facts(ctx, r.Owner, ref)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, contextFacts(&c, facts))
}

// dropFacts serves DELETE /v1/contexts/{id}/facts.
func (s *Service) dropFacts(ctx context.Context, w http.ResponseWriter, r *Request, ref memory.Ref) error {
	if _, err := s.store.SetFacts(ctx, r.Owner, ref, nil); err != nil {
		return err
	}
	return answer(w, http.StatusOK, deleted{ID: ref.ID, Object: "context.facts", Deleted: true})
}

// mostSession limits the name of a session, in bytes: what servers accept in a header.
const mostSession = 1 << 10

// inSession returns the owner within the session in the path.
func (r *Request) inSession() (memory.Owner, error) {
	if r.ID == "" || len(r.ID) > mostSession {
		return r.Owner, openai.Invalid("session", "the session name must have 1 to 1024 bytes")
	}
	o := r.Owner
	o.Session = r.ID
	return o, nil
}

// setSessionFacts serves PUT /v1/sessions/{id}/facts.
func (s *Service) setSessionFacts(ctx context.Context, w http.ResponseWriter, r *Request) error {
	owner, err := r.inSession()
	if err != nil {
		return err
	}
	var in struct {
		Facts *factList `json:"facts"`
		TTL   span      `json:"ttl"`
	}
	if err := readBody(r.Body, &in, factsForm+`, and optionally ttl, a duration such as "1h"`); err != nil {
		return err
	}
	if in.Facts == nil {
		return openai.Invalid("facts", "facts is required; an empty list removes all facts")
	}
	if err := s.store.SetSessionFacts(ctx, owner, *in.Facts, time.Duration(in.TTL)); err != nil {
		return err
	}
	return answer(w, http.StatusOK, factsObject{Object: "session.facts", Session: r.ID, Facts: *in.Facts})
}

// sessionFacts serves GET /v1/sessions/{id}/facts.
func (s *Service) sessionFacts(ctx context.Context, w http.ResponseWriter, r *Request) error {
	owner, err := r.inSession()
	if err != nil {
		return err
	}
	facts, err := s.store.SessionFacts(ctx, owner)
	if err != nil {
		return err
	}
	if facts == nil {
		facts = []memory.Fact{}
	}
	return answer(w, http.StatusOK, factsObject{Object: "session.facts", Session: r.ID, Facts: facts})
}

// dropSessionFacts serves DELETE /v1/sessions/{id}/facts.
func (s *Service) dropSessionFacts(ctx context.Context, w http.ResponseWriter, r *Request) error {
	owner, err := r.inSession()
	if err != nil {
		return err
	}
	if err := s.store.SetSessionFacts(ctx, owner, nil, 0); err != nil {
		return err
	}
	return answer(w, http.StatusOK, deleted{ID: r.ID, Object: "session.facts", Deleted: true})
}
