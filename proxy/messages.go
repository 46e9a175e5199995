package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/memory/cache"
	"signalbox/proxy/backend"
	"signalbox/proxy/fault"
	"signalbox/proxy/upstream"
	"signalbox/rules"
	"signalbox/stream/messages"
	"signalbox/stream/response"
)

// Anthropic's Messages API is a way to say chat completions: a request becomes one when it is
// decoded, and its answer becomes a message when it is written. All stages between know chats
// alone.
const (
	messagesPath = "/v1/messages"
	countPath    = messagesPath + "/count_tokens"
)

// dialogue is a request to the Messages API and its answer.
type dialogue struct {
	messages.Answer

	raw    []byte      // the body as it came; nil for one that cannot go on as it is
	model  openai.Span // of the value of model in raw
	direct bool        // the answer is of a server that speaks this API
}

// newDialogue is nil for a path of any other API.
func newDialogue(w *reply, path string) *dialogue {
	if path != messagesPath && path != countPath {
		return nil
	}
	return &dialogue{Answer: messages.Answer{ID: plainID(w.id)}}
}

// plainID is an id with which names of JSON and of clients can do: a client may send any visible
// one.
func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// translates reports whether answers have to be turned into messages.
func (w *reply) translates() bool { return w.messages != nil && !w.messages.direct }

// translate reads a request as the chat completion that it amounts to.
func (st *State) translate(w *reply, body []byte, o anthropic.Options) (*openai.Request, error) {
	t, err := anthropic.ToChat(body, o)
	if err != nil {
		return nil, err
	}
	if !w.hold(int64(len(body)+len(t.Chat)), st.limits.MaxBytesInFlight) {
		return nil, fault.ErrTooManyBytes
	}
	req, err := openai.ParseChat(t.Chat, o.Limits)
	if err != nil {
		return nil, err
	}
	req.Translated, req.ThinkingBudget = true, t.Budget
	w.messages.Thinking, w.messages.Prompt = t.Thinking, req.EstimateTokens()
	if len(t.LeftOut) > 0 {
		w.Header()["X-Signalbox-Left-Out"] = []string{strings.Join(t.LeftOut, ",")}
	}
	if t.Exact {
		w.messages.raw, w.messages.model = body, t.Model
	}
	return req, nil
}

// direct is the body for m, and whether it is the client's own: where a server speaks the API
// itself, and the decision changes nothing but the name of the model, and nobody reads the answer.
func (o *exchange) direct(w *reply, m *backend.Model, made *fitted) (payload, bool) {
	d := w.messages
	if d == nil || !m.Messages || d.raw == nil || made.made.pieces != nil ||
		o.escalation.judging() || o.mirror != nil ||
		o.guarding != nil || o.vault != nil || o.memo.taping() || o.req.Extras.Present ||
		made.member != "" || o.req.Has(fieldSalt) {
		return made.made, false
	}
	same := openai.NewPatch(o.req)
	same.SetModel(m.ServedAs)
	made.extend(same)
	if !bytes.Equal(same.Bytes(), made.made.whole) {
		return made.made, false
	}
	if made.salt == "" && m.ServedAs == o.req.Model {
		return payload{whole: d.raw}, true
	}
	name := openai.NewPatch(o.req) // which spells it
	name.SetModel(m.ServedAs)
	whole := append(make([]byte, 0, len(d.raw)+128), d.raw[:d.model.Start]...)
	whole = append(whole, openai.Member(name.Bytes(), "model")...)
	if made.salt != "" {
		whole = append(strconv.AppendQuote(append(whole, `,"`+fieldSalt+`":`...), made.salt), ' ')
	}
	return payload{whole: append(whole, d.raw[d.model.End:]...)}, true
}

// errorEvent spells an error in a stream.
func (w *reply) errorEvent(e *openai.Error) []byte {
	if w.messages != nil {
		return anthropic.AppendStreamError(nil, e, w.id)
	}
	return openai.StreamError(e)
}

// fail answers with an error.
func (*dialogue) fail(w *reply, e *openai.Error) {
	body := anthropic.AppendError(nil, e, w.id)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(cmp.Or(e.Status, http.StatusInternalServerError))
	_, _ = w.Write(body)
}

// unreadable is the fault of a stream that could not be turned; nil without one.
func (w *reply) unreadable() error {
	if w == nil || w.messages == nil {
		return nil
	}
	if err := w.messages.Err(); err != nil {
		return &fault.InterruptedError{Err: err}
	}
	return nil
}

// spell turns a body into a message, where the client wants one.
func (w *reply) spell(body []byte) ([]byte, error) {
	if !w.translates() {
		return body, nil
	}
	out, err := w.messages.Body(body)
	if err != nil {
		return nil, &fault.UnusableError{Problem: err.Error()}
	}
	return out, nil
}

