package contexts

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"signalbox/memory"
)

// object is a context as clients see it. Times are Unix seconds.
type object struct {
	Object         string         `json:"object"`
	ID             string         `json:"id"`
	Name           string         `json:"name,omitzero"`
	Version        int            `json:"version"`
	LatestVersion  int            `json:"latest_version"`
	ETag           string         `json:"etag"` // of the version's content
	Kind           string         `json:"kind"` // text or messages
	Bytes          int64          `json:"bytes"`
	Tokens         map[string]int `json:"tokens"`          // counted by a server of the model
	TokensEstimate int64          `json:"tokens_estimate"` // for all other models
	Tier           string         `json:"tier"`            // hot, l2 or l3
	Status         string         `json:"status"`
	Facts          *int           `json:"facts"`     // null if unknown without loading the context
	Residency      []Residence    `json:"residency"` // what model servers should have cached of it
	Verdicts       *Verdicts      `json:"verdicts,omitzero"`
	Leases         int            `json:"leases"`
	Pinned         bool           `json:"pinned"`
	Scope          string         `json:"scope"`
	TTL            string         `json:"ttl"`
	Fixed          bool           `json:"fixed"`
	CreatedAt      int64          `json:"created_at"` // of the version
	ExpiresAt      int64          `json:"expires_at"`
	Parent         string         `json:"parent,omitzero"` // ID@VERSION
	Durable        bool           `json:"durable"`
	// result of a requested warm-up: started, done or failed
	Warm string `json:"warm,omitzero"`
}

// bytesPerToken is the assumption of the estimate, the same as for prompts.
const bytesPerToken = 4

func (s *Service) describe(r *Request, c *memory.Context) *object {
	o := &object{
		Object: "context", ID: c.ID, Name: c.Name, Version: c.Version, LatestVersion: c.Latest, ETag: c.ETag, Kind: c.Kind.String(),
		Bytes: c.Bytes, Tokens: c.Tokens, TokensEstimate: c.Bytes / bytesPerToken, Tier: c.Tier.String(), Status: c.Status.String(),
		Leases: c.Leases, Pinned: c.Pinned, Scope: c.Scope.String(), TTL: spell(c.TTL), Fixed: c.Fixed,
		CreatedAt: c.Created.Unix(), ExpiresAt: c.Expires.Unix(), Parent: c.Parent, Durable: c.Durable,
	}
	if o.Residency = []Residence{}; s.o.Resident != nil {
		o.Residency = s.o.Resident.Residency(r.Owner, c)
	}
	if o.Tokens == nil {
		o.Tokens = map[string]int{}
	}
	if c.FactCount >= 0 {
		o.Facts = &c.FactCount
	}
	if r.Verdicts && c.Known {
		v, _ := ParseVerdicts(c.Verdicts) // unreadable verdicts are unknown
		o.Verdicts = &v
	}
	return o
}

// spell formats a duration without trailing zeros: 1h, not 1h0m0s.
func spell(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return send(w, status, b)
}

// send writes pieces of JSON as one body.
func send(w http.ResponseWriter, status int, pieces ...[]byte) error {
	return sendAs(w, status, "application/json", pieces...)
}

// sendAs writes pieces as one body of a media type.
func sendAs(w http.ResponseWriter, status int, kind string, pieces ...[]byte) error {
	n := 0
	for _, p := range pieces {
		n += len(p)
	}
	h := w.Header()
	h["Content-Type"] = []string{kind}
	h["Content-Length"] = []string{strconv.Itoa(n)}
	w.WriteHeader(status)
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return fmt.Errorf("write answer: %w", err)
		}
	}
	return nil
}

// show responds with a context.
func (s *Service) show(w http.ResponseWriter, r *Request, status int, c *memory.Context) error {
	return r.showAs(w, status, s.describe(r, c))
}

func (*Request) showAs(w http.ResponseWriter, status int, o *object) error {
	w.Header()["Etag"] = []string{strconv.Quote(o.ETag)}
	return answer(w, status, o)
}
