package contexts

import (
	"errors"
	"net/http"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
)

// ErrOff means that contexts are disabled.
var ErrOff = errors.New("contexts are disabled")

// notMadeError is an error of the storage while a context is being created.
type notMadeError struct{ error }

// Unwrap returns the storage error.
func (e *notMadeError) Unwrap() error { return e.error }

// notMade marks an error of creating draft d, unless the context that it extends is unreachable, or
// best-effort durability was requested.
func notMade(err error, d *memory.Draft) error {
	if _, away := errors.AsType[*memory.UnavailableError](err); !away || d.Parent.ID != "" || d.BestEffort {
		return err
	}
	return &notMadeError{err}
}

// Wire converts the errors of a memory.Store, and ErrOff, to API errors; nil for any other error.
func Wire(err error) *openai.Error {
	var (
		bad      *memory.InvalidError
		conflict *memory.ConflictError
		quota    *memory.QuotaError
		away     *memory.UnavailableError
		notMade  *notMadeError
		version  *memory.VersionError
	)
	is := openai.Refusal
	switch {
	case errors.Is(err, ErrOff):
		return is(http.StatusNotFound, "contexts_disabled", "", "contexts are disabled on this server")
	case errors.As(err, &bad):
		return is(http.StatusBadRequest, "", bad.Field, bad.Error())
	case errors.As(err, &version):
		return is(http.StatusNotFound, "context_not_found", "", version.Error())
	case errors.Is(err, memory.ErrNotFound):
		return is(http.StatusNotFound, "context_not_found", "", "no such context")
	case errors.Is(err, memory.ErrExpired):
		return is(http.StatusGone, "context_expired", "", "the context has expired")
	case errors.As(err, &conflict):
		return is(http.StatusConflict, "context_version_conflict", "version", conflict.Error())
	case errors.As(err, &quota):
		return is(http.StatusRequestEntityTooLarge, "context_quota", "", quota.Error())
	case errors.Is(err, memory.ErrFull):
		return is(http.StatusInsufficientStorage, "context_store_full", "", "no space is left for contexts")
	case errors.Is(err, memory.ErrNoRemote):
		return is(http.StatusConflict, "context_tier_unavailable", "to",
			"tier l3 requires Redis (memory.redis), which is not configured; l2 is compressed in memory")
	case errors.As(err, &notMade):
		return is(http.StatusServiceUnavailable, "context_unavailable", "",
			"the context cannot be stored at the moment; with durability best_effort it stays in memory until it can be")
	case errors.As(err, &away):
		return is(http.StatusServiceUnavailable, "context_unavailable", "", "the context is not reachable at the moment")
	}
	return nil
}

// RetryAfter returns the seconds to wait before retrying when something was unreachable; 0 for any
// other error.
func RetryAfter(err error) int {
	away, ok := errors.AsType[*memory.UnavailableError](err)
	if !ok {
		return 0
	}
	return max(1, int((away.RetryAfter+time.Second-1)/time.Second))
}

// under prefixes the field of an error with a parent field, if that is where it was.
func under(parent string, below bool, err error) error { //nolint:revive // whether the field was below parent
	var bad *memory.InvalidError
	if !below || !errors.As(err, &bad) {
		return err
	}
	return &memory.InvalidError{Field: parent + "." + bad.Field, Reason: bad.Reason}
}

// renamed replaces the field name in an error by its name in the body.
func renamed(err error, from, to string) error {
	var bad *memory.InvalidError
	if !errors.As(err, &bad) || bad.Field != from {
		return err
	}
	return &memory.InvalidError{Field: to, Reason: bad.Reason}
}
