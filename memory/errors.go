package memory

import (
	"errors"
	"fmt"
	"time"

	"signalbox/memory/blob"
	"signalbox/memory/ledger"
	"signalbox/memory/page"
)

// Errors of a Store, in addition to the types in this file and those of the caller's context.
var (
	// ErrNotFound reports that there is no such context, or none that the owner may see.
	ErrNotFound = errors.New("context not found")
	// ErrExpired reports that the context existed and has expired.
	ErrExpired = errors.New("context expired")
	// ErrFull reports that the store, not the tenant's quota, is full.
	ErrFull = errors.New("context store is full")
	// ErrNoRemote reports that a context cannot leave RAM because there is no Remote.
	ErrNoRemote = errors.New("no remote store is configured")
)

// VersionError is an ErrNotFound for a version of an existing context.
type VersionError struct{ Version, Latest int }

// Error names the version and the latest one.
func (e *VersionError) Error() string {
	return fmt.Sprintf("there is no version %d of the context, the latest is %d", e.Version, e.Latest)
}

// Is reports whether target is ErrNotFound.
func (*VersionError) Is(target error) bool { return target == ErrNotFound }

// ConflictError reports that a context is at another version than the caller expects.
type ConflictError struct {
	Want, Have int // Want is 0 if concurrent changes kept conflicting
}

// Error names both versions.
func (e *ConflictError) Error() string {
	if e.Want == 0 {
		return fmt.Sprintf("context was changed by others; it is at version %d", e.Have)
	}
	return fmt.Sprintf("context is at version %d, not %d", e.Have, e.Want)
}

// QuotaError reports that a request exceeds a limit of the tenant.
type QuotaError struct {
	What  string // contexts, bytes, pinned bytes, context bytes, versions, facts or fact bytes
	Limit int64
}

// Error names the limit.
func (e *QuotaError) Error() string { return fmt.Sprintf("over the limit of %d %s", e.Limit, e.What) }

// InvalidError reports an invalid field of a request.
type InvalidError struct{ Field, Reason string }

// Error names the field.
func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

// UnavailableError reports that something is not in RAM and cannot be reached now.
type UnavailableError struct {
	RetryAfter time.Duration
	Err        error // the cause; not for clients
}

// Error includes the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("context unavailable: %v", e.Err) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// retryAfter is how long the circuit breaker of a Remote stays open.
const retryAfter = time.Second

// public converts errors of the lower packages into those of this package.
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
