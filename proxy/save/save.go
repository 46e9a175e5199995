package save

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"signalbox/internal/openai"
	"signalbox/memory"
	"signalbox/memory/ledger"
	"signalbox/memory/prefix"
	"signalbox/proxy/resolve"
	"signalbox/stream/check"
	"signalbox/stream/guard"
	"signalbox/stream/response"
)

// maxSave limits how long the end of a response waits for the context to be stored. Up to 100,000
// words are first read for their safety.
const maxSave = time.Minute

// Saver stores the prompt and response of one request as a context once the response has ended
// successfully: with finish_reason stop, tool_calls or function_call, and not found unsupported by
// a guard in a mode that acts on it. The id becomes the member context of x_signalbox at the end of
// the response. In a stream on its way to next, the end waits until the context is stored.
type Saver struct {
	ctx      context.Context //nolint:containedctx // of the one request that the response belongs to
	req      *openai.Request // as the client sent it
	contexts *resolve.Contexts
	unsaved  *error // receives why the response was not stored; nil if it was
	next     guard.Sink
	said     response.Collector
	whole    *response.Message // of a response that arrived whole; nil if it is collected
	lost     error             // why the response cannot be read; nil if it can
	ended    bool
}

// New returns the saver for the response to req. It sets unsaved to the reason why nothing was
// stored. next receives the stream; it is nil for a response in one piece.
func New(
	ctx context.Context, req *openai.Request, contexts *resolve.Contexts, unsaved *error, next guard.Sink,
) *Saver {
	return &Saver{ctx: ctx, req: req, contexts: contexts, unsaved: unsaved, next: next}
}

var _ guard.Sink = (*Saver)(nil)

// NotSaved is the value in the header for degraded responses if the response could not be stored.
const NotSaved = "save_context"

// Body stores a response in one piece, with the guard's outcome g, and returns it with the id.
func (s *Saver) Body(ctx context.Context, body []byte, g *guard.Outcome, h http.Header) []byte {
	var finish string
	if s.req.API == openai.Response {
		finish = s.readResponse(body)
	} else {
		finish = s.read(new(response.Reader).ReadBody(body), body)
		if n, err := s.said.Len(); n != 1 && err == nil && s.lost == nil {
			s.lost = errors.New("a response that is no single message")
		}
	}
	if s.lost == nil && !well(finish, g.Verdict == check.Unsupported && g.Mode > guard.Observe) {
		return body
	}
	id, err := s.create(ctx)
	if err != nil {
		h["X-Signalbox-Degraded"] = []string{strings.TrimPrefix(h.Get("X-Signalbox-Degraded")+","+NotSaved, ",")}
	}
	return withSaved(body, id)
}

// Put implements response.Sink.
func (s *Saver) Put(c *response.Chunk) {
	if c.IsMessage() && !s.ended {
		finish := ""
		if e := c.Content(); e.Shape != response.Response {
			finish = s.read(e, c.Data)
		} else if string(e.Type) == "response.completed" {
			finish = s.readResponse(openai.Member(c.Data, "response"))
		}
		if s.ended = finish != ""; s.ended && well(finish, c.Unsupported) {
			// the exchange keeps the error, and the chunk says that there is one
			id, _ := s.create(s.ctx)
			c.SetData(withSaved(c.Data, id))
		}
	}
	s.next.Put(c)
}

// Flush implements guard.Sink.
func (s *Saver) Flush() error { return s.next.Flush() }

// read processes an event of a chat or completion, or a body, and returns why its response ended;
// empty if it has not.
func (s *Saver) read(e *response.Event, data []byte) (finish string) {
	if e.Shape == response.Opaque && (!e.Foreign() || !json.Valid(data)) {
		s.lost = fmt.Errorf("read response: %s", e.Why)
	}
	s.said.Add(e)
	for i := range e.Finishes {
		if f := &e.Finishes[i]; f.Choice == 0 {
			finish = string(f.Reason)
		}
	}
	return finish
}

// well reports whether a response ended in a way that allows it to be stored.
func well(finish string, unsupported bool) bool {
	switch finish {
	case "stop", "tool_calls", "function_call":
		return !unsupported
	}
	return false
}

