package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/stream/guard"
	"signalbox/stream/sse"
)

// The bounds of storing an answer.
const (
	maxSave     = time.Minute // that the end of an answer waits for it: 100,000 words are read for their safety first
	maxSaveName = 256         // bytes
)

// saver stores the prompt and the answer of one request as a context, once the answer has ended well: with
// finish_reason stop, tool_calls or function_call, and not as one that the guard found unsupported in a mode that acts
// on it. The id becomes the member context of x_signalbox where the end is told. nil saves nothing.
type saver struct {
	o      *outcome
	said   saidMessage
	lost   error // why the answer cannot be read; nil when it can
	ended  bool
	parser *sse.Parser
	out    []byte
}

// saver is how the answer is stored; nil when the client does not ask for it.
func (o *outcome) saver() *saver {
	if o.contexts == nil || o.req.Extras.SaveContext == nil {
		return nil
	}
	return &saver{o: o}
}

// saves reports whether the answer is to be stored.
func (o *outcome) saves() bool { return o.contexts != nil && o.req.Extras.SaveContext != nil }

// saidMessage is what an assistant said, as pieces of a stream or as a whole.
type saidMessage struct {
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal,omitempty"`
	ToolCalls []saidCall `json:"tool_calls,omitempty"`
}

// saidCall is a call of a tool, or a piece of one.
type saidCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// saidAnswer is what is read of an answer, or of a chunk of one.
type saidAnswer struct {
	Choices   []saidChoice `json:"choices"`
	Extension struct {
		Guard struct {
			Mode    string `json:"mode"`
			Verdict string `json:"verdict"`
		} `json:"guard"`
	} `json:"x_signalbox"`
}

// saidChoice is one of the answers.
type saidChoice struct {
	Index   int          `json:"index"`
	Delta   *saidMessage `json:"delta"`
	Message *saidMessage `json:"message"`
	Finish  string       `json:"finish_reason"`
}

// whole stores an answer in one piece and returns it with the id.
func (s *saver) whole(ctx context.Context, body []byte, h http.Header) []byte {
	a, err := readSaid(s.o.req.API, body)
	if err != nil || len(a.Choices) != 1 || a.Choices[0].Message == nil {
		s.lost = cmpError(err, errors.New("an answer that is no single message"))
	} else {
		s.said = *a.Choices[0].Message
	}
	if s.lost == nil && !s.well(&a, a.Choices[0].Finish) {
		return body
	}
	id, err := s.keep(ctx)
	if err != nil {
		h["X-Signalbox-Degraded"] = []string{strings.TrimPrefix(h.Get("X-Signalbox-Degraded")+","+lackSaved, ",")}
	}
	return withSaved(body, id)
}

func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// events takes whole events on their way to the client and returns what is sent in their place: the same, but for the
// end of the answer, which waits until the context is stored. The result is valid until the next call.
func (s *saver) events(ctx context.Context, b []byte) ([]byte, error) {
	if s.parser == nil {
		s.parser = sse.NewParser(0)
	}
	s.out = s.out[:0]
	s.parser.Feed(b)
	for {
		e, ok := s.parser.Next()
		if !ok {
			return s.out, s.parser.Err()
		}
		s.event(ctx, &e)
	}
}

// rest returns what no event ended.
func (s *saver) rest() []byte {
	if s.parser == nil {
		return nil
	}
	e, _ := s.parser.End()
	return e.Raw
}

func (s *saver) event(ctx context.Context, e *sse.Event) {
	if e.Kind != sse.Message || s.ended || sse.IsDone(e.Data) {
		s.out = append(s.out, e.Raw...)
		return
	}
	a, err := readSaid(s.o.req.API, e.Data)
	if err != nil {
		s.lost = err
	}
	finish := ""
	for i := range a.Choices {
		if c := &a.Choices[i]; c.Index == 0 {
			s.add(c.Delta)
			finish = c.Finish
		}
	}
	if finish == "" || e.At < 0 {
		s.out = append(s.out, e.Raw...)
		return
	}
	s.ended = true
	data := e.Data
	if s.well(&a, finish) {
		id, _ := s.keep(ctx) // the outcome has the error, and the chunk says that there is one
		data = withSaved(data, id)
	}
	s.out = append(append(append(s.out, e.Raw[:e.At]...), data...), e.Raw[e.At+len(e.Data):]...)
}

// add joins a piece of a message to those before it.
func (s *saver) add(d *saidMessage) {
	if d == nil {
		return
	}
	join(&s.said.Content, d.Content)
	join(&s.said.Refusal, d.Refusal)
	for _, c := range d.ToolCalls {
		at := len(s.said.ToolCalls)
		if c.Index != nil {
			at = *c.Index
		}
		switch n := len(s.said.ToolCalls); {
		case at == n:
			c.Index = nil
			s.said.ToolCalls = append(s.said.ToolCalls, c)
			continue
		case at < 0 || at > n:
			s.lost = errors.New("tool calls out of order")
			return
		}
		to := &s.said.ToolCalls[at]
		if to.ID == "" {
			to.ID = c.ID
		}
		if to.Type == "" {
			to.Type = c.Type
		}
		to.Function.Name += c.Function.Name
		to.Function.Arguments += c.Function.Arguments
	}
}

func join(to **string, piece *string) {
	switch {
	case piece == nil:
	case *to == nil:
		*to = piece
	default:
		all := **to + *piece
		*to = &all
	}
}

