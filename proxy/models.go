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

// listModels uses up no limit of its caller, and is not refused by one: clients ask when they start,
// and to see whether they can.
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

// ofAnthropic reports whether a request names the version of Anthropic's API, as its clients do:
// where both APIs have the path it is meant for that one.
func ofAnthropic(r *http.Request) bool { return len(r.Header["Anthropic-Version"]) > 0 }

// oneModel uses up no limit either.
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

// object is a model as the API lists it; names that are routed have no window.
func (p *Proxy) object(st *State, name string) openai.ModelObject {
	out := openai.NewModelObject(name, p.started, "signalbox")
	if m, ok := st.ByName[name]; ok {
		out.MaxModelLen = m.ContextWindow()
	}
	return out
}

// modelNames lists what a client may ask for. Routing only leads to models that it may use, so
// everyone may ask for that.
func (st *State) modelNames(who *Principal) []string {
	out := append([]string(nil), st.opts.AutoModels...)
	for _, m := range st.Models {
		if who.May(m.Name) {
			out = append(out, m.Name)
		}
	}
	return out
}
