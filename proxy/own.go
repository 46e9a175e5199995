package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/memory/outcomes"
	"signalbox/proxy/decide"
	"signalbox/proxy/downstream"
	"signalbox/proxy/explain"
	"signalbox/proxy/fault"
	"signalbox/proxy/feedback"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/resolve"
	"signalbox/proxy/signals"
	"signalbox/proxy/tools"
	"signalbox/rules"
)

// classifyRequest serves POST /signalbox/v1/classify. It computes the signals of texts, or of the
// messages of a chat. A text has no known origin, so every signal reads it; the origin of a message
// follows from its role.
func (*Proxy) classifyRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	texts, need, err := st.Signals.Parse(body, st.limits.OfBody())
	if err != nil {
		return err
	}
	results := make([]map[string]signals.Result, 0, len(texts))
	for i := range texts {
		result := st.Signals.Results(r.Context(), &texts[i], need)
		if r.Context().Err() != nil {
			return fault.ErrClientGone
		}
		results = append(results, result)
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]any{"results": results})
}

// listIntents serves GET /signalbox/v1/intents.
func (*Proxy) listIntents(st *State, w *downstream.Writer, r *http.Request) error {
	who, err := st.identify(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	list := []signals.Intent{}
	if t, ok := st.Signals.Classifier.(signals.Teacher); ok {
		list = append(list, t.Intents()...)
	}
	return downstream.WriteJSON(w, http.StatusOK, map[string]any{"intents": list})
}

// addExamples serves POST /signalbox/v1/intents/{name}/examples. The examples are kept in the
// memory of this process and lost when it ends.
func (*Proxy) addExamples(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	examples, err := signals.ParseExamples(body)
	if err != nil {
		return err
	}
	name, err := pathPart(r, "name")
	if err != nil {
		return intentNotFound(chi.URLParam(r, "name"))
	}
	t, ok := st.Signals.Classifier.(signals.Teacher)
	if !ok {
		return intentNotFound(name)
	}
	// before and after, so that no decision made in between is cached under the wrong examples
	st.answers.Teach(name, examples)
	added, total, err := t.AddExamples(r.Context(), name, examples)
	st.answers.Teach(name, examples)
	var bad *signals.ExampleError
	switch {
	case err == nil:
		return downstream.WriteJSON(w, http.StatusOK, map[string]any{"intent": name, "added": added, "examples": total})
	case errors.Is(err, signals.ErrUnknownIntent):
		return intentNotFound(name)
	case errors.As(err, &bad):
		return openai.Invalid(fmt.Sprintf("examples[%d]", bad.Index), bad.Msg)
	case r.Context().Err() != nil:
		return fault.ErrClientGone
	}
	return fmt.Errorf("%w: %w", fault.ErrSignalUnavailable, err)
}

func intentNotFound(name string) error {
	return openai.Refusal(http.StatusNotFound, "intent_not_found", "",
		fmt.Sprintf("the intent %.200q does not exist", name))
}

// verifyRequest serves POST /signalbox/v1/verify, which checks the claims of a text against facts.
// Every caller that may request responses may use it, since it reveals nothing of the
// configuration.
func (p *Proxy) verifyRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	in, err := guardrail.ParseVerify(body)
	if err != nil {
		return err
	}
	held, err := p.verifyContexts(r, who, in)
	defer held.Release()
	if err != nil {
		return err
	}
	out, err := st.guard.Verify(r.Context(), &guardrail.Text{
		Facts: in.Given(), Contexts: held, Question: in.Question, Answer: in.Answer,
	})
	if err != nil {
		return err
	}
	if st.guard.Lacking() != "" {
		w.Header()["X-Signalbox-Degraded"] = []string{guardrail.LackGrounding}
	}
	return downstream.WriteJSON(w, http.StatusOK, out)
}

// verifyContexts resolves the contexts that a text is verified against. A context is required
// unless it is marked optional.
func (p *Proxy) verifyContexts(r *http.Request, who Principal, in *guardrail.VerifyBody) (*resolve.Contexts, error) {
	refs, err := in.Contexts()
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	owner := resolve.Owner(who, r.Header.Get("X-Signalbox-Session"))
	return p.resolver.Find(r.Context(), owner, refs, guardrail.VerifyContext)
}