// well reports whether an answer ended as one that may be stored.
func (s *saver) well(a *saidAnswer, finish string) bool {
	switch finish {
	case "stop", "tool_calls", "function_call":
	default:
		return false
	}
	g := &a.Extension.Guard
	return s.o.guarding == nil || g.Verdict != "unsupported" || g.Mode == guard.Observe.String()
}

// keep stores the context and returns its id; empty with an error, which the outcome keeps for the log.
func (s *saver) keep(ctx context.Context) (id string, err error) {
	defer func() { s.o.unsaved = err }()
	if s.lost != nil {
		return "", fmt.Errorf("read answer: %w", s.lost)
	}
	ctx, stop := context.WithTimeout(ctx, maxSave)
	defer stop()
	draft, err := s.draft(ctx)
	if err != nil {
		return "", err
	}
	c, err := s.o.contexts.store.Create(ctx, s.o.contexts.owner, draft)
	if err != nil {
		return "", fmt.Errorf("store context: %w", err)
	}
	return c.ID, nil
}

// draft is the context: what the model was given but for the route's prompt, and what it said.
func (s *saver) draft(ctx context.Context) (d memory.Draft, err error) {
	r, asked := s.o.contexts, s.o.req.Extras.SaveContext
	d = memory.Draft{Name: asked.Name, TTL: asked.TTL}
	snaps := r.snaps
	if len(snaps) > 0 && snaps[0].Kind == ledger.Messages {
		d.Parent = memory.Ref{ID: snaps[0].ID, Version: snaps[0].Version}
		if r.refs[0].Lease != "" {
			d.Parent.Lease = r.refs[0].Lease
		}
		snaps = snaps[1:]
	}
	if len(snaps) > 0 {
		for _, one := range r.snaps {
			d.Facts = append(d.Facts, one.Facts...)
		}
	}
	if d.Scope, err = r.scope(ctx); err != nil {
		return d, err
	}
	body, err := asMessages(s.o.req)
	if err != nil {
		return d, err
	}
	in := resolved{snaps: snaps}
	if in.named() {
		pieces, err := prefix.Compile(prefix.Request{API: openai.Chat, Body: body, Contexts: in.prefix()})
		if err != nil {
			return d, fmt.Errorf("join contexts: %w", err)
		}
		body = pieces.Bytes()
	}
	said, err := json.Marshal(struct {
		Role string `json:"role"`
		saidMessage
	}{"assistant", s.said})
	if err != nil {
		return d, fmt.Errorf("spell answer: %w", err)
	}
	list := bytes.TrimRight(openai.Member(body, "messages"), " \t\r\n")
	if len(list) < 2 {
		return d, errors.New("a request without messages")
	}
	d.Messages = append(append(append(slices.Clone(list[:len(list)-1]), ','), said...), ']')
	return d, nil
}

// scope is the narrowest of the contexts' scopes: what is kept to a session or to a key stays so.
func (r *resolved) scope(ctx context.Context) (memory.Scope, error) {
	narrow := memory.TenantScope
	for i, s := range r.snaps {
		c, err := r.store.Get(ctx, r.owner, memory.Ref{ID: s.ID, Version: s.Version, Lease: r.refs[i].Lease})
		switch {
		case err != nil:
			return narrow, fmt.Errorf("look up scope: %w", err)
		case c.Scope == memory.TenantScope || c.Scope == narrow:
		case narrow == memory.TenantScope:
			narrow = c.Scope
		default:
			return narrow, errors.New("one context is kept to a session and another to a key")
		}
	}
	return narrow, nil
}

// withSaved is an answer, or a chunk of one, with the id of the stored context in x_signalbox; without an id it says that
// there is none. What is no object stays as it is.
func withSaved(body []byte, id string) []byte {
	at, ok := extensionOf(body)
	if !ok {
		return body
	}
	member := []byte(`"degraded":["` + lackSaved + `"]`)
	if id != "" {
		quoted, err := json.Marshal(id)
		if err != nil {
			return body
		}
		member = append([]byte(`"context":`), quoted...)
	}
	own := body[at.value.Start:at.value.End]
	switch {
	case len(own) == 0:
		member = append(append([]byte(at.lead+"{"), member...), '}')
	case bytes.HasPrefix(own, []byte(`{"`)):
		member = append(append(append([]byte("{"), member...), ','), own[1:]...)
	default: // empty, or no object: no word of the guard or of an explanation
		member = append(append([]byte("{"), member...), '}')
	}
	return slices.Concat(body[:at.value.Start], member, body[at.value.End:])
}

// copySaved passes a stream on and stores its answer at its end.
func (u *upstream) copySaved(ctx context.Context, w *reply, o *outcome, t *meter) error {
	src := &checkedSource{u: u, t: t, restore: o.vault.Stream()}
	dst := savingSink{ctx: ctx, w: w, s: o.saver()}
	for {
		b, err := src.Read()
		if len(b) > 0 {
			if err := dst.Write(b); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, io.EOF):
			return err
		default:
			if err := dst.end(); err != nil {
				return err
			}
			u.drain(w)
			return nil
		}
	}
}

// savingSink sends what the guard lets go, and stores the answer in between.
type savingSink struct {
	ctx context.Context //nolint:containedctx // of the one request whose answer this is
	w   *reply
	s   *saver
}

// Write implements guard.Sink.
func (d savingSink) Write(b []byte) error {
	out, err := d.s.events(d.ctx, b)
	if err != nil {
		return &cutError{err}
	}
	return checkedSink{d.w}.Write(out)
}

// end sends what no event ended.
func (d savingSink) end() error {
	if b := d.s.rest(); len(b) > 0 {
		return checkedSink{d.w}.Write(b)
	}
	return nil
}
