// Package ledger holds the records of contexts: what a pointer is called, who may use it, which
// versions it has, and which stored bytes (objects) they are made of. It says what a book of such
// records must do, and has one that lives in RAM; memory/redis is the other.
//
// A record is changed by replacing it whole, if nobody else did so first. The book counts
// references from records to objects within a tenant and the tenant's totals in the same step, so
// that they cannot drift apart. Records and versions are never written to once they were handed
// over.
package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"signalbox/memory/blob"
)

// Tenant is the name under which a tenant's records and objects are kept: a hash, so that no name
// can reach into the keys of another.
type Tenant string

// TenantOf is the tenant with the given name, which may be empty.
func TenantOf(name string) Tenant {
	sum := sha256.Sum256([]byte("tenant\x00" + name))
	return Tenant(hex.EncodeToString(sum[:16]))
}

// Errors of books. ErrUnavailable and ErrFull are also those of stores of blobs. ErrDamaged comes
// with ErrUnavailable: the store answers, and what it holds cannot be read, or is not what it is
// held to be.
var (
	ErrNotFound    = errors.New("no such record")
	ErrConflict    = errors.New("the record was changed by another")
	ErrMissing     = errors.New("an object of the record is not stored")
	ErrUnavailable = errors.New("records cannot be reached")
	ErrFull        = errors.New("no memory left for records")
	ErrDamaged     = errors.New("damaged record")
)

// LimitError says that a change would put a tenant over a limit.
type LimitError struct {
	What  string // contexts, bytes or pinned bytes
	Limit int64
}

// Error tells which limit.
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

// String is the name of the kind.
func (k Kind) String() string {
	if k == Messages {
		return "messages"
	}
	return "text"
}

// State is where a record is in its life.
type State uint8

const (
	// Live records can be used.
	Live State = iota
	// Deleted records are kept for leases that run, and found by nobody else.
	Deleted
	// Expired records hold nothing; they tell for a while that there was something.
	Expired
)

// Record is one context, or the facts of one session.
type Record struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitzero"`
	Scope    string        `json:"scope,omitzero"`  // tenant, session or private
	Holder   string        `json:"holder,omitzero"` // hash of the session or the subject that may use it
	State    State         `json:"state,omitzero"`
	Created  time.Time     `json:"created"`
	TTL      time.Duration `json:"ttl"`
	Fixed    bool          `json:"fixed,omitzero"` // use does not make it live longer
	Pinned   bool          `json:"pinned,omitzero"`
	NextUse  time.Time     `json:"next_use,omitzero"` // when the client means to use it again
	Priority int           `json:"priority,omitzero"`
	Versions []Version     `json:"versions,omitzero"` // version n is element n-1
	Leases   []Lease       `json:"leases,omitzero"`
	Facts    *Object       `json:"facts,omitzero"` // of a session, which has no versions
}

// Version is one state of a context's bytes. It never changes.
type Version struct {
	Sum      blob.Sum  `json:"sum"` // of the canonical bytes, the segments one after the other
	Kind     Kind      `json:"kind,omitzero"`
	Bytes    int64     `json:"bytes"` // of the text
	Segments []Object  `json:"segments"`
	Created  time.Time `json:"created"`
	Parent   string    `json:"parent,omitzero"`  // ID@VERSION of another context that this one began with
	Derived  *Object   `json:"derived,omitzero"` // what was worked out from the text
	Facts    *Object   `json:"facts,omitzero"`
}

// Lease keeps the bytes of a record beyond its deletion, until a time.
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

// Objects are all objects that the record holds, each once.
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

// Counts tells whether the record is one of the tenant's contexts, as opposed to what is left of
// one.
func (r *Record) Counts() bool { return r != nil && r.State != Expired }

// PinnedBytes is how much the record keeps from being paged out, in bytes of text.
func (r *Record) PinnedBytes() int64 {
	if r == nil || !r.Pinned || len(r.Versions) == 0 {
		return 0
	}
	return r.Versions[len(r.Versions)-1].Bytes
}

// Entry is a record as a book holds it.
type Entry struct {
	Record  *Record   // not to be written to
	Rev     int64     // from 1; grows with every change
	Expires time.Time // use may have moved it behind what the record's TTL says
}

// Limits of one tenant. 0 is no limit.
type Limits struct {
	Contexts int64
	Bytes    int64 // unpacked, of all objects, each counted once
	Pinned   int64 // of Record.PinnedBytes
}

// Change replaces a record.
type Change struct {
	Tenant  Tenant
	ID      string
	Old     *Record // nil: there is none
	Rev     int64   // of Old; 0 when there is none
	New     *Record // nil: it goes
	Expires time.Time
	Limits  Limits
}

// Difference tells which objects the change brings and which it lets go.
func (c *Change) Difference() (added, dropped []Object) {
	before, after := c.Old.Objects(), c.New.Objects()
	return without(after, before), without(before, after)
}

// Step is by how much the change moves the tenant's number of contexts: -1, 0 or 1.
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

// PinnedStep is by how much the change moves the tenant's pinned bytes.
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

// Touch moves the end of a record's life, never nearer. One that comes behind a change of how long
// the record lives does nothing: the change has set the end, and uses before it are over.
type Touch struct {
	Name

	TTL     time.Duration // of the record that was used
	Expires time.Time
}

// Moves tells whether the touch changes an entry.
func (t *Touch) Moves(e *Entry) bool {
	r := e.Record
	return r != nil && r.State == Live && !r.Fixed && r.TTL == t.TTL && t.Expires.After(e.Expires)
}

// Name is where a record is found.
type Name struct {
	Tenant Tenant
	ID     string
}

// News is a change of a record, made by any replica.
type News struct {
	Name
	Rev int64 // 0: the record went
}
