package memory

import (
	"encoding/json"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Owner is the caller. Names may be empty; an empty session or subject has no contexts of its own.
type Owner struct {
	Tenant  string
	Session string
	Subject string // the key or user within the tenant
}

// Scope is who may use a context.
type Scope uint8

const (
	// TenantScope: the whole tenant.
	TenantScope Scope = iota
	// SessionScope: the session only.
	SessionScope
	// PrivateScope: the subject only.
	PrivateScope
)

// String returns the name of the scope in the API.
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

// ParseScope parses the name of a scope; an empty name means TenantScope.
func ParseScope(s string) (Scope, bool) {
	for _, scope := range []Scope{TenantScope, SessionScope, PrivateScope} {
		if s == scope.String() {
			return scope, true
		}
	}
	return TenantScope, s == ""
}

// Ref refers to a version of a context.
type Ref struct {
	ID      string
	Version int    // 0: the latest
	Lease   string // returned by Lease; permits the use of a deleted context
}

// Fact is a statement that answers are checked against. The fields are those of openai.Fact.
type Fact struct {
	ID     string `json:"id,omitzero"`
	Text   string `json:"text"`
	Source string `json:"source,omitzero"`
	Kind   string `json:"kind,omitzero"` // number, date, name or statement
}

// Hints are what a client knows about the future use of a context.
type Hints struct {
	NextUse  time.Duration // from now; 0: not known
	Priority int           // 0..9, higher is paged out later
}

// Content is a text or a list of messages; exactly one must be set.
type Content struct {
	Text     string
	Messages []byte // a JSON list of chat messages
}

// Draft is a context to be created.
type Draft struct {
	Content
	Name   string
	Parent Ref // the new context begins with the content of this one; zero: with nothing
	Facts  []Fact
	TTL    time.Duration // 0: the default of the store
	Fixed  bool          // use does not extend its life
	Pinned bool          // it stays in RAM, within the quota
	Scope  Scope
	Hints  Hints
	Models []string // passed to Derive
	// if the Remote is unreachable, keep it in RAM until it is reachable, instead of refusing
	BestEffort bool
}

// Derived is what Derive computes from a text.
type Derived struct {
	Revision string         `json:"revision,omitzero"` // of Options; set by the Store
	Tokens   map[string]int `json:"tokens,omitzero"`   // number of tokens by model
	// of the safety signals; opaque to this package
	Verdicts json.RawMessage `json:"verdicts,omitzero"`
	// a short form of the text, to classify requests that refer to the context
	Skeleton string `json:"skeleton,omitzero"`
	// something is missing that may be available later; it is then derived again
	Partial bool `json:"-"`
}

// Context is the description of a context for clients.
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
	FactCount int    // -1 if it is not known without paging in
	Durable   bool   // false: in RAM only, and lost with this process

	// Verdicts is what was derived; false if that is not known without paging in
	Known    bool
	Verdicts json.RawMessage // as in Derived
}

// Status is the state of a context in the API.
type Status uint8

const (
	// Active contexts are in RAM and were used recently.
	Active Status = iota
	// Idle contexts are in RAM and have not been used for a while.
	Idle
	// PagedL2 contexts are packed in RAM.
	PagedL2
	// PagedL3 contexts are in the Remote only.
	PagedL3
	// Waking contexts are being brought back into RAM.
	Waking
)

// String returns the name in the API.
func (s Status) String() string {
	names := [...]string{Active: "active", Idle: "idle", PagedL2: "paged_l2", PagedL3: "paged_l3", Waking: "waking"}
	if int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Snapshot is one version of a context in use by a request. Nothing in it changes or disappears
// until Release, whatever happens to the context. All of it is read-only.
type Snapshot struct {
	ID      string
	Version int
	Sum     blob.Sum // of the canonical bytes
	Kind    ledger.Kind
	// canonical bytes in order: for a text the inside of a JSON string, else JSON messages joined
	// by commas
	Fragments [][]byte
	Bytes     int64     // of text
	Tier      page.Tier // where the bytes were found
	Derived   Derived
	Facts     []Fact
	Grounding any // the result of Options.Ground; nil if there is nothing to check against
	// of Verdicts, Tokens and Facts: snapshots with equal digests lead to equal decisions
	Digest blob.Sum

	held []page.Held
}

// Release ends the use of the snapshot by the request. Further calls have no effect; it is not safe
// for concurrent use.
func (s *Snapshot) Release() {
	if s == nil {
		return
	}
	for _, h := range s.held {
		h.Release()
	}
	s.held = nil
}
