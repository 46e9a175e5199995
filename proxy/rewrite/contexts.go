package rewrite

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
)

// promptBefore is the prompt position before contexts.
const promptBefore = "before"

// beside returns the route's prompt if it is placed next to contexts; empty otherwise.
func (rw Change) beside() string {
	switch rw.PromptFate() {
	case "", promptKept:
		return ""
	}
	return rw.o.Prompts[rw.Decision.Action.Prompt.Name]
}

// compile inserts contexts, and the route's prompt if it is placed next to them, into a body for m.
func (rw Change) compile(body []byte, m *backend.Model) (prefix.Body, error) {
	r := prefix.Request{API: rw.Request.API, Body: body, Contexts: rw.Decision.Contexts.Prefix(), Role: m.ContextRole}
	text := rw.beside()
	switch {
	case text == "":
	case rw.Decision.Action.Prompt.Position == promptBefore:
		quoted, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return nil, fmt.Errorf("spell prompt: %w", err)
		}
		in := prefix.Context{Kind: ledger.Text, Fragments: [][]byte{quoted[1 : len(quoted)-1]}}
		r.Contexts = append([]prefix.Context{in}, r.Contexts...)
	default:
		r.Domain = text
	}
	return prefix.Compile(r)
}

// unsupportedContexts explains why a request cannot contain contexts.
func unsupportedContexts(req *openai.Request) error {
	why := resolve.ContextField + " cannot be inserted into this request"
	switch req.API {
	case openai.Completion:
		why = resolve.ContextField + " requires a text prompt and text contexts: a context of messages requires a chat request"
	case openai.Response:
		why = resolve.ContextField + " requires instructions to be text and input to be text or a list"
	case openai.Chat, openai.Other:
	}
	return openai.Invalid(resolve.ContextField, why)
}

// hidden returns a body with personal data redacted, including that of contexts. It searches the
// whole body, because only the types of personal data in a context are stored, not their positions.
// If the search fails, nothing is sent.
func (rw Change) hidden(ctx context.Context, api openai.API, body []byte) (Payload, error) {
	req, err := openai.Parse(api, body, openai.Accepted())
	if err != nil {
		return Payload{}, fmt.Errorf("%w: %w", fault.ErrNotRedacted, err)
	}
	text := req.Text()
	v, err := rw.Decision.Base.Signals.PersonalData(ctx, &text)
	if err != nil {
		return Payload{}, err
	}
	finder, _ := rw.Decision.Base.Signals.Classifier.(redact.Finder)
	out, vault, err := redact.Hide(ctx, req, v.Spans, finder, rw.Decision.Action.Redact.Takes)
	if err != nil {
		return Payload{}, err
	}
	return Payload{whole: out.Raw, Vault: vault}, nil
}
