package memory

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"signalbox/memory/ledger"
)

// keepTries is the maximum number of ids for a text: an id that was deleted is not reused while its
// leases run.
const keepTries = 3

// Keep stores a text as a context, unless the owner has already stored the same text with it, and
// returns its id. The id is the same for the same text, tenant and holder on every replica. Either
// way it counts as a use and extends the context's life. Derive runs when the context is first used
// in a prompt. Errors are those of Create.
func (s *Store) Keep(ctx context.Context, owner Owner, name, text string, scope Scope) (id string, err error) {
	content, err := canon(Content{Text: text})
	if err != nil {
		return "", err
	}
	r, err := s.newRecord(owner, Draft{Name: name, Scope: scope})
	if err != nil {
		return "", err
	}
	q, limits := s.quota(owner)
	for try := range keepTries {
		r.ID = keptID(owner.Tenant, r.Holder, text, try)
		at, e, err := s.find(ctx, owner, Ref{ID: r.ID})
		switch {
		case err == nil:
			s.use(ctx, at, e)
			return r.ID, nil
		case !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExpired):
			return "", err
		}
		gone, err := s.remains(ctx, at, err)
		if err != nil {
			return "", public(err)
		}
		m := made{version: ledger.Version{Kind: content.kind, Created: s.now()}, view: &view{}}
		if _, _, err := m.content(basis{}, content, q); err != nil {
			return "", err
		}
		m.version.Sum = m.pieces[0].object.Sum
		record := *r
		record.Versions = []ledger.Version{m.version}
		c := ledger.Change{
			Tenant: at.Tenant, ID: r.ID, Old: gone.Record, Rev: gone.Rev, New: &record,
			Expires: s.now().Add(r.TTL), Limits: limits,
		}
		_, err = s.commit(ctx, c, m.pieces)
		if err == nil {
			return r.ID, nil
		}
		if !errors.Is(err, ledger.ErrConflict) {
			return "", public(err)
		}
		if _, _, err := s.find(ctx, owner, Ref{ID: r.ID}); err == nil {
			return r.ID, nil // another caller was faster
		}
	}
	return "", fmt.Errorf("keep a text: %w", ErrNotFound)
}

// remains returns the record that a new one may replace, given why find has not found it: one that
// has expired, or the zero Entry.
func (s *Store) remains(ctx context.Context, at ledger.Name, why error) (ledger.Entry, error) {
	if !errors.Is(why, ErrExpired) {
		return ledger.Entry{}, nil
	}
	e, err := s.book.Load(ctx, at.Tenant, at.ID)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return ledger.Entry{}, nil
	case err == nil && e.Record.State == ledger.Live && e.Expires.After(s.now()): // another was faster
		return ledger.Entry{}, nil
	}
	return e, err
}

// keptID returns the id of a kept text, in the form of newID.
func keptID(tenant, holder, text string, try int) string {
	h := sha256.New()
	for _, part := range []string{"kept", tenant, holder, fmt.Sprint(try), text} {
		_, _ = fmt.Fprintf(h, "%d ", len(part))
		_, _ = h.Write([]byte(part))
	}
	return idPrefix + strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:idLength]
}
