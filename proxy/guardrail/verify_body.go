package guardrail

import (
	"errors"
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"signalbox/internal/openai"
	"signalbox/proxy/fault"
)

// VerifyBody is the body of POST /signalbox/v1/verify.
type VerifyBody struct {
	Facts    *factList      `json:"facts"`
	Context  jsontext.Value `json:"context"` // references in the form of signalbox.context
	Question string         `json:"question"`
	Answer   string         `json:"answer"`
}

// factList is one fact, or a list of them.
type factList []givenFact

// UnmarshalJSONFrom parses either form.
func (l *factList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '[' {
		return json.UnmarshalDecode(dec, (*[]givenFact)(l))
	}
	*l = make(factList, 1)
	return json.UnmarshalDecode(dec, &(*l)[0])
}

// givenFact is a fact in the form of signalbox.facts: a text or an object.
type givenFact openai.Fact

// UnmarshalJSONFrom parses either form.
func (f *givenFact) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() == '"' {
		return json.UnmarshalDecode(dec, &f.Text)
	}
	return json.UnmarshalDecode(dec, (*openai.Fact)(f))
}

// ParseVerify parses a body. Errors are API errors that name the field.
func ParseVerify(body []byte) (*VerifyBody, error) {
	var in VerifyBody
	if err := json.Unmarshal(body, &in, json.RejectUnknownMembers(true)); err != nil {
		param := openai.FieldOf(err)
		return nil, openai.Invalid(param, unknownMember(param, err)+
			"the body must be an object with facts, a text or a list of texts or of objects "+
			"{id, text}, or context, a pointer or a list of them; answer, a text; and optionally question, a text")
	}
	if in.Facts == nil && len(in.Context) > 0 && in.Context.Kind() != 'n' {
		in.Facts = new(factList)
	}
	switch {
	case in.Facts == nil:
		return nil, openai.Invalid("facts", "facts is required; with an empty list, every claim is unchecked")
	case strings.TrimSpace(in.Answer) == "":
		return nil, openai.Invalid("answer", "answer is required")
	case len(*in.Facts) > MaxVerifyFacts:
		return nil, openai.Invalid("facts", fmt.Sprintf("holds more than %d facts", MaxVerifyFacts))
	case len(in.Answer) > maxVerified:
		return nil, fault.TooLarge("answer", fmt.Sprintf("answer holds %d bytes, at most %d are read", len(in.Answer), maxVerified))
	case len(in.Question) > maxVerified:
		return nil, fault.TooLarge("question", fmt.Sprintf("question holds %d bytes, at most %d are read", len(in.Question), maxVerified))
	}
	for i, f := range *in.Facts {
		if strings.TrimSpace(f.Text) == "" {
			return nil, openai.Invalid(fmt.Sprintf("facts[%d].text", i), "a fact must not be empty")
		}
	}
	return &in, CheckFacts(in.Given(), "facts")
}

// unknownMember returns the error text for an unknown member, with a suggestion; empty if the error
// is another one.
func unknownMember(param string, err error) string {
	if !errors.Is(err, json.ErrUnknownName) {
		return ""
	}
	best, least := "", len(param)/3+2
	if strings.ContainsAny(param, ".[") { // a member of a fact
		least = 0
	}
	for _, name := range [...]string{"answer", "context", "facts", "question"} {
		if d := levenshtein.ComputeDistance(param[:min(len(param), maxName)], name); d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return param + " is unknown; "
	}
	return fmt.Sprintf("%s is unknown, did you mean %q? ", param, best)
}

// maxName limits the part of an unknown name that is compared with known ones, in bytes.
const maxName = 32

// Given returns the facts that the text is verified against.
func (in *VerifyBody) Given() []openai.Fact {
	out := make([]openai.Fact, len(*in.Facts))
	for i, f := range *in.Facts {
		out[i] = openai.Fact(f)
	}
	return out
}

// Limits of one verification.
const (
	maxVerified    = 64 << 10 // bytes of text
	MaxVerifyFacts = 512      // facts
)

// Contexts returns the references to the contexts that the text is verified against; empty if the
// body names none. Errors are API errors.
func (in *VerifyBody) Contexts() ([]openai.ContextRef, error) {
	if len(in.Context) == 0 {
		return nil, nil
	}
	return openai.ParseContexts(in.Context, VerifyContext)
}

// VerifyContext is the field that names contexts.
const VerifyContext = "context"
