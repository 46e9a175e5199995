package proxy

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/proxy/downstream"
	"signalbox/proxy/fault"
	"signalbox/proxy/guardrail"
	"signalbox/proxy/resolve"
)

// verifyBody is the body of POST /signalbox/v1/verify.
type verifyBody struct {
	Facts    *factList      `json:"facts"`
	Context  jsontext.Value `json:"context"` // pointers, as signalbox.context has them
	Question string         `json:"question"`
	Answer   string         `json:"answer"`
}

// factList is one fact, or a list of them.
type factList []givenFact

// UnmarshalJSONFrom reads either form.
func (l *factList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '[' {
		return json.UnmarshalDecode(dec, (*[]givenFact)(l))
	}
	*l = make(factList, 1)
	return json.UnmarshalDecode(dec, &(*l)[0])
}

// givenFact is a fact as signalbox.facts has it: a text, or an object.
type givenFact openai.Fact

// UnmarshalJSONFrom reads either form.
func (f *givenFact) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &f.Text)
	}
	var o struct {
		ID     string `json:"id"`
		Text   string `json:"text"`
		Source string `json:"source"`
		Kind   string `json:"kind"`
	}
	if err := json.UnmarshalDecode(dec, &o); err != nil {
		return err
	}
	*f = givenFact{ID: o.ID, Text: o.Text, Source: o.Source, Kind: o.Kind}
	return nil
}

// verifyRequest serves POST /signalbox/v1/verify: the claims of a text, checked against facts.
// Every caller that may ask for a response may call it: it tells nothing of the configuration.
func (p *Proxy) verifyRequest(st *State, w *downstream.Writer, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	in, err := readVerify(body)
	if err != nil {
		return err
	}
	held, err := p.verifyContexts(r, who, in)
	defer held.Release()
	if err != nil {
		return err
	}
	out, err := st.guard.Verify(r.Context(), &guardrail.Text{
		Facts: in.facts(), Contexts: held, Question: in.Question, Answer: in.Answer,
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
func (p *Proxy) verifyContexts(r *http.Request, who Principal, in *verifyBody) (*resolve.Contexts, error) {
	if len(in.Context) == 0 {
		return nil, nil //nolint:nilnil // a text without any
	}
	refs, err := openai.ParseContexts(in.Context, verifyContext)
	switch {
	case err == nil && len(refs) == 0:
		return nil, nil //nolint:nilnil // a text without any
	case err != nil:
		return nil, err
	}
	return p.resolver.Find(r.Context(), resolve.Owner(who, r.Header.Get("X-Signalbox-Session")), refs, verifyContext)
}

// verifyContext is the field that names contexts.
const verifyContext = "context"

// readVerify reads a body. Errors are of the API and name the field.
func readVerify(body []byte) (*verifyBody, error) {
	invalid := func(param, message string) error {
		return &openai.Error{Status: http.StatusBadRequest, Type: openai.TypeInvalidRequest, Param: param, Message: message}
	}
	var in verifyBody
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		return nil, invalid(openai.FieldOf(err), "the body must be an object with facts, a text or a list of texts or of objects {id, text}, "+
			"answer, a text, and optionally question, a text")
	}
	if in.Facts == nil && len(in.Context) > 0 && in.Context.Kind() != 'n' {
		in.Facts = new(factList)
	}
	switch {
	case in.Facts == nil:
		return nil, invalid("facts", "facts is required; an empty list leaves every claim unchecked")
	case strings.TrimSpace(in.Answer) == "":
		return nil, invalid("answer", "answer is required")
	case len(*in.Facts) > maxVerifyFact:
		return nil, invalid("facts", fmt.Sprintf("holds more than %d facts", maxVerifyFact))
	case len(in.Answer) > maxVerified:
		return nil, fault.TooLarge("answer", fmt.Sprintf("answer holds %d bytes, at most %d are read", len(in.Answer), maxVerified))
	case len(in.Question) > maxVerified:
		return nil, fault.TooLarge("question", fmt.Sprintf("question holds %d bytes, at most %d are read", len(in.Question), maxVerified))
	}
	for i, f := range *in.Facts {
		if strings.TrimSpace(f.Text) == "" {
			return nil, invalid(fmt.Sprintf("facts[%d].text", i), "a fact must not be empty")
		}
	}
	return &in, guardrail.CheckFacts(in.facts(), "facts")
}

func (in *verifyBody) facts() []openai.Fact {
	out := make([]openai.Fact, len(*in.Facts))
	for i, f := range *in.Facts {
		out[i] = openai.Fact(f)
	}
	return out
}

// The bounds of what is verified at once.
const (
	maxVerified   = 64 << 10 // bytes of the answer
	maxVerifyFact = 512      // facts
)
