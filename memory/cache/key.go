package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
)

// Key is a SHA-256 that identifies an answer, or a partition of questions.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Scope is everything besides the body of a request that its answer depends on.
type Scope struct {
	Tenant string
	Role   string
	// Path is the endpoint, such as /v1/chat/completions.
	Path string
	// Headers are the headers that the compiled rules read, in the order of the rules, without
	// absent ones.
	Headers []Header
	// Session is empty unless the rules read it, or the session has facts.
	Session string
	// Contexts are the contexts of the request as they were resolved, in their order.
	Contexts []Context
	// Facts are the facts of the session, field by field.
	Facts []string
	// Generation identifies the configuration, the rules and the facts of the session: everything
	// that changes decisions.
	Generation string
}

// Header is a header of a request.
type Header struct{ Name, Value string }

// Context is a version of a stored context.
type Context struct {
	ID      string
	Version int
	// Digest identifies the data stored with its text that affects requests: verdicts, token
	// counts, facts.
	Digest [sha256.Size]byte
}

// keeping returns whether the server stores the response under its id, which the next request may
// refer to. This only exists in the Responses API.
func keeping(req *openai.Request) string {
	if req.API == openai.Response && string(bytes.TrimSpace(req.Field("store"))) == "false" {
		return "not kept"
	}
	return ""
}

// ignored reports whether a member of a body does not change the answer: how it is delivered, to
// whom it is billed, and the proxy's own object, whose facts and guard are added separately, as is
// store.
func ignored(name []byte) bool {
	switch string(name) {
	case "stream", "stream_options", "signalbox",
		"user", "metadata", "safety_identifier", "store", "service_tier",
		"prompt_cache_key", "prompt_cache_retention", "cache_salt", "priority", "request_id":
		return true
	}
	return false
}

// Identity identifies a request.
type Identity struct {
	Key       Key
	Partition Key    // zero unless the request can be answered from a similar one
	Question  string // the last text of the user; empty unless Partition is set
	Exact     Reason // why the answer must be neither stored nor returned; Eligible if it may be
	Similar   Reason // the same for answers to other wordings
}

// digester holds reusable buffers for computing keys.
type digester struct {
	sum   hash.Hash
	body  []byte
	frame [8]byte
}

// digesters are kept between requests.
//
//nolint:gochecknoglobals // a pool
var digesters = sync.Pool{New: func() any { return &digester{sum: sha256.New()} }}

// keptBody is the maximum size in bytes of a body whose buffer is reused.
const keptBody = 1 << 20

// keyOf computes the key of a request. The value at the span cut, if any, counts as an empty
// string. kind distinguishes keys for different uses. An error means that the body is not JSON.
func keyOf(kind string, req *openai.Request, scope *Scope, cut openai.Span) (Key, error) {
	d, ok := digesters.Get().(*digester)
	if !ok {
		d = &digester{sum: sha256.New()}
	}
	defer func() {
		if cap(d.body) <= keptBody {
			digesters.Put(d)
		}
	}()
	d.sum.Reset()
	d.text(kind)
	d.scope(scope)
	d.extras(&req.Extras)
	d.text(keeping(req))
	d.number(int(req.ThinkingBudget))
	d.body = append(d.body[:0], req.Raw[:cut.Start]...)
	if cut.Present() {
		d.body = append(d.body, `""`...)
	}
	d.body = append(d.body, req.Raw[cut.End:]...)
	if err := d.members(); err != nil {
		return Key{}, fmt.Errorf("canonical form of the body: %w", err)
	}
	var k Key
	d.sum.Sum(k[:0])
	return k, nil
}

// scope adds what is not in the body.
func (d *digester) scope(s *Scope) {
	d.text(s.Tenant)
	d.text(s.Role)
	d.text(s.Path)
	d.text(s.Session)
	d.text(s.Generation)
	d.number(len(s.Headers))
	for i := range s.Headers {
		d.text(s.Headers[i].Name)
		d.text(s.Headers[i].Value)
	}
	d.number(len(s.Contexts))
	for i := range s.Contexts {
		d.text(s.Contexts[i].ID)
		d.number(s.Contexts[i].Version)
		d.sum.Write(s.Contexts[i].Digest[:])
	}
	d.number(len(s.Facts))
	for _, f := range s.Facts {
		d.text(f)
	}
}

// extras adds the members of the object signalbox that change an answer.
func (d *digester) extras(e *openai.Extras) {
	d.text(e.Guard)
	d.number(len(e.Facts))
	for i := range e.Facts {
		f := &e.Facts[i]
		d.text(f.ID)
		d.text(f.Text)
		d.text(f.Source)
		d.text(f.Kind)
	}
}

// text adds a text preceded by its length, so that two texts cannot be confused with one.
func (d *digester) text(s string) {
	d.number(len(s))
	d.body = append(d.body[:0], s...)
	d.sum.Write(d.body)
}

func (d *digester) number(n int) {
	binary.LittleEndian.PutUint64(d.frame[:], uint64(n))
	d.sum.Write(d.frame[:])
}

// members adds the members of the body sorted by name, with values in canonical form (RFC 8785,
// except that integers keep all their digits). Ignored members are left out, and null, which the
// API treats as absent.
func (d *digester) members() error {
	v := jsontext.Value(d.body)
	if err := v.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return err
	}
	d.body = v
	if len(v) < 2 || v[0] != '{' {
		return errNoObject
	}
	for i := 1; i < len(v)-1; {
		colon := i + valueEnd(v[i:])
		end := colon + 1 + valueEnd(v[colon+1:])
		if value := v[colon+1 : end]; !ignored(v[i+1:colon-1]) && !bytes.Equal(value, []byte("null")) {
			d.sum.Write(v[i:end])
			d.sum.Write([]byte{','})
		}
		i = end + 1
	}
	return nil
}

// valueEnd returns the length of the value at the start of valid JSON without white space.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += stringEnd(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth < 0 {
			return i // of the enclosing value
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// stringEnd returns the length of the string at the start of valid JSON.
func stringEnd(b []byte) int {
	i := 1
	for ; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
