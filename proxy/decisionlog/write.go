package decisionlog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/signal"
	"signalbox/rules"
	"signalbox/stream/response"
)

// The words for outcomes.
const (
	outcomeMatched     = "matched"
	outcomeFailClosed  = "fail_closed"
	outcomeUnavailable = "unavailable"
	outcomeDefault     = "default"
	outcomeRefused     = "refused" // in a Refusal
)

// OutcomeOf returns the word for an outcome: matched, fail_closed, unavailable or default.
func OutcomeOf(o rules.Outcome) string {
	switch o {
	case rules.FailClosed:
		return outcomeFailClosed
	case rules.Unavailable:
		return outcomeUnavailable
	case rules.Defaulted:
		return outcomeDefault
	case rules.Matched:
	}
	return outcomeMatched
}

// Milliseconds converts a duration for a line, with at most three decimals.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// HeaderOf converts the values of a request header with a canonical name: hashed, or literal if
// literal is set and the name is not that of a credential.
func HeaderOf(name string, values []string, literal bool) Header { //nolint:revive // literal comes from the configuration
	var h Header
	for _, v := range values {
		if literal && !isCredential(name) {
			h.Literal = append(h.Literal, v)
			continue
		}
		h.Hashed = append(h.Hashed, HashHeader(name, v))
	}
	return h
}

// credentialWords are the words that identify the name of a header with a credential, in lower
// case.
var credentialWords = [...]string{"key", "token", "secret", "auth", "cookie", "session", "signature", "password", "credential"} //nolint:gochecknoglobals // constant table

// isCredential reports, by its name, whether the values of a header must never be logged literally.
// A false positive costs replay a comparison; a false negative reveals a secret.
func isCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords[:], func(word string) bool { return strings.Contains(name, word) })
}

// HashHeader returns the stand-in for a header's value: the first 64 bits of SHA-256 over name, a
// zero byte and value. It distinguishes values without showing them. A guessed value can be
// verified against it, so it is only a pseudonym.
func HashHeader(name, value string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + value))
	return hex.EncodeToString(sum[:8])
}

// featureWords are the names of features, in the order of their bits.
var featureWords = [...]struct { //nolint:gochecknoglobals // constant table
	bit  signal.Features
	name string
}{{signal.HasTools, "tools"}, {signal.HasImages, "images"}, {signal.HasContext, "context"}, {signal.HasFacts, "facts"}}

// FeaturesOf lists the names of features.
func FeaturesOf(f signal.Features) []string {
	var out []string
	for _, w := range featureWords {
		if f&w.bit != 0 {
			out = append(out, w.name)
		}
	}
	return out
}

// SignalOf converts a signal of kind k for the log. It omits what could reveal text: vectors and
// the positions of personal data.
func (id *Identity) SignalOf(k signal.Kind, v *signal.Value) Signal {
	out := Signal{
		State: "evaluated", Label: v.Label, Score: v.Score, Labels: v.Labels, Probs: v.Probs, Source: v.Source,
		Definition: id.Definitions[k], Ms: Milliseconds(v.Elapsed), Partial: v.Partial,
	}
	if v.State == signal.Unknown {
		return Signal{State: "unknown", Reason: string(v.Reason), Source: v.Source, Definition: out.Definition, Ms: out.Ms}
	}
	if v.Coverage == signal.Windowed {
		out.Windows, out.Read = v.Windows, v.Read
		if selected(k) {
			out.Limit = id.Windows
		}
	}
	if k == signal.Keyword {
		out.Sets = id.Keywords
	}
	if signal.DefaultOrigins(k) != 0 {
		out.noteOrigins(id, k, v)
	}
	// rules treat it as failed; JSON has no number for it
	if !finite(out.Score, out.Probs) || !finiteVerdicts(v.Verdicts) {
		return Signal{State: "unknown", Reason: string(signal.ReasonInvalid), Source: v.Source, Definition: out.Definition, Ms: out.Ms}
	}
	return out
}

