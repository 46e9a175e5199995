package proxy

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"signalbox/internal/anthropic"
	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
)

// listModels serves GET /v1/models. It is neither counted nor refused by the caller's limits, since
// clients call it at startup and as a health check.
func (p *Proxy) listModels(st *State, w *downstream.Writer, r *http.Request) error {
	who, err := st.caller(r)
	if err != nil {
		return err
	}
	list := make([]openai.ModelObject, 0, len(st.opts.AutoModels)+len(st.Models))
	for _, name := range st.modelNames(&who) {
		list = append(list, p.object(st, name))
	}
	if ofAnthropic(r) {
		return downstream.WriteJSON(w, http.StatusOK, anthropic.NewModelList(list))
	}
	return downstream.WriteJSON(w, http.StatusOK, openai.NewModelList(list...))
}

// ofAnthropic reports whether a request has the Anthropic-Version header, which Anthropic's clients
// send. On a path that both APIs have, it selects Anthropic's.
func ofAnthropic(r *http.Request) bool { return len(r.Header["Anthropic-Version"]) > 0 }

// oneModel serves GET /v1/models/{id}. Like listModels it uses none of the caller's limits.
func (p *Proxy) oneModel(st *State, w *downstream.Writer, r *http.Request) error {
	who, err := st.caller(r)
	if err != nil {
		return err
	}
	asked, err := url.PathUnescape(chi.URLParam(r, "*"))
	if err != nil {
		return fault.ErrNoRoute
	}
	known := st.modelNames(&who)
	if slices.Contains(known, asked) {
		m := p.object(st, asked)
		if ofAnthropic(r) {
			return downstream.WriteJSON(w, http.StatusOK, anthropic.NewModel(&m))
		}
		return downstream.WriteJSON(w, http.StatusOK, m)
	}
	return &fault.UnknownModelError{Model: asked, Known: known}
}

// object returns the API object for a model. A name that stands for routing has no context window.
func (p *Proxy) object(st *State, name string) openai.ModelObject {
	out := openai.NewModelObject(name, p.started, "signalbox")
	if m, ok := st.ByName[name]; ok {
		out.MaxModelLen = m.ContextWindow()
	}
	return out
}

// modelNames lists the model names that a caller may request. The auto names are open to every
// caller, since routing selects only models that the caller may use.
func (st *State) modelNames(who *Principal) []string {
	out := append([]string(nil), st.opts.AutoModels...)
	for _, m := range st.Models {
		if who.May(m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}
