package contexts

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/memory"
)

// readBody parses a body strictly into a struct. An unknown member, a duplicate or a wrong type is
// an error that names the member. An empty body is an empty object if it is optional. form
// describes the body for error messages.
func readBody(body []byte, into any, form string) error {
	if jsontext.Value(body).Kind() == 'n' { // null would be parsed as an empty object
		return openai.Invalid("", "the body must be "+form)
	}
	err := json.Unmarshal(body, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	param := openai.FieldOf(err)
	var value *valueError
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return openai.Invalid(param, param+" is not a known field; the body must be "+form)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return openai.Invalid(param, param+" is given twice")
	case errors.As(err, &value):
		return openai.Invalid(param, strings.TrimSpace(param+" "+value.problem))
	case param == "":
		return openai.Invalid("", "the body must be "+form)
	}
	return openai.Invalid(param, param+" has the wrong type; the body must be "+form)
}

// valueError is the error of a member with an invalid value.
type valueError struct{ problem string }

// Error describes the valid values.
func (e *valueError) Error() string { return e.problem }

// span is a duration with a unit, such as "30m"; 0 when absent.
type span time.Duration

// UnmarshalJSONFrom parses a string.
func (s *span) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	const problem = `must be a positive duration with a unit, as "30m" or "7d"`
	if dec.PeekKind() == 'n' {
		_, err := dec.ReadToken()
		return err
	}
	if dec.PeekKind() != '"' {
		if err := dec.SkipValue(); err != nil {
			return err
		}
		return &valueError{problem}
	}
	t, err := dec.ReadToken()
	if err != nil {
		return err
	}
	var d option.Duration
	if d.UnmarshalText([]byte(t.String())) != nil || d <= 0 {
		return &valueError{problem}
	}
	*s = span(d)
	return nil
}

// factList is one fact, or a list of them, each a text or an object.
type factList []memory.Fact

// UnmarshalJSONFrom parses any of these forms.
func (l *factList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*l = factList{}
	if dec.PeekKind() == 'n' {
		*l = nil
		_, err := dec.ReadToken()
		return err
	}
	if dec.PeekKind() != '[' {
		var f fact
		err := json.UnmarshalDecode(dec, &f)
		*l = append(*l, memory.Fact(f))
		return err
	}
	var list []fact
	if err := json.UnmarshalDecode(dec, &list); err != nil {
		return err
	}
	for _, f := range list {
		*l = append(*l, memory.Fact(f))
	}
	return nil
}

type fact memory.Fact

// kinds returns the values of Fact.Kind.
func kinds() []string { return []string{"number", "date", "name", "statement"} }

// UnmarshalJSONFrom parses a text or an object.
func (f *fact) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		if err := json.UnmarshalDecode(dec, &f.Text); err != nil {
			return err
		}
	} else if err := json.UnmarshalDecode(dec, (*memory.Fact)(f)); err != nil {
		return err
	}
	switch {
	case strings.TrimSpace(f.Text) == "":
		return &valueError{"must contain a non-empty text"}
	case f.Kind != "" && !slices.Contains(kinds(), f.Kind):
		return &valueError{fmt.Sprintf("has the unknown kind %.200q, expected one of %s", f.Kind, strings.Join(kinds(), ", "))}
	}
	return nil
}

// given returns a raw value; nil if it is absent or null.
func given(v jsontext.Value) []byte {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	return v
}

// hintsBody is what a client knows about the future use of a context.
type hintsBody struct {
	NextUse  *float64 `json:"next_use_s"`
	Priority int      `json:"priority"`
}

// mostNextUse limits the time until the next use, in seconds: one year.
const mostNextUse = 365 * 24 * 3600

func (h *hintsBody) hints() (memory.Hints, error) {
	if h == nil {
		return memory.Hints{}, nil
	}
	out := memory.Hints{Priority: h.Priority}
	if h.Priority < 0 || h.Priority > 9 {
		return out, openai.Invalid("hints.priority", "hints.priority must be from 0 to 9")
	}
	if h.NextUse != nil {
		if !(*h.NextUse >= 0 && *h.NextUse <= mostNextUse) {
			return out, openai.Invalid("hints.next_use_s",
				"hints.next_use_s must be a number of seconds from now, at most a year")
		}
		out.NextUse = time.Duration(*h.NextUse * float64(time.Second))
	}
	return out, nil
}

// wordOf checks a value against the known ones; the first of these stands for an absent value.
func wordOf(param, word string, known ...string) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	return openai.Invalid(param,
		fmt.Sprintf("%s is %.200q, expected one of %s", param, word, strings.Join(known, ", ")))
}

func unknownModel(i int, name string) error {
	return openai.Refusal(http.StatusBadRequest, "model_not_found", fmt.Sprintf("models[%d]", i),
		fmt.Sprintf("unknown model %.200q", name))
}
