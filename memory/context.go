package memory

import (
	"encoding/json"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Owner is who asks. Names may be empty; an empty session or subject has no contexts of its own.
type Owner struct {
	Tenant  string
	Session string
	Subject string // the key or user within the tenant
}

// Scope is who else may use a context.
type Scope uint8

const (
	// TenantScope lets the whole tenant use it.
	TenantScope Scope = iota
	// SessionScope keeps it to the session.
	SessionScope
	// PrivateScope keeps it to the subject.
	PrivateScope
)

// String is the name of the scope in the API.
func (s Scope) String() string {
	switch s {
	case SessionScope:
		return "session"
	case PrivateScope:
		return "private"
	case TenantScope:
	}
	return "tenant"
}

// ParseScope reads a name of a scope; the empty one is that of the tenant.
func ParseScope(s string) (Scope, bool) {
	for _, scope := range []Scope{TenantScope, SessionScope, PrivateScope} {
		if s == scope.String() {
			return scope, true
		}
	}
	return TenantScope, s == ""
}

// Ref names a version of a context.
type Ref struct {
	ID      string
	Version int    // 0: the latest
	Lease   string // of Lease; lets a deleted context be used
}

// Fact is a statement that answers are checked against. The fields are those of openai.Fact.
type Fact struct {
	ID     string `json:"id,omitzero"`
	Text   string `json:"text"`
	Source string `json:"source,omitzero"`
	Kind   string `json:"kind,omitzero"` // number, date, name or statement
}

// Hints are what a client knows about the use of a context.
type Hints struct {
	NextUse  time.Duration // from now; 0: not known
	Priority int           // 0..9, higher stays nearer
}

// Content is a text or a run of messages; exactly one is set.
type Content struct {
	Text     string
	Messages []byte // a JSON list of chat messages
}

// Draft is a context to be created.
type Draft struct {
	Content
	Name       string
	Parent     Ref // the new context begins with the content of this one; zero: with nothing
	Facts      []Fact
	TTL        time.Duration // 0: the default of the store
	Fixed      bool          // use does not make it live longer
	Pinned     bool          // it stays in RAM, within the quota
	Scope      Scope
	Hints      Hints
	Models     []string // that Derive is told of
	BestEffort bool     // when the Remote cannot be reached, keep it in RAM until it can, instead of refusing
}

// Derived is what was worked out of a text.
type Derived struct {
	Revision string          `json:"revision,omitzero"` // of Options; set by the Store
	Tokens   map[string]int  `json:"tokens,omitzero"`   // count of tokens by model
	Verdicts json.RawMessage `json:"verdicts,omitzero"` // of safety; what they mean is the caller's business
	Skeleton string          `json:"skeleton,omitzero"` // the text in short, to classify requests that name the context
	Partial  bool            `json:"-"`                 // something is missing that may be there another time; it is derived anew then
}

// Context is what a client may know of a context.
type Context struct {
	ID        string
	Name      string
	Version   int
	Latest    int // version
	ETag      string
	Sum       blob.Sum // of the version's canonical bytes, as in Snapshot
	Kind      ledger.Kind
	Bytes     int64 // of text
	Tokens    map[string]int
	Tier      page.Tier
	Status    Status
	Leases    int
	Pinned    bool
	Scope     Scope
	Fixed     bool
	TTL       time.Duration
	Created   time.Time // of the version
	Expires   time.Time
	Parent    string // ID@VERSION
	FactCount int    // -1 when it is not known without paging in
	Durable   bool   // false: in RAM only, and lost with this process

	Known    bool            // Verdicts is what was derived; false when that is not known without paging in
	Verdicts json.RawMessage // as in Derived
}

// Status is the life of a context as agents see it.
type Status uint8

const (
	// Active contexts are in RAM and were used a moment ago.
	Active Status = iota
	// Idle ones are in RAM and have not been used for a while.
	Idle
	// PagedL2 ones are packed.
	PagedL2
	// PagedL3 ones are elsewhere.
	PagedL3
	// Waking ones are on their way back.
	Waking
)

// String is the name in the API.
func (s Status) String() string {
	names := [...]string{Active: "active", Idle: "idle", PagedL2: "paged_l2", PagedL3: "paged_l3", Waking: "waking"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Snapshot is one version of a context in use by a request. Nothing in it changes or goes away,
// whatever is done to the context, until Release. All of it is to be read only.
type Snapshot struct {
	ID        string
	Version   int
	Sum       blob.Sum // of the canonical bytes
	Kind      ledger.Kind
	Fragments [][]byte  // canonical bytes in order: of a text the inside of a JSON string, else JSON messages joined by commas
	Bytes     int64     // of text
	Tier      page.Tier // where the bytes were
	Derived   Derived
	Facts     []Fact
	Grounding any      // what Options.Ground made; nil when there is nothing to check against
	Digest    blob.Sum // of Verdicts, Tokens and Facts: equal ones decide alike

	held []page.Held
}

// Release says that the request is done with the snapshot. Calls after the first do nothing; it is
// not safe for concurrent use.
func (s *Snapshot) Release() {
	if s == nil {
		return
	}
	for _, h := range s.held {
		h.Release()
	}
	s.held = nil
}