// Explain decides a chat completion request as if who had sent it with headers h, which may be nil,
// and forwards nothing. Credentials in h are ignored. An error in the body is an *openai.Error; an
// error about an unknown model names the model.
func (p *Proxy) Explain(ctx context.Context, body []byte, who Principal, h http.Header) (*explain.Explanation, error) {
	st := p.acquire()
	defer st.release()
	if h == nil {
		h = http.Header{}
	}
	return p.explain(ctx, st, body, who, h)
}

func (p *Proxy) explain(
	ctx context.Context, st *State, body []byte, who Principal, h http.Header,
) (*explain.Explanation, error) {
	req, err := parseAny(body, st.limits.OfBody())
	if err != nil {
		return nil, err
	}
	if err := st.controls.Check(&who, req); err != nil {
		return nil, err
	}
	r, err := p.resolver.Resolve(ctx, who, req, h)
	defer r.Release()
	if err != nil {
		return nil, err
	}
	d, err := st.Make(ctx, who, req, h, r, st.remember(who, req, h, r))
	if err != nil {
		return nil, err
	}
	var offered *tools.Choice
	if d.Action.Verb == rules.Use {
		offered = st.tools.Choose(ctx, st.Signals.Classifier, req, d.Action.Tools)
	}
	d.Save(p.spending.Saving(who.Tenant, who.Budgets))
	e := st.relay.Explainer.Explain(d, offered)
	for _, k := range signals.Attacks() {
		signals.Quote(e.Signals[k.String()].Verdicts, d.Set.Value(k), &d.Text)
	}
	explain.TryRecall(ctx, d, e.Recall)
	return e, nil
}

// parseAny parses the body of a chat completion or, when it has no messages, of a Responses API
// request or a completion.
func parseAny(body []byte, l openai.Limits) (*openai.Request, error) {
	req, err := openai.ParseChat(body, l)
	if err == nil || openai.Member(body, "messages") != nil {
		return req, err
	}
	switch {
	case openai.Member(body, "input") != nil:
		return openai.ParseResponse(body, l)
	case openai.Member(body, "prompt") != nil:
		return openai.ParseCompletion(body, l)
	}
	return nil, err
}

// explainRequest serves POST /signalbox/v1/explain. A request with the Anthropic-Version header is
// explained as one to Anthropic's Messages API.
func (p *Proxy) explainRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if !st.auth.MayExplain(who) {
		return fault.ErrForbidden
	}
	blame := func(err error) error { return err }
	if ofAnthropic(r) {
		t, err := anthropic.ToChat(body, anthropic.Options{Limits: st.limits.OfBody()})
		if err != nil {
			return err
		}
		body, blame = t.Chat, t.Blame
	}
	e, err := p.explain(r.Context(), st, body, who, r.Header)
	if err != nil {
		return blame(err)
	}
	return downstream.WriteJSON(w, http.StatusOK, e)
}

// feedbackRequest serves POST /signalbox/v1/feedback. Every caller that may send requests may rate
// those of its own tenant.
func (*Proxy) feedbackRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if st.Outcomes == nil {
		return openai.Refusal(http.StatusNotFound, "feedback_off", "",
			"feedback is not accepted: outcomes.learn is off")
	}
	in, score, err := feedback.Parse(body)
	if err != nil {
		return err
	}
	o, err := st.Outcomes.Judge(who.Tenant, in.RequestID, score, 1, in.Label, decide.LearnFeedback)
	switch {
	case errors.Is(err, outcomes.ErrUnknown):
		return openai.Refusal(http.StatusNotFound, "request_not_found", "request_id",
			"no response waits for feedback under this id: its route neither chooses among models nor tries "+
				"one out, or the response is too old")
	case err != nil:
		return err
	}
	return downstream.WriteJSON(w, http.StatusOK, feedback.Judged{
		RequestID: in.RequestID, Model: o.Model, Outcome: o.Score, Label: o.Label,
		Outcomes: st.Outcomes.Len(who.Tenant),
	})
}
