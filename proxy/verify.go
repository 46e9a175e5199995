package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/proxy/fault"
	"signalbox/stream/check"
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

// The bounds of what is verified at once.
const (
	maxVerified   = 64 << 10 // bytes of the answer
	maxVerifyFact = 512      // facts
)

// Verdict is the answer of POST /signalbox/v1/verify.
type Verdict struct {
	Verdict string         `json:"verdict"` // supported, unsupported or unchecked
	Claims  []VerdictClaim `json:"claims"`  // in the order of the answer
}

// VerdictClaim is the verdict on one claim. Start and End are code points in the answer.
type VerdictClaim struct {
	Text    string  `json:"text"`
	Start   int     `json:"start"`
	End     int     `json:"end"`
	Verdict string  `json:"verdict"`
	Score   float64 `json:"score"` // support by the facts, in [0,1]
	// Span is where the number, date or name stands in the claim that failed, in its code points
	// from 0: [start, end).
	Span    []int  `json:"span,omitempty"`
	Fact    any    `json:"fact,omitempty"`    // the id of the fact that decided, or its index where it has none
	Context string `json:"context,omitempty"` // that the fact is pinned to, as ID@VERSION
	Reason  string `json:"reason,omitempty"`  // why it is unchecked, where the text holds more than is read of one
}

// verifyRequest serves POST /signalbox/v1/verify: the claims of a text, checked against facts.
// Whoever may ask for an answer may call it: it tells nothing of the configuration.
func (p *Proxy) verifyRequest(st *State, w *reply, r *http.Request) error {
	who, body, err := st.admit(w, r)
	if err != nil {
		return err
	}
	in, err := readVerify(body)
	if err != nil {
		return err
	}
	held, err := p.verifyContexts(r, who, in)
	defer held.release()
	if err != nil {
		return err
	}
	out, err := st.verify(r.Context(), in, held)
	if err != nil {
		return err
	}
	if st.watch.claims.Lacking() != "" {
		w.Header()["X-Signalbox-Degraded"] = []string{lackGrounding}
	}
	return writeJSON(w, http.StatusOK, out)
}

// verifyContexts finds the contexts that a text is verified against. They are all required unless
// they say otherwise.
func (p *Proxy) verifyContexts(r *http.Request, who Principal, in *verifyBody) (*resolved, error) {
	if len(in.Context) == 0 {
		return nil, nil //nolint:nilnil // a text without any
	}
	refs, err := openai.ParseContexts(in.Context, verifyContext)
	switch {
	case err == nil && len(refs) == 0:
		return nil, nil //nolint:nilnil // a text without any
	case err != nil:
		return nil, err
	case p.memory == nil:
		return nil, fault.InvalidField(verifyContext, verifyContext+" needs contexts, which are turned off here")
	}
	held := &resolved{store: p.memory, owner: ownerOf(who, r.Header.Get("X-Signalbox-Session"))}
	if err := held.fetch(r.Context(), p.memory, refs); err != nil {
		if stored, ok := errors.AsType[*fault.ContextError](err); ok {
			stored.Param = verifyContext
		}
		return held, err
	}
	return held, nil
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
	return &in, checkFacts(in.facts(), "facts")
}

func (in *verifyBody) facts() []openai.Fact {
	out := make([]openai.Fact, len(*in.Facts))
	for i, f := range *in.Facts {
		out[i] = openai.Fact(f)
	}
	return out
}

// verify checks a text, when its turn comes, as long as its client waits.
func (st *State) verify(ctx context.Context, in *verifyBody, held *resolved) (*Verdict, error) {
	select {
	case st.watch.verifying <- struct{}{}:
		defer func() { <-st.watch.verifying }()
	case <-ctx.Done():
		return nil, fault.ErrClientGone
	}
	g := grounds{sources: factSources(in.facts()), facts: len(*in.Facts)}
	if held.named() {
		all := st.watch.opts // what a text is verified against is all that the contexts say
		all.Documents, all.ToolResults = true, true
		for _, s := range held.snaps {
			g.addFacts(s.Facts, pointer(s))
		}
		g.fit(all.ofContexts(held, &g))
	}
	e, err := g.prepare(ctx)
	if err != nil {
		return nil, err
	}
	report, err := st.watch.claims.Checker.Text(ctx, e, in.Question, in.Answer)
	if ctx.Err() != nil {
		return nil, fault.ErrClientGone
	}
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return verdictOf(&report, &g), nil
}

func verdictOf(report *check.Report, g *grounds) *Verdict {
	out := &Verdict{Verdict: report.Verdict.String(), Claims: make([]VerdictClaim, len(report.Claims))}
	for i := range report.Claims {
		c := &report.Claims[i]
		v := VerdictClaim{Text: c.Text, Start: c.Runes.Start, End: c.Runes.End, Verdict: c.Verdict.String(), Score: c.Score}
		if c.Span.End > c.Span.Start && (c.Verdict == check.Unsupported || c.Verdict == check.Contradicted) {
			v.Span = []int{c.Span.Start, c.Span.End}
		}
		if c.Source >= 0 {
			v.Context = g.origin(c.Source)
		}
		if c.Verdict == check.Unchecked && errors.Is(c.Err, check.ErrTooMuch) {
			v.Reason = check.ErrTooMuch.Error()
		}
		switch {
		case c.Source < 0:
		case c.ID != "":
			v.Fact = c.ID
		default:
			v.Fact = c.Source
		}
		out.Claims[i] = v
	}
	return out
}
