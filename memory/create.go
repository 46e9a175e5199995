package memory

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// An id is a prefix and 128 random bits in base32.
const (
	idPrefix = "ctx_"
	idLength = 26
)

func newID() string { return idPrefix + strings.ToLower(rand.Text()) }

// mostSegments is the maximum number of objects of one version; beyond it they are merged into one.
const mostSegments = 64

// Create stores a context. When it returns, the context survives a crash of this process (with a
// Remote), or, in best-effort mode while the Remote is unreachable, it is in RAM. Errors are
// *InvalidError, *QuotaError, ErrFull, *UnavailableError, those for a parent, and those of Derive
// and Ground.
func (s *Store) Create(ctx context.Context, owner Owner, d Draft) (Context, error) {
	content, err := canon(d.Content)
	if err != nil {
		return Context{}, err
	}
	r, err := s.newRecord(owner, d)
	if err != nil {
		return Context{}, err
	}
	from, err := s.basis(ctx, owner, d.Parent, content.kind)
	if err != nil {
		return Context{}, err
	}
	defer release(from.held)
	made, err := s.build(ctx, owner, from, content, d)
	if err != nil {
		return Context{}, err
	}
	r.Versions = []ledger.Version{made.version}
	_, limits := s.quota(owner)
	c := ledger.Change{Tenant: ledger.TenantOf(owner.Tenant), ID: r.ID, New: r, Expires: s.now().Add(r.TTL), Limits: limits}
	e, err := s.commit(ctx, c, made.pieces)
	if d.BestEffort && errors.Is(err, ledger.ErrUnavailable) {
		e, err = s.postpone(c, made.pieces)
	}
	if err != nil {
		return Context{}, public(err)
	}
	at := ledger.Name{Tenant: c.Tenant, ID: c.ID}
	s.views.keep(keyOf(c.Tenant, &r.Versions[0]), made.view, s.now())
	return s.describe(at, e, 1, made.view), nil
}

// newRecord returns the record of a draft, without versions.
func (s *Store) newRecord(owner Owner, d Draft) (*ledger.Record, error) {
	ttl, err := s.ttl(d.TTL)
	if err != nil {
		return nil, err
	}
	if d.Scope == SessionScope && owner.Session == "" {
		return nil, &InvalidError{Field: "scope", Reason: "session needs a session"}
	}
	if d.Scope == PrivateScope && owner.Subject == "" {
		return nil, &InvalidError{Field: "scope", Reason: "private needs a key of one's own"}
	}
	if d.Hints.Priority < 0 || d.Hints.Priority > 9 || d.Hints.NextUse < 0 {
		return nil, &InvalidError{Field: "hints", Reason: "must have a priority of 0 to 9 and a next use in the future"}
	}
	if len(d.Name) > mostName {
		return nil, &InvalidError{Field: "name", Reason: fmt.Sprintf("is longer than %d bytes", mostName)}
	}
	r := &ledger.Record{
		ID: newID(), Name: d.Name, Scope: d.Scope.String(), Holder: holder(d.Scope.String(), owner),
		Created: s.now(), TTL: ttl, Fixed: d.Fixed, Pinned: d.Pinned, Priority: d.Hints.Priority,
	}
	if d.Hints.NextUse > 0 {
		r.NextUse = s.now().Add(d.Hints.NextUse)
	}
	return r, nil
}

// mostName is the maximum length of context names, in bytes.
const mostName = 256

// CheckTTL returns an *InvalidError for an invalid time to live; 0 means the default and is always
// valid.
func (s *Store) CheckTTL(asked time.Duration) error {
	_, err := s.ttl(asked)
	return err
}

func (s *Store) ttl(asked time.Duration) (time.Duration, error) {
	if asked == 0 {
		return s.o.TTL, nil
	}
	if asked < minTTL || asked > s.o.MaxTTL {
		return 0, &InvalidError{Field: "ttl", Reason: fmt.Sprintf("must be from %v to %v", minTTL, s.o.MaxTTL)}
	}
	return asked, nil
}

// basis is the content that a new version begins with.
type basis struct {
	version *ledger.Version // nil: nothing
	parent  string          // ID@VERSION, if it belongs to another context
	held    []page.Held
}

func (s *Store) basis(ctx context.Context, owner Owner, parent Ref, kind ledger.Kind) (basis, error) {
	if parent.ID == "" {
		return basis{}, nil
	}
	at, e, err := s.find(ctx, owner, parent)
	if err != nil {
		return basis{}, err
	}
	v, n, err := pick(e.Record, parent.Version)
	if err != nil {
		return basis{}, err
	}
	return s.basisOf(ctx, at, v, fmt.Sprintf("%s@%d", parent.ID, n), kind)
}

func (s *Store) basisOf(ctx context.Context, at ledger.Name, v *ledger.Version, parent string, kind ledger.Kind) (basis, error) {
	if v.Kind != kind {
		return basis{}, &InvalidError{Field: kind.String(), Reason: "cannot follow " + v.Kind.String()}
	}
	held, err := s.open(ctx, at.Tenant, v.Segments, page.Care{})
	return basis{version: v, parent: parent, held: held}, err
}