// spellStream turns a whole stream of our own.
func (w *reply) spellStream(events []byte) []byte {
	if !w.translates() {
		return events
	}
	s := response.TakeStream(response.StreamOptions{})
	defer s.Release()
	client := clientSink{w: w}
	s.Feed(events)
	s.End(io.EOF)
	for c := s.Next(); c != nil; c = s.Next() {
		client.Put(c)
	}
	return client.out
}

var errLongMessage = &fault.UnusableError{Problem: "a body that is too long to be turned into a message"}

// copyRefusal passes on what is no answer: an error in the words of the server, as the API spells
// it.
func copyRefusal(w *reply, u *upstream.Response) error {
	if u.Good() {
		return &fault.UnusableError{Problem: "a body that is no JSON"}
	}
	came, err := u.ReadWhole()
	if err != nil {
		return err
	}
	h := w.Header()
	for _, name := range [...]string{"Content-Encoding", "Etag", "Content-Md5", "Digest"} {
		delete(h, name)
	}
	return writeBytes(w, u.Status, w.messages.Error(came, u.Status))
}

// replayTranslated writes a stored stream as a message.
func (*exchange) replayTranslated(ctx context.Context, w *reply, player *cache.Player) error {
	src := newReplayed(player, response.StreamOptions{})
	defer src.stream.Release()
	client := takeSink(w)
	defer client.release()
	defer context.AfterFunc(ctx, src.Cancel)()
	for {
		src.Read()
		err := src.Deliver(client)
		if failed := client.Flush(); failed != nil {
			return failed
		}
		switch {
		case errors.Is(err, cache.ErrStopped):
			return fault.ErrClientGone
		case err != nil:
			return nil // the end
		}
	}
}

// adoptKey takes the key that clients of this API show for the bearer token that others show. A
// client that shows both is known by the token.
func adoptKey(h http.Header) {
	if key := h["X-Api-Key"]; len(key) == 1 && len(h["Authorization"]) == 0 {
		h["Authorization"] = []string{"Bearer " + key[0]}
	}
}

// renameHeaders gives the headers of an answer the names that the API has for them: the id of the
// request, and limits with the time at which they are full again (API reference, rate limits).
func renameHeaders(h http.Header, id string, now time.Time) {
	h["Request-Id"] = []string{id}
	for _, what := range [...]string{"Requests", "Tokens"} {
		for _, part := range [...]string{"Limit", "Remaining", "Reset"} {
			from := "X-Ratelimit-" + part + "-" + what
			value := h[from]
			delete(h, from)
			if len(value) != 1 {
				continue
			}
			if part == "Reset" {
				wait, err := time.ParseDuration(value[0])
				if err != nil {
					continue
				}
				value = []string{now.Add(wait).UTC().Format(time.RFC3339)}
			}
			h["Anthropic-Ratelimit-"+what+"-"+part] = value
		}
	}
}

// countMessage serves POST /v1/messages/count_tokens: a server of the model that the request would
// go to counts, with its template and the tools. Where none does, the count is an estimate, which a
// header says.
func (p *Proxy) countMessage(st *State, w *reply, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	req, err := st.translate(w, body, anthropic.Options{Counting: true, Limits: st.limits.parse()})
	if err != nil {
		return err
	}
	if err = st.steering.check(&who, req); err != nil {
		return err
	}
	held, err := p.resolver.Resolve(r.Context(), who, req, r.Header)
	defer held.Release()
	if err != nil {
		return err
	}
	d, err := st.start(who, req, r.Header, held)
	if err != nil {
		return err
	}
	if err = st.conclude(r.Context(), d, req); err != nil {
		return err
	}
	n, exact := p.countFor(r.Context(), st, w, d)
	if !exact {
		n = req.EstimateTokens() + (len(req.Field("tools"))+3)/openai.BytesPerToken
		if held.Named() {
			n += held.Tokens
		}
		w.Header()["X-Signalbox-Degraded"] = []string{"tokenize"}
	}
	return writeJSON(w, http.StatusOK, map[string]int{"input_tokens": n})
}

// countFor has a server count a decided request. What a route would not send to a model is not sent
// to be counted, nor what it hides.
func (p *Proxy) countFor(ctx context.Context, st *State, w *reply, d *decision) (n int, ok bool) {
	if d.Outcome == rules.Unavailable || d.Action.Verb != rules.Use || d.Action.Redact {
		return 0, false
	}
	change := st.rewrite(d.request, d)
	for _, name := range d.eligible() {
		m := st.byName[name]
		if m == nil || !d.who.May(name) {
			continue
		}
		made := fitted{rewriter: change}
		if e := p.counter(m); e != nil && made.fit(ctx, m, dress{}) == nil {
			o := exchange{decision: d, req: d.request}
			if body, direct := o.direct(w, m, &made); direct && body.Size() <= maxCounted {
				return p.tokenize(ctx, e, strings.TrimPrefix(countPath, "/v1/"), body.Reader())
			}
		}
		if !countable(d.request) {
			return 0, false
		}
		return p.measureBy(ctx, &change, m)
	}
	return 0, false
}
