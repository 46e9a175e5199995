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

// engineFields are the fields of a body that are meant for parts of the serving system, which hold
// them for the word of another part: where blocks are fetched from and sent to, whose work goes
// first, which replica does it, what code it runs. vLLM, entrypoints/openai/*/protocol.py of 0.11
// and later; SGLang, srt/managers/io_struct.py of 0.5; NVIDIA Dynamo, nvext; TensorRT-LLM,
// disaggregated_params. cache_salt is apart: see extend.
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

// fieldMediaID is the member of content parts, not of the body, under which vLLM keeps a picture or
// a recording for whoever names it, without a salt: whoever guesses it is told of another's, or
// puts one in its place.
const fieldMediaID = "uuid"

// Params lists the fields and headers that steer model servers, as a configuration names
// them.
func Params() []string {
	out := engineFields()
	for _, name := range headers.EngineNames() {
		out = append(out, strings.ToLower(name))
	}
	return out
}

// Problem says why x can let nothing through, in words for operators; empty when it can.
func (x *Param) Problem() string {
	switch {
	case x.Name == "":
		return "a name is required"
	case x.Name == FieldSalt:
		return FieldSalt + " is made here, from the caller's tenant: nobody may choose another's"
	case !slices.Contains(engineFields(), x.Name) && !headers.Engine(x.Name):
		return fmt.Sprintf("%.200q is none of %s", x.Name, strings.Join(Params(), ", "))
	}
	return ""
}

// CheckParams adds what is wrong with a list of parameters to p.
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

// Controls is what callers may say to model servers: the compiled option allow_engine_params. It is
// immutable.
type Controls struct {
	closed []string             // fields that not every caller may send
	fields map[string][]string  // roles that may send one of them
	heads  map[string]*[]string // roles that may send a header, nil for all; by canonical name
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

// Check refuses a body that steers the model server in the name of somebody who may not. It is
// refused and not taken out: whoever means it has to know that it has no effect, and whoever forges
// it is seen in status and metrics. The error names the field.
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
		message := name + " steers the model server, which callers of this role may not do here"
		if name == "request_id" || name == "rid" {
			message += "; the header X-Request-Id names a request"
		}
		return openai.Refusal(http.StatusBadRequest, "unsupported_parameter", at, message)
	}
	return nil
}

// Neutral reports a value of a field that says the same as leaving it out: clients that spell out
// every default send such ones. A field of a form is never neutral.
func Neutral(name string, value []byte) bool {
	switch {
	case len(value) == 0:
		return false
	case string(value) == "null", name == "priority" && string(value) == "0":
		return true
	}
	return value[0] == '{' && strings.TrimSpace(string(value[1:len(value)-1])) == ""
}

// passes reports whether a header of a caller with this role that steers the model server goes on.
// name is folded.
func (s *Controls) passes(role, name string) bool {
	roles, ok := s.heads[name]
	return ok && (roles == nil || slices.Contains(*roles, role))
}

// Without returns the client's head without the headers that steer the model server and that a
// caller of this role may not send. It is in itself where there is nothing to take out.
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

// FieldSalt keeps the prefix caches of tenants apart in vLLM. Only the proxy names one: a client
// that chose its own could find out by timing what others have sent (CVE-2025-46570).
const FieldSalt = "cache_salt"

// Salts derives what stands for a tenant, or for a credential, where others may see it. It is
// immutable and safe for concurrent use, and keeps nothing of whom it was asked about: tenants of
// tokens are as many as the issuer likes.
type Salts struct{ secret []byte }

// NewSalts makes salts from a secret, of which all replicas must have the same to share what
// endpoints hold. Without one it is random.
func NewSalts(secret []byte) *Salts {
	if len(secret) == 0 {
		secret = []byte(rand.Text())
	}
	return &Salts{secret: secret}
}

// Of is the salt of a tenant, which is the value of cache_salt.
func (s *Salts) Of(tenant string) string { return affinity.Salt(s.secret, tenant, "") }

// Credential stands for what a caller shows, in keys of answers: without the secret nobody finds
// out which credential it is by trying some. No tenant has it for its salt, for no scope of one is
// the use.
func (s *Salts) Credential(shown string) string {
	return affinity.Salt(s.secret, shown, "cached answers")
}
