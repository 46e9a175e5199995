package keyring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/internal/option"
)

// createBody is the body of a request to create a key.
type createBody struct {
	Grants

	// Name is the unique name of the key, which appears in logs like that of a configured key.
	// Required.
	Name string `json:"name"`
	// Expires is the time at which the key expires. Default: never.
	Expires time.Time `json:"expires_at"`
	// TTL is the time until the key expires, such as 12h or 30d.
	TTL option.Duration `json:"ttl"`
}

// patchBody changes a key: an omitted field stays as it is, null sets its default.
type patchBody struct {
	Grants

	// Expires is the time at which the key expires. A time in the past ends it, null means never.
	Expires time.Time `json:"expires_at"`
	// TTL is the time until the key expires, such as 12h or 30d.
	TTL option.Duration `json:"ttl"`
}

// rotateBody is the body of a request for a new secret.
type rotateBody struct {
	// Grace is how long the previous secret remains valid, at most 720h. Default 0.
	Grace option.Duration `json:"grace"`
}

// Key is a key as operators see it.
type Key struct {
	// ID identifies the key and is part of its secret.
	ID string `json:"id"`
	// Name is the name of the key in logs.
	Name string `json:"name"`
	// State is the state of the key: active, expired, or shadowed, which means that the
	// configuration has a key with the same name.
	State string `json:"state"`

	Grants

	// Unknown lists those of its models that are not configured.
	Unknown []string `json:"unknown_models,omitempty"`
	// Hint points out a probable typo in the role or tenant.
	Hint    string    `json:"hint,omitempty"`
	Created time.Time `json:"created_at"`
	Updated time.Time `json:"updated_at"`
	// Expires is the time at which the key expires.
	Expires time.Time `json:"expires_at,omitzero"`
	// Rotated is the time at which the secret was last replaced.
	Rotated time.Time `json:"rotated_at,omitzero"`
	// Until is the time at which the previous secret expires.
	Until time.Time `json:"previous_until,omitzero"`
}

// Usage is the use of one limit or budget of a key.
type Usage struct {
	// Of is the owner of the limit: key, or tenant, which the tenant's other keys share.
	Of string `json:"of"`
	// What is the limited quantity: usd, requests or tokens.
	What string `json:"what"`
	// Per is the period: day or month in the UTC calendar, or minute.
	Per   string  `json:"per"`
	Limit float64 `json:"limit"`
	// Used is the amount used, including reservations of requests in flight.
	Used float64 `json:"used"`
	Left float64 `json:"left"`
	// Resets is the beginning of the next day or month. For minute, it is the time from which the
	// usage so far no longer counts.
	Resets time.Time `json:"resets_at"`
	// Alone means that only this replica is counted, since there is no Redis or it does not
	// respond.
	Alone bool `json:"replica_alone"`
}

// usedKey is a key with the use of its limits.
type usedKey struct {
	Key

	// Usage has an entry for each limit and budget of the key and its tenant, except concurrency.
	Usage []Usage `json:"usage"`
}

// shownKey is a key with its secret.
type shownKey struct {
	Key

	// Secret is the key itself. It is shown only once and stored nowhere.
	Secret string `json:"secret"`
}

// revoked is the response to a revocation.
type revoked struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

// The states of a key.
const (
	stateActive   = "active"
	stateExpired  = "expired"
	stateShadowed = "shadowed"
)

func (r *Ring) view(rec *Record) Key {
	k := Key{
		ID: rec.ID, Name: rec.Name, State: stateActive, Grants: rec.Grants,
		Unknown: r.o.Unknown(rec.Models), Hint: r.o.Hint(rec.Role, rec.Tenant), Created: rec.Created, Updated: rec.Updated,
		Expires: rec.Expires, Rotated: rec.Rotated, Until: rec.Until,
	}
	switch {
	case rec.expired(r.o.Now()):
		k.State = stateExpired
	case r.o.Taken(rec.Name):
		k.State = stateShadowed
	}
	return k
}

// Path is the path of the API.
const Path = "/-/keys"

// Handler serves the API below Path. If r is nil, every request gets an error that virtual keys are
// off. The caller must have checked permissions.
func Handler(r *Ring) http.Handler {
	mux := http.NewServeMux()
	for pattern, serve := range map[string]func(*Ring, http.ResponseWriter, *http.Request) error{
		"POST " + Path: (*Ring).create, "GET " + Path: (*Ring).list,
		"GET " + Path + "/{id}": (*Ring).get, "PATCH " + Path + "/{id}": (*Ring).patch,
		"DELETE " + Path + "/{id}": (*Ring).remove, "POST " + Path + "/{id}/rotate": (*Ring).rotate,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			err := errOff
			if r != nil {
				err = serve(r, w, req)
			}
			if err != nil {
				e := wire(err)
				if e.Status == http.StatusServiceUnavailable {
					w.Header().Set("Retry-After", "1")
				}
				openai.WriteError(w, e)
			}
		})
	}
	return mux
}

