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

// Key is a SHA-256 that names an answer, or a partition of questions.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Scope is what an answer depends on besides the body of its request.
type Scope struct {
	Tenant string
	Role   string
	// Path is the endpoint, such as /v1/chat/completions.
	Path string
	// Headers are those that the compiled rules read, in the order of the rules, absent ones left
	// out.
	Headers []Header
	// Session is empty unless the rules read it, or facts of a session apply.
	Session string
	// Contexts are the contexts of the request as they were resolved, in their order.
	Contexts []Context
	// Facts are those of the session, field by field.
	Facts []string
	// Generation stands for the configuration, the rules and the facts of the session: whatever
	// changes decisions.
	Generation string
}

// Header is a header of a request.
type Header struct{ Name, Value string }

// Context is a stored context in one of its versions.
type Context struct {
	ID      string
	Version int
	// Digest stands for what is stored beside its text and decides requests: verdicts, counts of
	// tokens, facts.
	Digest [sha256.Size]byte
}

// keeping is whether the server keeps the response under its id, which the next request may go on
// with. Of other APIs nobody goes on with a response.
func keeping(req *openai.Request) string {
	if req.API == openai.Response && string(bytes.TrimSpace(req.Field("store"))) == "false" {
		return "not kept"
	}
	return ""
}

// ignored are the members of a body that do not change what is answered: how it is delivered, whom
// it is billed to, and those of the proxy, of which facts and guard are added apart, as is store.
func ignored(name []byte) bool {
	switch string(name) {
	case "stream", "stream_options", "signalbox",
		"user", "metadata", "safety_identifier", "store", "service_tier",
		"prompt_cache_key", "prompt_cache_retention", "cache_salt", "priority", "request_id":
		return true
	}
	return false
}

// Identity is what a request is known by.
type Identity struct {
	Key       Key
	Partition Key    // zero unless the request can be answered from a similar one
	Question  string // the last words of the user; empty unless Partition is set
	Exact     Reason // why the answer may be neither kept nor given; Eligible when it may
	Similar   Reason // the same for answers to other words
}

// digester holds what deriving keys needs again and again.
type digester struct {
	sum   hash.Hash
	body  []byte
	frame [8]byte
}

// digesters are kept between requests.
//
//nolint:gochecknoglobals // a pool
var digesters = sync.Pool{New: func() any { return &digester{sum: sha256.New()} }}

// keptBody is the longest body in bytes whose buffer is kept for the next request.
const keptBody = 1 << 20

// keyOf derives the key of a request. The value at the span cut, if there is any, counts as an
// empty string. kind sets keys of different use apart. An error says that the body is no JSON.
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

// scope adds what the body does not hold.
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

// text adds a text behind its length, so that two texts never run into one.
func (d *digester) text(s string) {
	d.number(len(s))
	d.body = append(d.body[:0], s...)
	d.sum.Write(d.body)
}

func (d *digester) number(n int) {
	binary.LittleEndian.PutUint64(d.frame[:], uint64(n))
	d.sum.Write(d.frame[:])
}

// members adds the members of the body by the names they are sorted by, values in their canonical
// form (RFC 8785, except that integers keep all their digits). Left out are those that are ignored,
// and null, which the API takes for absent.
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

// valueEnd is the length of the value that valid JSON without spaces begins with.
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
			return i // of what the value stands in
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// stringEnd is the length of the string that valid JSON begins with.
func stringEnd(b []byte) int {
	i := 1
	for ; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}
