package engine

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"signalbox/internal/openai"
	"signalbox/internal/option"
	"signalbox/proxy/affinity"
	"signalbox/proxy/auth"
	"signalbox/proxy/headers"
)

// Param allows callers to send one of the fields or headers that control the model server.
type Param struct {
	// Name is the name of the body field or header, such as priority or x-data-parallel-rank.
	// Header names are matched in any case. docs/security.md lists the names. Required, unique.
	Name string `yaml:"name"`
	// Roles lists the roles that may send it. Default: every caller may.
	Roles []string `yaml:"roles"`
}

// engineFields lists the body fields that the parts of a serving system exchange and trust: where
// blocks are fetched from and sent to, priorities, which replica does the work, what code it runs.
// Sources: vLLM, entrypoints/openai/*/protocol.py of 0.11 and later; SGLang,
// srt/managers/io_struct.py of 0.5; NVIDIA Dynamo, nvext; TensorRT-LLM, disaggregated_params.
// cache_salt is handled separately; see FieldSalt.
func engineFields() []string {
	return []string{
		"kv_transfer_params", "ec_transfer_params", "vllm_xargs", "priority", "request_id",
		"logits_processors",
		"rid", "bootstrap_host", "bootstrap_port", "bootstrap_room", "bootstrap_pair_key",
		"data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank", "decode_tp_size",
		"session_params", "extra_key", "custom_logit_processor", "custom_params", "lora_path",
		"nvext", "disaggregated_params", fieldMediaID,
	}
}

// fieldMediaID is a member of content parts, not of the body. Under this id vLLM stores an image or
// recording without a salt: a client that guesses an id can use another client's media, or replace
// it.
const fieldMediaID = "uuid"

// Params lists the fields and headers that control model servers, as named in the configuration.
func Params() []string {
	out := engineFields()
	for _, name := range headers.EngineNames() {
		out = append(out, strings.ToLower(name))
	}
	return out
}

// Problem explains to operators why x can have no effect; empty if it can.
func (x *Param) Problem() string {
	switch {
	case x.Name == "":
		return "a name is required"
	case x.Name == FieldSalt:
		return FieldSalt + " is set by the proxy from the tenant of the caller and cannot be chosen"
	case !slices.Contains(engineFields(), x.Name) && !headers.Engine(x.Name):
		return fmt.Sprintf("%.200q is not one of %s", x.Name, strings.Join(Params(), ", "))
	}
	return ""
}

// CheckParams adds the problems of a list of parameters to p.
func CheckParams(p *option.Problems, list []Param) {
	seen := option.Unique{}
	for i := range list {
		at := fmt.Sprintf("allow_engine_params[%d]", i)
		if slices.Contains(list[i].Roles, "") {
			p.Addf(at+".roles", "a role has no name; without roles every caller may send it")
		}
		if problem := list[i].Problem(); problem != "" {
			p.Addf(at+".name", "%s", problem)
			continue
		}
		seen.Check(p, at+".name", strings.ToLower(list[i].Name))
	}
}

// Controls determines which control parameters callers may send: the compiled option
// allow_engine_params. It is immutable.
type Controls struct {
	closed []string             // fields that are not open to every caller
	fields map[string][]string  // roles that may send each field
	heads  map[string]*[]string // roles that may send each header, nil for all; by canonical name
}

// NewControls compiles the parameters that callers may send.
func NewControls(list []Param) *Controls {
	s := &Controls{
		closed: engineFields(), fields: map[string][]string{},
		heads: map[string]*[]string{},
	}
	for _, x := range list {
		switch {
		case headers.Engine(x.Name):
			s.heads[headers.Fold(x.Name)] = nil
			if len(x.Roles) > 0 {
				s.heads[headers.Fold(x.Name)] = &x.Roles
			}
		case len(x.Roles) == 0:
			s.closed = slices.DeleteFunc(s.closed, func(name string) bool { return name == x.Name })
		default:
			s.fields[x.Name] = x.Roles
		}
	}
	return s
}

// Check refuses a body with control fields that the caller may not send. It refuses rather than
// removes them: an honest client must know that they have no effect, and an attempt to forge them
// must show in status and metrics. The error names the field.
func (s *Controls) Check(who *auth.Principal, req *openai.Request) error {
	for _, name := range s.closed {
		at := name
		switch {
		case name == fieldMediaID:
			at = req.MediaID
		case !req.Has(name) || Neutral(name, req.Field(name)):
			continue
		}
		if at == "" || slices.Contains(s.fields[name], who.Role) {
			continue
		}
		message := name + " controls the model server, which your role is not allowed to do"
		if name == "request_id" || name == "rid" {
			message += "; the header X-Request-Id names a request"
		}
		return openai.Refusal(http.StatusBadRequest, "unsupported_parameter", at, message)
	}
	return nil
}

// Neutral reports whether a field's value is the same as omitting it, since some clients spell out
// every default. A form field is never neutral.
func Neutral(name string, value []byte) bool {
	switch {
	case len(value) == 0:
		return false
	case string(value) == "null", name == "priority" && string(value) == "0":
		return true
	}
	return value[0] == '{' && strings.TrimSpace(string(value[1:len(value)-1])) == ""
}

// passes reports whether a control header of a caller with this role is forwarded. name is folded.
func (s *Controls) passes(role, name string) bool {
	roles, ok := s.heads[name]
	return ok && (roles == nil || slices.Contains(*roles, role))
}

// Without returns the client's headers without the control headers that a caller with this role may
// not send. It returns in itself if there are none.
func (s *Controls) Without(in http.Header, role string) http.Header {
	out, shared := in, true
	for name := range in {
		if !headers.Engine(name) || s.passes(role, headers.Fold(name)) {
			continue
		}
		if shared {
			out, shared = maps.Clone(in), false
		}
		delete(out, name)
	}
	return out
}

// FieldSalt separates the prefix caches of tenants in vLLM. Only the proxy sets it: a client that
// chose its own salt could find out by timing what others have sent (CVE-2025-46570).
const FieldSalt = "cache_salt"

// Salts derives stand-ins for tenants and credentials that others may see. It is immutable and safe
// for concurrent use. It remembers no tenant, since tokens can name any number of them.
type Salts struct{ secret []byte }

// NewSalts makes salts from a secret. Replicas need the same secret to share what endpoints have
// cached. Without one it is random.
func NewSalts(secret []byte) *Salts {
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	return &Salts{secret: secret}
}

// Of returns the salt of a tenant, the value of cache_salt.
func (s *Salts) Of(tenant string) string { return affinity.Salt(s.secret, tenant, "") }

// Credential returns the stand-in for a credential in cache keys. Without the secret, it cannot be
// found by trying credentials. It cannot equal a tenant's salt, since no tenant has the scope used
// here.
func (s *Salts) Credential(shown string) string {
	return affinity.Salt(s.secret, shown, "cached answers")
}
