package memory

import (
	"errors"
	"fmt"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Errors of a Store, beside the types of this file and those of the caller's context.
var (
	// ErrNotFound says that there is no such context, or none that the owner may see.
	ErrNotFound = errors.New("context not found")
	// ErrExpired says that the context was there and that its time is over.
	ErrExpired = errors.New("context expired")
	// ErrFull says that the store, not the tenant, has no room left.
	ErrFull = errors.New("context store is full")
	// ErrNoRemote says that a context was to leave RAM, and there is nowhere for it to go.
	ErrNoRemote = errors.New("no remote store is configured")
)

// VersionError is an ErrNotFound of a version: the context is there.
type VersionError struct{ Version, Latest int }

// Error names the version, and the latest one.
func (e *VersionError) Error() string {
	return fmt.Sprintf("there is no version %d of the context, the latest is %d", e.Version, e.Latest)
}

// Is makes it an ErrNotFound.
func (*VersionError) Is(target error) bool { return target == ErrNotFound }

// ConflictError says that a context is at another version than the caller expects.
type ConflictError struct {
	Want, Have int // Want is 0 when others kept changing it
}

// Error names both versions.
func (e *ConflictError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("context was changed by others; it is at version %d", e.Have)
	}
	return fmt.Sprintf("context is at version %d, not %d", e.Have, e.Want)
}

// QuotaError says that a request is over a limit of the tenant.
type QuotaError struct {
	What  string // contexts, bytes, pinned bytes, context bytes, versions, facts or fact bytes
	Limit int64
}

// Error names the limit.
func (e *QuotaError) Error() string { return fmt.Sprintf("over the limit of %d %s", e.Limit, e.What) }

// InvalidError says that a field of a request cannot be what it is.
type InvalidError struct{ Field, Reason string }

// Error names the field.
func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

// UnavailableError says that what was asked for is not here and cannot be reached now.
type UnavailableError struct {
	RetryAfter time.Duration
	Err        error // why; not for clients
}

// Error tells the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("context unavailable: %v", e.Err) }

// Unwrap is the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// retryAfter is how long the breaker in front of a Remote rests.
const retryAfter = time.Second

// public turns errors of what is below into those of this package.
func public(err error) error {
	var limit *ledger.LimitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNotFound):
		return ErrNotFound
	case errors.As(err, &limit):
		return &QuotaError{What: limit.What, Limit: limit.Limit}
	case errors.Is(err, ledger.ErrFull), errors.Is(err, page.ErrFull):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, ledger.ErrUnavailable), errors.Is(err, ledger.ErrMissing), errors.Is(err, blob.ErrDamaged), errors.Is(err, page.ErrGone):
		return &UnavailableError{RetryAfter: retryAfter, Err: err}
	}
	return err
}
