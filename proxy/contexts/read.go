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

// readBody reads a body strictly into a struct: a member that is unknown, given twice or of another
// type is an error that names it. An empty body is an empty object where one may be left out. form
// says in words what the body is.
func readBody(body []byte, into any, form string) error {
	if jsontext.Value(body).Kind() == 'n' { // it would be read as an empty object
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
		return openai.Invalid(param, param+" is unknown; the body must be "+form)
	case errors.Is(err, jsontext.ErrDuplicateName):
		return openai.Invalid(param, param+" is given twice")
	case errors.As(err, &value):
		return openai.Invalid(param, strings.TrimSpace(param+" "+value.problem))
	case param == "":
		return openai.Invalid("", "the body must be "+form)
	}
	return openai.Invalid(param, param+" is not of the type that it has to be; the body must be "+form)
}

// valueError is a member with a value that it cannot have.
type valueError struct{ problem string }

// Error says what it has to be.
func (e *valueError) Error() string { return e.problem }

// span is a duration with a unit, as "30m"; 0 when it is not given.
type span time.Duration

// UnmarshalJSONFrom reads a text.
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

// UnmarshalJSONFrom reads any of the forms.
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

// kinds are the words of Fact.Kind.
func kinds() []string { return []string{"number", "date", "name", "statement"} }

// UnmarshalJSONFrom reads a text or an object.
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
		return &valueError{"must hold a text that is not empty"}
	case f.Kind != "" && !slices.Contains(kinds(), f.Kind):
		return &valueError{fmt.Sprintf("has the kind %.200q, which is none of %s", f.Kind, strings.Join(kinds(), ", "))}
	}
	return nil
}

// given is a raw value, nil where there is none or it is null.
func given(v jsontext.Value) []byte {
	if len(v) == 0 || v.Kind() == 'n' {
		return nil
	}
	return v
}

// hintsBody is what a client knows about the use of a context.
type hintsBody struct {
	NextUse  *float64 `json:"next_use_s"`
	Priority int      `json:"priority"`
}

// mostNextUse bounds the time of the next use, in seconds: a year.
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

// wordOf checks a word against those that a field knows, the first of which stands for none.
func wordOf(param, word string, known ...string) error {
	if word == "" || slices.Contains(known, word) {
		return nil
	}
	return openai.Invalid(param,
		fmt.Sprintf("%s is %.200q, which is none of %s", param, word, strings.Join(known, ", ")))
}

func unknownModel(i int, name string) error {
	return openai.Refusal(http.StatusBadRequest, "model_not_found", fmt.Sprintf("models[%d]", i),
		fmt.Sprintf("unknown model %.200q", name))
}