// made is a new version with the pieces to store for it.
type made struct {
	version ledger.Version
	pieces  []piece
	view    *view
}

// build makes a version from its basis, the content appended to it, and the facts and models of a
// draft. nil facts are replaced by those of the basis.
func (s *Store) build(ctx context.Context, owner Owner, from basis, c canonical, d Draft) (made, error) {
	q, _ := s.quota(owner)
	facts := d.Facts
	m := made{version: ledger.Version{Kind: c.kind, Created: s.now(), Parent: from.parent}, view: &view{facts: facts}}
	text, parts, err := m.content(from, c, q)
	if err != nil {
		return made{}, err
	}
	if m.version.Sum = m.sumOf(parts); m.version.Sum == (blob.Sum{}) {
		m.version.Sum = sumOf(c.kind, parts)
	}
	if facts == nil && from.version != nil {
		m.version.Facts = from.version.Facts
		if m.version.Facts != nil {
			if err := s.read(ctx, ledger.TenantOf(owner.Tenant), *m.version.Facts, page.Care{}, &m.view.facts); err != nil {
				return made{}, err
			}
		}
	}
	if len(facts) > 0 {
		if m.version.Facts, err = m.factsPiece(facts, q); err != nil {
			return made{}, err
		}
	}
	return m, s.deriveFor(ctx, &m, Text{Tenant: owner.Tenant, Text: text, Kind: c.kind, Models: d.Models})
}

// content sets the segments, and returns the whole text and all fragments.
func (m *made) content(from basis, c canonical, q Quota) (text string, parts [][]byte, err error) {
	text, parts = c.text, [][]byte{c.fragment}
	if from.version != nil {
		parts = append(fragments(from.held), c.fragment)
		if text, err = textOf(c.kind, parts); err != nil {
			return "", nil, err
		}
	}
	m.version.Bytes = int64(len(text))
	if m.version.Bytes > q.ContextBytes {
		return "", nil, &QuotaError{What: "context bytes", Limit: q.ContextBytes}
	}
	if len(parts) > mostSegments {
		parts = [][]byte{join(c.kind, parts)}
		m.version.Segments = []ledger.Object{m.add(parts[0])}
		return text, parts, nil
	}
	if from.version != nil {
		m.version.Segments = append(m.version.Segments, from.version.Segments...)
	}
	m.version.Segments = append(m.version.Segments, m.add(c.fragment))
	return text, parts, nil
}

// sumOf returns the sum of a version with one part, which is that of its piece; zero for others.
func (m *made) sumOf(parts [][]byte) blob.Sum {
	if len(parts) != 1 || len(m.pieces) == 0 {
		return blob.Sum{}
	}
	return m.pieces[0].object.Sum
}

// add stores bytes with the version.
func (m *made) add(raw []byte) ledger.Object {
	p := newPiece(raw)
	m.pieces = append(m.pieces, p)
	return p.object
}

func (m *made) factsPiece(facts []Fact, q Quota) (*ledger.Object, error) {
	raw, err := spellFacts(facts, q)
	if err != nil {
		return nil, err
	}
	o := m.add(raw)
	return &o, nil
}

// spellFacts encodes facts, within the quota.
func spellFacts(facts []Fact, q Quota) ([]byte, error) {
	if len(facts) > q.Facts {
		return nil, &QuotaError{What: "facts", Limit: int64(q.Facts)}
	}
	var size int64
	for _, f := range facts {
		if f.Text == "" {
			return nil, &InvalidError{Field: "facts", Reason: "must each have a text"}
		}
		size += int64(len(f.Text) + len(f.ID) + len(f.Source))
	}
	if size > q.FactBytes {
		return nil, &QuotaError{What: "fact bytes", Limit: q.FactBytes}
	}
	raw, err := json.Marshal(facts)
	if err != nil {
		return nil, fmt.Errorf("spell facts: %w", err)
	}
	return raw, nil
}

// deriveFor computes what is derived from a new version.
func (s *Store) deriveFor(ctx context.Context, m *made, text Text) error {
	revision := *s.revision.Load()
	m.view.derived.Revision = revision
	if s.o.Derive != nil {
		d, err := s.o.Derive(ctx, text)
		if err != nil {
			return fmt.Errorf("derive what goes with a context: %w", err)
		}
		d.seal(revision)
		raw, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("spell what goes with a context: %w", err)
		}
		o := m.add(raw)
		m.version.Derived, m.view.derived = &o, d
	}
	whole := func() (string, error) { return text.Text, nil }
	return s.ground(ctx, Text{Tenant: text.Tenant, Kind: text.Kind, Whole: whole}, m.view)
}

// seal sets the revision of d. If something is missing the revision stays empty, so that it is
// derived again later.
func (d *Derived) seal(revision string) {
	if d.Revision = revision; d.Partial {
		d.Revision = ""
	}
}