func (r *Ring) list(w http.ResponseWriter, req *http.Request) error {
	list, err := r.List(req.URL.Query().Get("tenant"))
	if err != nil {
		return err
	}
	keys := make([]Key, len(list))
	for i := range list {
		keys[i] = r.view(&list[i])
	}
	return answer(w, http.StatusOK, struct {
		Keys []Key `json:"keys"`
	}{keys})
}

func (r *Ring) get(w http.ResponseWriter, req *http.Request) error {
	rec, err := r.Key(req.PathValue("id"))
	if err != nil {
		return err
	}
	k := rec.options(rec.Name)
	return answer(w, http.StatusOK, usedKey{r.view(&rec), r.o.Usage(req.Context(), &k)})
}

func (r *Ring) create(w http.ResponseWriter, req *http.Request) error {
	var b createBody
	if err := read(w, req, &b); err != nil {
		return err
	}
	ends, err := r.ends(b.Expires, b.TTL)
	if err != nil {
		return err
	}
	rec, secret, err := r.Create(req.Context(), b.Name, &b.Grants, ends)
	if err != nil {
		return err
	}
	r.audit(req, "create", &rec)
	return answer(w, http.StatusCreated, shownKey{r.view(&rec), secret})
}

func (r *Ring) rotate(w http.ResponseWriter, req *http.Request) error {
	var b rotateBody
	if err := read(w, req, &b); err != nil {
		return err
	}
	if b.Grace < 0 || time.Duration(b.Grace) > maxGrace {
		return &FieldError{"grace", fmt.Sprintf("%s is not between 0 and %s", b.Grace, maxGrace)}
	}
	rec, secret, err := r.Rotate(req.Context(), req.PathValue("id"), time.Duration(b.Grace))
	if err != nil {
		return err
	}
	r.audit(req, "rotate", &rec)
	return answer(w, http.StatusOK, shownKey{r.view(&rec), secret})
}

func (r *Ring) patch(w http.ResponseWriter, req *http.Request) error {
	body, err := readAll(w, req)
	if err != nil {
		return err
	}
	rec, err := r.Change(req.Context(), req.PathValue("id"), func(rec *Record) error {
		b := patchBody{Grants: rec.Grants, Expires: rec.Expires}
		if err := parseBody(body, &b); err != nil {
			return err
		}
		was := b.Expires
		if b.TTL != 0 && was.Equal(rec.Expires) {
			was = time.Time{} // it was there before
		}
		ends, err := r.ends(was, b.TTL)
		rec.Grants, rec.Expires = b.Grants, ends
		return err
	})
	if err != nil {
		return err
	}
	r.audit(req, "change", &rec)
	return answer(w, http.StatusOK, r.view(&rec))
}

func (r *Ring) remove(w http.ResponseWriter, req *http.Request) error {
	rec, err := r.Revoke(req.Context(), req.PathValue("id"))
	if err != nil {
		return err
	}
	r.audit(req, "revoke", &rec)
	return answer(w, http.StatusOK, revoked{rec.ID, true})
}

// Limits of requests.
const (
	maxGrace = 30 * 24 * time.Hour
	maxTTL   = 100 * 365 * 24 * time.Hour
	maxBody  = 64 << 10 // bytes
)

// ends returns when a key with an expiry time or a TTL expires.
func (r *Ring) ends(at time.Time, ttl option.Duration) (time.Time, error) {
	switch {
	case ttl == 0:
		return at.UTC().Truncate(time.Second), nil
	case !at.IsZero():
		return at, &FieldError{"ttl", "cannot be combined with expires_at"}
	case ttl < 0 || time.Duration(ttl) > maxTTL:
		return at, &FieldError{"ttl", fmt.Sprintf("%s is not between 0 and %s", ttl, maxTTL)}
	}
	return r.now().Add(time.Duration(ttl)), nil
}

// audit logs a change: its author and source, and the key; no secrets.
func (r *Ring) audit(req *http.Request, action string, rec *Record) {
	attrs := []slog.Attr{
		slog.String("action", action), slog.String("by", "admin"), slog.String("remote", req.RemoteAddr),
		slog.String("key_id", rec.ID), slog.String("key_name", rec.Name),
		slog.String("tenant", rec.Tenant), slog.String("role", rec.Role),
	}
	if !rec.Expires.IsZero() {
		attrs = append(attrs, slog.Time("expires_at", rec.Expires))
	}
	if !rec.Until.IsZero() {
		attrs = append(attrs, slog.Time("previous_until", rec.Until))
	}
	r.o.Log.LogAttrs(context.WithoutCancel(req.Context()), slog.LevelInfo, "virtual key", attrs...)
}

