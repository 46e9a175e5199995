package gpu

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the execution providers, as in configuration.
const (
	ProviderAuto = "auto" // the best one that works
	ProviderCPU  = "cpu"  // always there
)

// knownProviders are the names that configuration may hold, best first; auto is none of them.
var knownProviders = [...]string{"tensorrt", "cuda", "migraphx", "openvino", "webgpu", ProviderCPU} //nolint:gochecknoglobals // constant table

// Support answers whether a provider works here. "Could not tell" is an answer of its own.
type Support uint8

// The three answers.
const (
	SupportUnknown Support = iota // the probe could not decide
	SupportYes                    // a graph ran on it
	SupportNo                     // it is missing or failed
)

// String returns unknown, yes or no.
func (s Support) String() string {
	switch s {
	case SupportYes:
		return "yes"
	case SupportNo:
		return "no"
	case SupportUnknown:
	}
	return "unknown"
}

// MarshalText makes the answer readable in JSON.
func (s Support) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Provider is what is known about one execution provider.
type Provider struct {
	Name   string  `json:"name"`
	State  Support `json:"state"`
	Detail string  `json:"detail,omitempty"` // why not, or which device
}

// checkProvider returns an error for a name that no provider has.
func checkProvider(name string) error {
	if name == "" || name == ProviderAuto || slices.Contains(knownProviders[:], name) {
		return nil
	}
	return fmt.Errorf("unknown execution provider %q (known: %s, %s)", name, ProviderAuto, strings.Join(knownProviders[:], ", "))
}

// choose returns the provider that serves a request for want and, when that is another one than
// asked for by name, why. found is in order of preference.
func choose(found []Provider, want string) (name, fallback string) {
	if want == "" || want == ProviderAuto {
		for _, p := range found {
			if p.State == SupportYes {
				return p.Name, ""
			}
		}
		return ProviderCPU, ""
	}
	for _, p := range found {
		if p.Name != want {
			continue
		}
		if p.State == SupportYes {
			return want, ""
		}
		return ProviderCPU, fmt.Sprintf("%s: %s: %s", want, p.State, p.Detail)
	}
	return ProviderCPU, want + ": not known to this build"
}
