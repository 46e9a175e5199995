package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/internal/signal"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/redact"
	"signalbox/proxy/resolve"
)

// payload is the body that a model receives, which every attempt reads anew. The zero value is
// empty.
type payload struct {
	whole  []byte
	pieces prefix.Body   // in place of whole, where stored contexts are part of it: their bytes are not copied
	vault  *redact.Vault // of what was hidden in the pieces; nil when nothing was
}

// fitted is the body of a request as the endpoint of the attempt under way takes it.
type fitted struct {
	rewriter

	model *backend.Model
	made  payload
	asked asked
}

// fit makes the body again if m, or what its endpoint takes beyond the API, is another than before.
func (f *fitted) fit(ctx context.Context, m *backend.Model, x dress) (err error) {
	if m == f.model && x == f.dress {
		return nil
	}
	f.model, f.dress = m, x
	f.made, f.asked, err = f.payload(ctx, m)
	return err
}

// Reader reads the body from its start, once.
func (b payload) Reader() io.ReadCloser {
	if b.pieces != nil {
		return io.NopCloser(b.pieces.Reader())
	}
	return io.NopCloser(bytes.NewReader(b.whole))
}

// Size is the number of bytes.
func (b payload) Size() int64 {
	if b.pieces != nil {
		return int64(b.pieces.Len())
	}
	return int64(len(b.whole))
}

// payload makes the body for m. Without contexts it is that of body and costs nothing more.
func (rw rewriter) payload(ctx context.Context, m *backend.Model) (payload, asked, error) {
	body, a := rw.body(m)
	if !rw.d.contexts.Named() {
		return payload{whole: body}, a, nil
	}
	pieces, err := rw.compile(body, m)
	switch {
	case errors.Is(err, prefix.ErrUnsupported):
		return payload{}, a, unsupportedContexts(rw.req)
	case err != nil:
		return payload{}, a, err
	case !rw.d.hideAll:
		return payload{pieces: pieces}, a, nil
	}
	out, err := rw.d.hidden(ctx, rw.req.API, pieces.Bytes())
	return out, a, err
}

// unsupportedContexts says why contexts have no place in a request.
func unsupportedContexts(req *openai.Request) error {
	why := resolve.ContextField + " cannot be put into this request"
	switch req.API {
	case openai.Completion:
		why = resolve.ContextField + " needs a prompt that is text, and contexts that are text: one that is messages needs a chat"
	case openai.Response:
		why = resolve.ContextField + " needs instructions that are text, and an input that is text or a list"
	case openai.Chat, openai.Other:
	}
	return fault.InvalidField(resolve.ContextField, why)
}

// compile puts contexts, and the route's prompt where it stands beside them, into a body for m.
func (rw rewriter) compile(body []byte, m *backend.Model) (prefix.Body, error) {
	r := prefix.Request{API: rw.req.API, Body: body, Contexts: rw.d.contexts.Prefix(), Role: m.ContextRole}
	text := rw.beside()
	switch {
	case text == "":
	case rw.d.Action.Prompt.Position == promptBefore:
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

// hidden is a body with its personal data replaced, that of contexts included. It is read for it
// here, all of it: what is stored of a context is which types it holds, and not where. Without
// knowing, nothing is sent.
func (d *decision) hidden(ctx context.Context, api openai.API, body []byte) (payload, error) {
	req, err := openai.Parse(api, body, resolve.Limits())
	if err != nil {
		return payload{}, fmt.Errorf("%w: %w", fault.ErrNotRedacted, err)
	}
	text := req.Text()
	v, err := d.state.personal(ctx, &text)
	if err != nil {
		return payload{}, err
	}
	out, vault, err := redact.Hide(req, v.Spans)
	if err != nil {
		return payload{}, err
	}
	return payload{whole: out.Raw, vault: vault}, nil
}

// personal reads all of a text for personal data.
func (st *State) personal(ctx context.Context, text *signal.Text) (*signal.Value, error) {
	var set signal.Set
	need := signal.MaskOf(signal.PII)
	switch c := st.classifier.(type) {
	case Interruptible:
		c.ExtractAllWhile(ctx, text, need, &set, func() signal.Mask { return need })
	case thorough:
		c.ExtractAll(ctx, text, need, &set)
	default:
		c.Extract(ctx, text, need, &set)
	}
	v := &set.Values[signal.PII]
	switch {
	case ctx.Err() != nil:
		return nil, fault.ErrClientGone
	case v.State == signal.Known && v.Read >= v.Windows, v.Reason == signal.ReasonNoText:
		return v, nil
	case v.Reason == signal.ReasonTimeout, v.Reason == signal.ReasonOverload:
		return nil, fault.ErrOverloaded
	}
	return nil, fault.ErrNotRedacted
}
