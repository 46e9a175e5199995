package openai

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/option"
)

// extras reads the body object "signalbox". Only the proxy defines it, so unlike elsewhere an
// unknown name in it is an error: a misspelled guard must not disable the guard.
func (p *chatParser) extras() error {
	if p.null() {
		p.req.Extras.Present = true
		return nil
	}
	p.req.Extras.Present = true
	return p.strictObject(func(name string) (err error) {
		e := &p.req.Extras
		switch name {
		case "context":
			e.Contexts, err = p.contexts()
		case "session":
			e.Session, err = p.strOrNull()
		case "facts":
			e.Facts, err = p.facts()
		case "explain":
			e.Explain, err = p.boolOrNull()
		case "guard":
			e.Guard, err = p.oneOf("off", "observe", "annotate", "terminate", "hold")
		case "save_context":
			e.SaveContext, err = p.saveContext()
		default:
			err = p.unknown("context", "session", "facts", "explain", "guard", "save_context")
		}
		return err
	})
}

// strictObject reads an object; field reads the value of each member, or refuses its name.
func (p *chatParser) strictObject(field func(name string) error) error {
	if p.kind() != '{' {
		return p.mistyped("an object")
	}
	return p.members(func() error { return field(string(p.name)) })
}

func (p *chatParser) unknown(known ...string) error {
	return p.invalid("is unknown; known are %s", strings.Join(known, ", "))
}

// oneOf reads one of the words, or null as the empty string.
func (p *chatParser) oneOf(words ...string) (string, error) {
	word, err := p.strOrNull()
	if err != nil || word == "" || slices.Contains(words, word) {
		return word, err
	}
	return "", p.invalid("must be one of %s", strings.Join(words, ", "))
}

func (p *chatParser) contexts() ([]ContextRef, error) {
	return oneOrMore(p, p.contextRef, p.limits.MaxContexts, "signalbox.context", "names more than %d contexts")
}

// oneOrMore reads one value, or a list of them; null means none. If there are more than most, the
// field is invalid.
func oneOrMore[T any](p *chatParser, one func() (T, error), most int, field, tooMany string) ([]T, error) {
	if p.null() {
		return nil, nil
	}
	if p.kind() != '[' {
		x, err := one()
		return []T{x}, err
	}
	var all []T
	err := p.elements(func() error {
		if len(all) == most {
			return invalidAt(field, tooMany, most)
		}
		x, err := one()
		all = append(all, x)
		return err
	})
	return all, err
}

// contextRef reads "ctx_a", "ctx_a@3" or {"id": "ctx_a", "version": 3, "required": true, "lease":
// "..."}.
func (p *chatParser) contextRef() (ContextRef, error) {
	if p.kind() == '"' {
		s, err := p.str()
		if err != nil {
			return ContextRef{}, err
		}
		ref, ok := ParseContextRef(s)
		if !ok {
			return ContextRef{}, p.invalid("must be a context id, such as ctx_a or ctx_a@3")
		}
		return ref, nil
	}
	if p.kind() != '{' {
		return ContextRef{}, p.mistyped("a string or an object")
	}
	ref := ContextRef{Required: true}
	err := p.strictObject(func(name string) (err error) {
		switch name {
		case "id":
			ref.ID, err = p.str()
		case "version":
			ref.Version, err = p.version()
		case "required":
			ref.Required, err = p.flag()
		case "lease":
			ref.Lease, err = p.strOrNull()
		default:
			err = p.unknown("id", "version", "required", "lease")
		}
		return err
	})
	if err == nil && (ref.ID == "" || strings.Contains(ref.ID, "@")) {
		err = p.invalidIn("id", "must be a context id")
	}
	return ref, err
}

// ParseContextRef parses a context's id with an optional version, such as ctx_a or ctx_a@3. The
// context is required. It returns false if the id is empty or the version is not a positive
// integer.
func ParseContextRef(s string) (ContextRef, bool) {
	id, version, versioned := strings.Cut(s, "@")
	ref := ContextRef{ID: id, Required: true}
	if versioned {
		n, err := strconv.ParseUint(version, 10, 31)
		if err != nil || n == 0 {
			return ContextRef{}, false
		}
		ref.Version = int(n)
	}
	return ref, id != ""
}

func (p *chatParser) version() (int, error) {
	n, err := p.intOrNull()
	if err != nil || n == nil {
		return 0, err
	}
	if *n < 1 || *n > 1<<31-1 {
		return 0, p.invalid("must be a positive integer")
	}
	return int(*n), nil
}

// flag reads true or false. null is refused: it could mean either, because the default is true.
func (p *chatParser) flag() (bool, error) {
	if p.kind() == 'n' {
		return false, p.mistyped("true or false")
	}
	return p.boolOrNull()
}

// facts reads one statement, or a list of statements and objects.
func (p *chatParser) facts() ([]Fact, error) {
	return oneOrMore(p, p.fact, p.limits.MaxFacts, "signalbox.facts", "holds more than %d facts")
}

func (p *chatParser) fact() (Fact, error) {
	var f Fact
	if p.kind() == '"' {
		var err error
		if f.Text, err = p.str(); err == nil && f.Text == "" {
			err = p.invalid("must not be empty")
		}
		return f, err
	}
	if p.kind() != '{' {
		return f, p.mistyped("a string or an object")
	}
	err := p.strictObject(func(name string) (err error) {
		switch name {
		case "id":
			f.ID, err = p.strOrNull()
		case "text":
			f.Text, err = p.str()
		case "source":
			f.Source, err = p.strOrNull()
		case "kind":
			f.Kind, err = p.oneOf("number", "date", "name", "statement")
		default:
			err = p.unknown("id", "text", "source", "kind")
		}
		return err
	})
	if err == nil && f.Text == "" {
		err = p.invalidIn("text", "is required")
	}
	return f, err
}

func (p *chatParser) saveContext() (*SaveContext, error) {
	if p.null() {
		return nil, nil //nolint:nilnil // null asks for nothing
	}
	out := new(SaveContext)
	err := p.strictObject(func(name string) (err error) {
		switch name {
		case "name":
			out.Name, err = p.strOrNull()
		case "ttl":
			out.TTL, err = p.ttl()
		default:
			err = p.unknown("name", "ttl")
		}
		return err
	})
	return out, err
}

func (p *chatParser) ttl() (time.Duration, error) {
	s, err := p.strOrNull()
	if err != nil || s == "" {
		return 0, err
	}
	var d option.Duration
	if d.UnmarshalText([]byte(s)) != nil || d <= 0 {
		return 0, p.invalid("must be a positive duration with a unit, such as 30m or 7d")
	}
	return time.Duration(d), nil
}

// ParseContexts parses context references in the form of signalbox.context from a JSON value of
// another body; param is the field that contains it. Errors are *Error with status 400.
func ParseContexts(value []byte, param string) ([]ContextRef, error) {
	p := newParser(Other, value, Limits{})
	defer p.release()
	refs, err := p.contexts()
	if err == nil {
		err = p.finish()
	}
	if err != nil {
		bad, ok := errors.AsType[*Error](asError(err))
		if ok {
			bad.Param = param
		}
		return nil, bad
	}
	return refs, nil
}
