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

// classifyRequest serves POST /signalbox/v1/classify: the signals of some texts, each of an origin
// that nobody told, so that every signal reads it, or of the messages of a chat, whose roles tell.
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

// addExamples serves POST /signalbox/v1/intents/{name}/examples. What is added is kept in memory,
// by this process alone, as long as it runs.
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
	st.answers.Teach(name, examples) // before and behind, so that no decision of one moment is kept under another
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

// verifyRequest serves POST /signalbox/v1/verify: the claims of a text, checked against facts.
// Every caller that may ask for a response may call it: it tells nothing of the configuration.
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

// verifyContexts finds the contexts that a text is verified against. They are all required unless
// they say otherwise.
func (p *Proxy) verifyContexts(r *http.Request, who Principal, in *guardrail.VerifyBody) (*resolve.Contexts, error) {
	refs, err := in.Contexts()
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	owner := resolve.Owner(who, r.Header.Get("X-Signalbox-Session"))
	return p.resolver.Find(r.Context(), owner, refs, guardrail.VerifyContext)
}

// Explain decides a chat completion request as if who had sent it with the headers h, which may be
// nil, and forwards nothing. Credentials among them count for nothing. Errors of the body and an
// unknown model are *openai.Error or say so in their text.
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

// parseAny reads the body of a chat completion, or, when it has no messages, of a request to the
// Responses API or of a completion.
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

// explainRequest serves POST /signalbox/v1/explain. A request that names the version of Anthropic's
// API is one to its Messages API.
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

// feedbackRequest serves POST /signalbox/v1/feedback: who may send requests may judge those of its
// tenant.
func (*Proxy) feedbackRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	if st.Outcomes == nil {
		return openai.Refusal(http.StatusNotFound, "feedback_off", "",
			"no feedback is kept here: outcomes.learn is off")
	}
	in, score, err := feedback.Parse(body)
	if err != nil {
		return err
	}
	o, err := st.Outcomes.Judge(who.Tenant, in.RequestID, score, 1, in.Label, decide.LearnFeedback)
	switch {
	case errors.Is(err, outcomes.ErrUnknown):
		return openai.Refusal(http.StatusNotFound, "request_not_found", "request_id",
			"no answer waits for feedback under this id: its route neither chooses among models nor tries "+
				"one out, or it was too long ago")
	case err != nil:
		return err
	}
	return downstream.WriteJSON(w, http.StatusOK, feedback.Judged{
		RequestID: in.RequestID, Model: o.Model, Outcome: o.Score, Label: o.Label,
		Outcomes: st.Outcomes.Len(who.Tenant),
	})
}