// create stores the context and returns its id. On an error the id is empty, and the exchange keeps
// the error for the log.
func (s *Saver) create(ctx context.Context) (id string, err error) {
	defer func() { *s.unsaved = err }()
	said, err := s.message()
	if err != nil {
		return "", fmt.Errorf("read response: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, maxSave)
	defer stop()
	draft, err := s.draft(ctx, said)
	if err != nil {
		return "", err
	}
	c, err := s.contexts.Store.Create(ctx, s.contexts.Owner, draft)
	if err != nil {
		return "", fmt.Errorf("store context: %w", err)
	}
	return c.ID, nil
}

// message returns the model's message in its stored form, without reasoning, which later turns do
// not see.
func (s *Saver) message() ([]byte, error) {
	m := s.whole
	if n, err := s.said.Len(); s.lost != nil || err != nil {
		return nil, cmp.Or(s.lost, err)
	} else if m == nil {
		m = new(response.Message)
		if n > 0 {
			*m, _, _ = s.said.Message(0)
		}
	}
	m.Role, m.Reasoning, m.ReasoningContent = "assistant", "", ""
	said, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("spell response: %w", err)
	}
	return said, nil
}

// draft returns the context: what the model received, without the route's prompt, and what it said.
func (s *Saver) draft(ctx context.Context, said []byte) (d memory.Draft, err error) {
	r, asked := s.contexts, s.req.Extras.SaveContext
	d = memory.Draft{Name: asked.Name, TTL: asked.TTL}
	snaps := r.Snaps
	if len(snaps) > 0 && snaps[0].Kind == ledger.Messages {
		d.Parent = memory.Ref{ID: snaps[0].ID, Version: snaps[0].Version}
		if r.Refs[0].Lease != "" {
			d.Parent.Lease = r.Refs[0].Lease
		}
		snaps = snaps[1:]
	}
	if len(snaps) > 0 {
		for _, one := range r.Snaps {
			d.Facts = append(d.Facts, one.Facts...)
		}
	}
	if d.Scope, err = r.Scope(ctx); err != nil {
		return d, err
	}
	body, err := asMessages(s.req)
	if err != nil {
		return d, err
	}
	in := resolve.Contexts{Snaps: snaps}
	if in.Named() {
		pieces, err := prefix.Compile(prefix.Request{API: openai.Chat, Body: body, Contexts: in.Prefix()})
		if err != nil {
			return d, fmt.Errorf("join contexts: %w", err)
		}
		body = pieces.Bytes()
	}
	list := bytes.TrimRight(openai.Member(body, "messages"), " \t\r\n")
	if len(list) < 2 {
		return d, errors.New("a request without messages")
	}
	d.Messages = append(append(append(slices.Clone(list[:len(list)-1]), ','), said...), ']')
	return d, nil
}

// withSaved returns a response, or a chunk of one, with the id of the stored context in
// x_signalbox; an empty id says that there is none. Anything that is not an object is returned
// unchanged.
func withSaved(body []byte, id string) []byte {
	at, ok := response.ExtensionOf(body)
	if !ok {
		return body
	}
	member := []byte(`"degraded":["` + NotSaved + `"]`)
	if id != "" {
		quoted, err := json.Marshal(id)
		if err != nil {
			return body
		}
		member = append([]byte(`"context":`), quoted...)
	}
	own := body[at.Value.Start:at.Value.End]
	switch {
	case len(own) == 0:
		member = append(append([]byte(at.Lead+"{"), member...), '}')
	case bytes.HasPrefix(own, []byte(`{"`)):
		member = append(append(append([]byte("{"), member...), ','), own[1:]...)
	default: // empty, or not an object from the guard or an explanation
		member = append(append([]byte("{"), member...), '}')
	}
	return slices.Concat(body[:at.Value.Start], member, body[at.Value.End:])
}

// asMessages returns the client's prompt as the body of a chat, the form in which it is stored.
func asMessages(req *openai.Request) ([]byte, error) {
	if req.API == openai.Chat {
		return openai.NewPatch(req).Bytes(), nil
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var body struct {
		Messages []message `json:"messages"`
	}
	if req.Instructions != "" {
		body.Messages = append(body.Messages, message{"system", req.Instructions})
	}
	for i := range req.Messages {
		body.Messages = append(body.Messages, message{req.Messages[i].Role, req.Messages[i].Text})
	}
	out, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("spell messages: %w", err)
	}
	return out, nil
}

// readResponse parses a response and returns why it ended, or its status.
func (s *Saver) readResponse(body []byte) (finish string) {
	var in struct {
		Status string `json:"status"`
		Output []struct {
			Type    string `json:"type"`
			Content []struct {
				Text    string `json:"text"`
				Refusal string `json:"refusal"`
			} `json:"content"`
			CallID    string `json:"call_id"`
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"output"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		s.lost = fmt.Errorf("read response: %w", err)
		return ""
	}
	s.whole = new(response.Message)
	var text strings.Builder
	for _, item := range in.Output {
		switch item.Type {
		case "message":
			for _, part := range item.Content {
				text.WriteString(part.Text + part.Refusal)
			}
		case "function_call":
			s.whole.ToolCalls = append(s.whole.ToolCalls, response.ToolCall{
				ID: item.CallID, Type: "function", Function: response.Function{Name: item.Name, Arguments: item.Arguments},
			})
		case "reasoning": // later turns do not see it
		default:
			s.lost = errors.New("a response with " + item.Type)
		}
	}
	if said := text.String(); said != "" || len(s.whole.ToolCalls) == 0 {
		s.whole.Content = &said
	}
	if in.Status == "completed" {
		return "stop"
	}
	return in.Status
}