// read parses the body of a request; an empty one is {}.
func read(w http.ResponseWriter, req *http.Request, into any) error {
	b, err := readAll(w, req)
	if err != nil {
		return err
	}
	return parseBody(b, into)
}

var errBody = errors.New("the body could not be read")

// bodyTime is the timeout for reading a body.
const bodyTime = 10 * time.Second

func readAll(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	// not every writer supports it
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime))
	b, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, err
	}
	if err != nil {
		return nil, errBody
	}
	return b, nil
}

// members lists the fields of an object, for an error message.
func members(t reflect.Type) string {
	var names []string
	if t != nil && t.Kind() == reflect.Struct {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return ", expected one of " + strings.Join(names, ", ")
}

// parseBody parses one JSON object into existing values.
func parseBody(b []byte, into any) error {
	if len(b) == 0 {
		return nil
	}
	if jsontext.Value(b).Kind() == 'n' { // null would be accepted and set everything to its default
		return &FieldError{"", "the body is not a JSON object"}
	}
	err := json.Unmarshal(b, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	at := func(p jsontext.Pointer) string {
		return strings.ReplaceAll(strings.TrimPrefix(string(p), "/"), "/", ".")
	}
	if bad, ok := errors.AsType[*json.SemanticError](err); ok {
		switch {
		case errors.Is(err, json.ErrUnknownName):
			return &FieldError{at(bad.JSONPointer), "unknown field" + members(bad.GoType)}
		case bad.GoType != nil && bad.GoType.Name() == "Duration" && bad.Err != nil:
			return &FieldError{at(bad.JSONPointer), bad.Err.Error()}
		}
		return &FieldError{at(bad.JSONPointer), "cannot be " + kindOf(bad.JSONKind) + expected(bad.GoType)}
	}
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok && errors.Is(err, jsontext.ErrDuplicateName) {
		return &FieldError{at(bad.JSONPointer), "the field is repeated"}
	}
	return &FieldError{"", "the body is not a JSON object"}
}

// kindOf names a kind of JSON values.
func kindOf(k jsontext.Kind) string {
	switch k.String() {
	case "{":
		return "an object"
	case "[":
		return "an array"
	case "true", "false":
		return "a boolean"
	case "null":
		return "null"
	}
	return "this " + k.String()
}

// expected describes the values of a field; empty if the type does not determine them.
func expected(t reflect.Type) string {
	switch {
	case t == nil:
		return ""
	case t == reflect.TypeFor[time.Time]():
		return ", expected a time such as 2026-12-31T00:00:00Z"
	case t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return ", expected a whole number"
	case t.Kind() == reflect.Float64:
		return ", expected a number"
	case t.Kind() == reflect.String:
		return ", expected a text"
	case t.Kind() == reflect.Slice:
		return ", expected a list"
	case t.Kind() == reflect.Struct:
		return ", expected an object"
	}
	return ""
}

func answer(w http.ResponseWriter, status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the client may have left
	return nil
}

var errOff = errors.New("virtual keys are not enabled: auth.virtual sets neither file nor redis")

// wire converts errors to API errors.
func wire(err error) *openai.Error {
	if bad, ok := errors.AsType[*FieldError](err); ok {
		return openai.Invalid(bad.Field, err.Error())
	}
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return openai.Refusal(http.StatusRequestEntityTooLarge, "request_too_large", "",
			fmt.Sprintf("the body is longer than %d bytes", long.Limit))
	}
	for _, known := range []struct {
		err         error
		status      int
		code, param string
		says        string // replaces the error's text
	}{
		{errOff, http.StatusNotFound, "virtual_keys_off", "", ""},
		{errBody, http.StatusBadRequest, "", "", ""},
		{ErrNotFound, http.StatusNotFound, "key_not_found", "", ""},
		{ErrTaken, http.StatusConflict, "key_name_taken", "name", ""},
		{ErrConflict, http.StatusConflict, "key_conflict", "", ""},
		{ErrTooMany, http.StatusConflict, "too_many_keys", "", ""},
		{errBlind, http.StatusServiceUnavailable, "keys_unavailable", "", "the store of virtual keys could not be read " +
			"since this replica started, so no key is known yet: try again"},
		{ErrUnavailable, http.StatusServiceUnavailable, "keys_unavailable", "", "the store of virtual keys cannot be " +
			"reached: list the keys to see whether the change was made, and try again"},
	} {
		if errors.Is(err, known.err) {
			return openai.Refusal(known.status, known.code, known.param, cmp.Or(known.says, known.err.Error()))
		}
	}
	return openai.Refusal(http.StatusInternalServerError, "internal_error", "", "internal error")
}
