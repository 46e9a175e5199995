// Package ledger holds the records of contexts: the id, who may use it, its versions, and the
// stored objects they consist of. It defines the contract of a book of such records, and contains
// one in RAM; memory/redis is the other.
//
// A record is changed by replacing it as a whole, if nobody else changed it first. In the same step
// the book counts references from records to objects within a tenant, and the tenant's totals, so
// that they stay consistent. Records and versions must not be modified once they have been passed
// on.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"signalbox/memory/blob"
)

// Tenant identifies a tenant's records and objects: a hash, so that no name can collide with the
// keys of another.
type Tenant string

// TenantOf returns the tenant with the given name, which may be empty.
func TenantOf(name string) Tenant {
	sum := sha256.Sum256([]byte("tenant\x00" + name))
	return Tenant(hex.EncodeToString(sum[:16]))
}

// Errors of books. ErrUnavailable and ErrFull are also used by stores of blobs. ErrDamaged
// accompanies ErrUnavailable: the store responds, but its content cannot be read, or is not what
// was expected.
var (
	ErrNotFound    = errors.New("no such record")
	ErrConflict    = errors.New("the record was changed by another")
	ErrMissing     = errors.New("an object of the record is not stored")
	ErrUnavailable = errors.New("records cannot be reached")
	ErrFull        = errors.New("no memory left for records")
	ErrDamaged     = errors.New("damaged record")
)

// LimitError reports that a change would exceed a limit of the tenant.
type LimitError struct {
	What  string // contexts, bytes or pinned bytes
	Limit int64
}

// Error names the limit.
func (e *LimitError) Error() string {
	return fmt.Sprintf("over the tenant's limit of %d %s", e.Limit, e.What)
}

// Kind is the form of a context's bytes.
type Kind uint8

const (
	// Text is the inside of a JSON string: a text with JSON's escapes and without quotes.
	Text Kind = iota
	// Messages is the inside of a JSON list of chat messages, without brackets.
	Messages
)

// String returns the name of the kind.
func (k Kind) String() string {
	if k == Messages {
		return "messages"
	}
	return "text"
}

// State is the state of a record.
type State uint8

const (
	// Live records can be used.
	Live State = iota
	// Deleted records are kept for active leases, and only found with one of these.
	Deleted
	// Expired records are empty; they record for a while that there was a context.
	Expired
)

// Record is one context, or the facts of one session.
type Record struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitzero"`
	Scope string `json:"scope,omitzero"` // tenant, session or private
	// hash of the session or the subject that may use it
	Holder   string        `json:"holder,omitzero"`
	State    State         `json:"state,omitzero"`
	Created  time.Time     `json:"created"`
	TTL      time.Duration `json:"ttl"`
	Fixed    bool          `json:"fixed,omitzero"` // use does not extend its life
	Ends     time.Time     `json:"ends,omitzero"`  // end of a fixed life that was changed, without leases
	Pinned   bool          `json:"pinned,omitzero"`
	NextUse  time.Time     `json:"next_use,omitzero"` // when the client intends to use it again
	Priority int           `json:"priority,omitzero"`
	Versions []Version     `json:"versions,omitzero"` // version n is element n-1
	Leases   []Lease       `json:"leases,omitzero"`
	Facts    *Object       `json:"facts,omitzero"` // of a session, which has no versions
}

// Version is one state of a context's bytes. It is immutable.
type Version struct {
	Sum      blob.Sum  `json:"sum"` // of the canonical bytes, all segments joined
	Kind     Kind      `json:"kind,omitzero"`
	Bytes    int64     `json:"bytes"` // of the text
	Segments []Object  `json:"segments"`
	Created  time.Time `json:"created"`
	// ID@VERSION of another context with whose content this one began
	Parent  string  `json:"parent,omitzero"`
	Derived *Object `json:"derived,omitzero"` // what was derived from the text
	Facts   *Object `json:"facts,omitzero"`
}