func finite(x float64, probs []float32) bool {
	const limit = 1e6 // scores are in [0,1]; comparisons with NaN are false
	ok := x > -limit && x < limit
	for _, p := range probs {
		ok = ok && p > -limit && p < limit
	}
	return ok
}

func finiteVerdicts(all []signal.Verdict) bool {
	return !slices.ContainsFunc(all, func(v signal.Verdict) bool { return !finite(v.Score, nil) })
}

// TextOf converts the text of a request for the log.
func TextOf(t *signal.Text) *Text {
	out := &Text{LastUser: t.LastUser, Before: t.Before, Segments: make([]Segment, len(t.Segments))}
	for i, s := range t.Segments {
		out.Segments[i] = Segment{s.Role, s.Text, s.Origin.String()}
	}
	return out
}

// ActionOf converts an action for the log; prompts holds the system prompts by name. Texts of the
// configuration become fingerprints: they show a change without filling the log, and header values
// may be secrets.
func ActionOf(a *rules.Action, prompts map[string]string) Action {
	out := Action{
		Verb: a.Verb.String(), By: a.By, Margin: a.Margin, Reasoning: a.Reasoning, Override: a.Override, Prompt: a.Prompt.Name, Mode: a.Prompt.Mode,
		Guard: a.Guard, Cache: a.Cache, Windows: a.Windows, Redact: a.Redact != nil,
	}
	if a.Redact != nil {
		out.RedactTypes, out.RedactExcept = a.Redact.Types, a.Redact.Except
	}
	if a.Text != "" {
		out.Text = Fingerprint([]byte(a.Text))
	}
	for _, c := range a.Models {
		logged := Choice{Name: c.Name}
		if a.By == "weight" {
			logged.Weight = c.Weight
		}
		out.Models = append(out.Models, logged)
	}
	if a.Prompt.Name != "" {
		out.Wording = Fingerprint([]byte(prompts[a.Prompt.Name]))
		if a.Prompt.Position == "before" {
			out.Position = a.Prompt.Position
		}
	}
	if a.MaxTokens.Auto {
		out.MaxTokens = "auto"
	} else if a.MaxTokens.Limit > 0 {
		out.MaxTokens = strconv.Itoa(a.MaxTokens.Limit)
	}
	out.extras(a)
	if len(a.Body)+len(a.Headers) > 0 {
		var b []byte
		for _, f := range a.Body {
			b = append(append(append(append(b, f.Name...), 0), f.JSON...), 0)
		}
		b = append(b, 1)
		for _, h := range a.Headers {
			b = append(append(append(append(b, h.Name...), 0), h.Value...), 0)
		}
		out.Set = Fingerprint(b)
	}
	return out
}

// extras sets the fields that few routes use.
func (out *Action) extras(a *rules.Action) {
	if t := a.Tools; t != nil {
		out.Tools = fmt.Sprint(t.Keep, t.Always)
		if t.Share > 0 {
			out.Tools += fmt.Sprintf(" share %v", t.Share)
		}
	}
	if r := a.Results; r != nil {
		out.Results = fmt.Sprintf("%d each %d", r.Budget, r.Each)
	}
	if m := a.Mirror; m != nil {
		out.Mirror = fmt.Sprintf("%s %v", m.Model, m.Share)
	}
	if c := a.Canary; c != nil {
		out.Canary = fmt.Sprintf("%s %v", c.Model, c.Share)
	}
	if e := a.Escalate; e != nil {
		out.Escalate = fmt.Sprintf("%v hold %s", e.When, e.Hold)
		if e.Logprobs {
			out.Escalate += fmt.Sprintf(" min_logprob %v", e.MinLogprob)
		}
	}
}

// TokensOf converts a usage for the log.
func TokensOf(u response.Usage) *Tokens {
	return &Tokens{
		Prompt: int64(u.Input), Cached: int64(u.Cached), Completion: int64(u.Output),
		Reasoning: int64(u.Reasoning),
	}
}