// FixedEnd returns when a fixed life ends if there are no leases.
func (r *Record) FixedEnd() time.Time {
	if r.Ends.IsZero() {
		return r.Created.Add(r.TTL)
	}
	return r.Ends
}

// Lease keeps the bytes of a record after its deletion, until a given time.
type Lease struct {
	ID    string    `json:"id"`
	Until time.Time `json:"until"`
}

// Object is a stored blob.
type Object struct {
	Sum    blob.Sum `json:"sum"`
	Size   int64    `json:"size"`   // unpacked, in bytes
	Packed int64    `json:"packed"` // in bytes
}

// Objects returns all distinct objects of the record.
func (r *Record) Objects() []Object {
	if r == nil {
		return nil
	}
	var out []Object
	seen := map[blob.Sum]bool{}
	add := func(o *Object) {
		if o != nil && !seen[o.Sum] {
			seen[o.Sum] = true
			out = append(out, *o)
		}
	}
	add(r.Facts)
	for i := range r.Versions {
		v := &r.Versions[i]
		for j := range v.Segments {
			add(&v.Segments[j])
		}
		add(v.Derived)
		add(v.Facts)
	}
	return out
}

// Counts reports whether the record counts as one of the tenant's contexts, as opposed to an
// expired one.
func (r *Record) Counts() bool { return r != nil && r.State != Expired }

// PinnedBytes returns the size of the text that the record pins in RAM, in bytes.
func (r *Record) PinnedBytes() int64 {
	if r == nil || !r.Pinned || len(r.Versions) == 0 {
		return 0
	}
	return r.Versions[len(r.Versions)-1].Bytes
}

// Entry is a record as stored in a book.
type Entry struct {
	Record  *Record   // must not be modified
	Rev     int64     // from 1; increases with every change
	Expires time.Time // uses may have moved it beyond what the record's TTL says
}

// Limits are the limits of one tenant. 0 means no limit.
type Limits struct {
	Contexts int64
	Bytes    int64 // unpacked, of all distinct objects
	Pinned   int64 // of Record.PinnedBytes
}

// Change replaces a record.
type Change struct {
	Tenant  Tenant
	ID      string
	Old     *Record // nil: there is none
	Rev     int64   // of Old; 0 if there is none
	New     *Record // nil: the record is removed
	Expires time.Time
	Limits  Limits
}

// Difference returns the objects that the change adds and removes.
func (c *Change) Difference() (added, dropped []Object) {
	before, after := c.Old.Objects(), c.New.Objects()
	return without(after, before), without(before, after)
}

// Step returns the change of the tenant's number of contexts: -1, 0 or 1.
func (c *Change) Step() int64 {
	var n int64
	if c.New.Counts() {
		n++
	}
	if c.Old.Counts() {
		n--
	}
	return n
}

// PinnedStep returns the change of the tenant's pinned bytes.
func (c *Change) PinnedStep() int64 { return c.New.PinnedBytes() - c.Old.PinnedBytes() }

func without(a, b []Object) []Object {
	in := make(map[blob.Sum]bool, len(b))
	for _, o := range b {
		in[o.Sum] = true
	}
	var out []Object
	for _, o := range a {
		if !in[o.Sum] {
			out = append(out, o)
		}
	}
	return out
}

// Touch moves the expiry of a record, never backwards. A touch that arrives after a change of the
// record's TTL has no effect: the change has set the expiry, and earlier uses no longer matter.
type Touch struct {
	Name

	TTL     time.Duration // of the record that was used
	Expires time.Time
}

// Moves reports whether the touch changes an entry.
func (t *Touch) Moves(e *Entry) bool {
	r := e.Record
	return r != nil && r.State == Live && !r.Fixed && r.TTL == t.TTL && t.Expires.After(e.Expires)
}

// Name identifies a record.
type Name struct {
	Tenant Tenant
	ID     string
}

// News is a notification of a record's change by any replica.
type News struct {
	Name
	Rev int64 // 0: the record was removed
}
